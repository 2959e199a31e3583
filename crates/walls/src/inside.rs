//! The other side of the wall: what a machine does between its snapshot and its first request.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use cellblock_sandbox::Limits;
use rustix::time::{ClockId, Timespec, clock_settime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

use crate::wake::Wake;
use listener::StreamListener;
use port::SerialPort;

mod listener;
mod port;

/// Pause between two attempts to connect to a socket that is not there before the restore.
pub const PAUSE: Duration = Duration::from_millis(2);

/// A stream to the host.
pub trait Channel: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Channel for T {}

/// Address of the host.
#[derive(Clone, Debug)]
pub enum HostAddress {
    /// A socket that appears after the restore.
    Socket(PathBuf),
    /// The serial port with this name of a virtual machine.
    Port(String),
    /// The stream socket with this port of a virtual machine, to which the host connects.
    Vsock(u32),
}

/// Place in which a host appears, ready before the snapshot is taken.
#[derive(Debug)]
pub enum Door {
    /// A socket on which the host will listen.
    Socket(PathBuf),
    /// A serial port, which stays open: closing it would discard what a host has sent.
    Port(SerialPort),
    /// The host looks for the machine.
    Listener(StreamListener),
}

impl FromStr for HostAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("socket", path)) => Ok(Self::Socket(path.into())),
            Some(("port", path)) => Ok(Self::Port(path.into())),
            Some(("vsock", port)) => port
                .parse()
                .map(Self::Vsock)
                .map_err(|_| format!("`{port}` is not the number of a port")),
            _ => Err(format!(
                "`{text}` is not an address of a host, such as `socket:/run/cb/host`"
            )),
        }
    }
}

impl HostAddress {
    /// Prepares for a host that appears after the restore.
    pub fn door(&self) -> io::Result<Door> {
        match self {
            Self::Vsock(port) => StreamListener::vsock(*port).map(Door::Listener),
            Self::Port(name) => SerialPort::open(name).map(Door::Port),
            Self::Socket(path) => Ok(Door::Socket(path.clone())),
        }
    }

    /// Fails if a virtual machine's own needs leave less memory than sandboxes are promised.
    pub fn has_room(&self, limits: &Limits) -> Result<(), String> {
        if !self.is_virtual_machine() {
            return Ok(());
        }
        let text = fs::read_to_string("/proc/meminfo").map_err(|error| error.to_string())?;
        let (Some(total), Some(left)) = (field(&text, "MemTotal"), field(&text, "MemAvailable")) else {
            return Ok(());
        };
        if left >= limits.memory_bytes {
            return Ok(());
        }
        Err(format!(
            "the image's template and the machine's kernel take {} of {} MiB, which leaves less than the \
             memory limit of {} MiB; use an image whose template imports fewer modules",
            (total - left.min(total)) >> 20,
            total >> 20,
            limits.memory_bytes >> 20
        ))
    }

    /// Returns whether this machine has a kernel, and so a random generator and a clock, of its own.
    fn is_virtual_machine(&self) -> bool {
        matches!(self, Self::Port(_) | Self::Vsock(_))
    }
}

impl Door {
    /// Waits until there is a host.
    async fn open(&self) -> io::Result<Box<dyn Channel>> {
        match self {
            Self::Listener(listener) => Ok(Box::new(listener.accept().await?)),
            Self::Port(port) => Ok(Box::new(port.stream().await?)),
            Self::Socket(path) => loop {
                match UnixStream::connect(path).await {
                    Ok(stream) => return Ok(Box::new(stream)),
                    Err(error)
                        if matches!(
                            error.kind(),
                            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                        ) =>
                    {
                        tokio::time::sleep(PAUSE).await;
                    }
                    Err(error) => return Err(error),
                }
            },
        }
    }

    /// Tells a host that the stream to it, which was dropped, is not used any more. Other streams
    /// than that of a serial port say so themselves.
    pub async fn close(&self) -> io::Result<()> {
        match self {
            Self::Port(port) => port.end().await,
            Self::Socket(_) | Self::Listener(_) => Ok(()),
        }
    }

    /// Waits for a host and its first line, gives this machine its own seed, time and name, and answers.
    pub async fn wake(&self, host: &HostAddress) -> io::Result<(Box<dyn Channel>, Wake)> {
        loop {
            let mut channel = self.open().await?;
            match wake(channel.as_mut(), host).await {
                Ok(wake) => return Ok((channel, wake)),
                // The stream may still be that of a host which has suspended this machine, and a
                // restored machine closes its connections, which can include the host's first one.
                Err(error) if is_closed(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns the bytes of a line such as `MemTotal:  1234 kB`.
fn field(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

/// Waits for the host's first line, gives this machine its own seed, time and name, and answers.
async fn wake(channel: &mut dyn Channel, host: &HostAddress) -> io::Result<Wake> {
    let mut channel = channel;
    let wake = Wake::receive(&mut channel).await?;
    let Some(seed) = wake.seed() else {
        let reason = "the host's seed is not 64 hexadecimal digits";
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    };
    if host.is_virtual_machine() {
        cellblock_jail::machine::stir(&seed)?;
        let time = Duration::from_nanos(wake.time_ns);
        let time = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        clock_settime(ClockId::Realtime, time)?;
    }
    rustix::system::sethostname(wake.identity.as_bytes())?;
    wake.answer(&mut channel).await?;
    Ok(wake)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_memory_are_bytes() {
        let text = "MemTotal:        1024 kB\nMemFree:  1 kB\nMemAvailable:\t512 kB\n";
        assert_eq!(field(text, "MemTotal"), Some(1 << 20));
        assert_eq!(field(text, "MemAvailable"), Some(512 << 10));
        assert_eq!(field(text, "Mem"), None);
    }

    #[test]
    fn addresses_are_read_and_others_are_errors() {
        assert!(matches!("vsock:5000".parse(), Ok(HostAddress::Vsock(5000))));
        assert!(matches!("port:x".parse(), Ok(HostAddress::Port(name)) if name == "x"));
        for wrong in ["vsock:x", "tcp:1", ""] {
            assert!(wrong.parse::<HostAddress>().is_err(), "{wrong}");
        }
    }
}
