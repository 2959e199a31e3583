//! The other side of the wall: what a machine does between its snapshot and its first request.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_settime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

use crate::wake::Wake;

/// Pause between two attempts to connect to a socket that is not there before the restore.
pub const PAUSE: Duration = Duration::from_millis(2);

/// Size of the buffers between a serial port and its stream: the largest write that a port takes at once.
const PORT_BUFFER: usize = 32 << 10;

/// Where the kernel lists serial ports.
const PORTS: &str = "/sys/class/virtio-ports";

/// A stream to the host.
pub trait Channel: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Channel for T {}

/// Where the host is reached.
#[derive(Clone, Debug)]
pub enum HostAddress {
    /// A socket that appears after the restore.
    Socket(PathBuf),
    /// The serial port with this name of a virtual machine.
    Port(String),
}

impl FromStr for HostAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("socket", path)) => Ok(Self::Socket(path.into())),
            Some(("port", path)) => Ok(Self::Port(path.into())),
            _ => Err(format!(
                "`{text}` is not an address of a host, such as `socket:/run/cb/host`"
            )),
        }
    }
}

impl HostAddress {
    /// Waits until there is a host.
    pub async fn connect(&self) -> io::Result<Box<dyn Channel>> {
        match self {
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
            Self::Port(name) => Ok(Box::new(port(&device(name)?)?)),
        }
    }

    /// Returns whether this machine has a kernel, and so a random generator and a clock, of its own.
    fn is_virtual_machine(&self) -> bool {
        matches!(self, Self::Port(_))
    }
}

/// Returns the device of the port with a name. Its number depends on the order of the machine's devices.
fn device(name: &str) -> io::Result<PathBuf> {
    for entry in fs::read_dir(PORTS)?.flatten() {
        let found = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
        if found.trim_end() == name {
            return Ok(Path::new("/dev").join(entry.file_name()));
        }
    }
    let reason = format!("this machine has no serial port `{name}`");
    Err(io::Error::new(io::ErrorKind::NotFound, reason))
}

/// Returns a stream to a serial port. Two threads copy, because a port is not a socket: a short read of it does
/// not mean that nothing is left, which the runtime assumes of what it polls.
fn port(path: &Path) -> io::Result<UnixStream> {
    let device = File::options().read(true).write(true).open(path)?;
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    copy(device.try_clone()?, theirs.try_clone()?);
    copy(theirs, device);
    UnixStream::from_std(ours)
}

/// Copies until one of them ends.
fn copy(mut from: impl Read + Send + 'static, mut to: impl Write + Send + 'static) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; PORT_BUFFER];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
    });
}

/// Waits for the host's first line, gives this machine its own seed, time and name, and answers.
pub async fn wake(channel: &mut dyn Channel, host: &HostAddress) -> io::Result<Wake> {
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
