//! A serial port as the stream to a host.
//!
//! A port has no connections: neither side hears that the other has closed its end, or only late.
//! So a machine says with a message of its own that it has stopped reading. What arrives after that
//! stays in the port for the stream to the next host.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread::{JoinHandle, spawn};

use cellblock_remote::END;
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::time::Timespec;
use tokio::net::UnixStream;

use super::PAUSE;

/// Size of the buffers between a port and its stream: the largest write that a port takes at once.
const BUFFER: usize = 32 << 10;

/// Directory in which the kernel lists serial ports.
const PORTS: &str = "/sys/class/virtio-ports";

/// A serial port that is open.
#[derive(Debug)]
pub struct SerialPort {
    device: File,
    /// Threads that copy between the port and its streams, until the last one ends.
    copying: Mutex<Vec<JoinHandle<()>>>,
}

impl SerialPort {
    pub(super) fn open(name: &str) -> io::Result<Self> {
        Ok(Self {
            device: File::options().read(true).write(true).open(device(name)?)?,
            copying: Mutex::default(),
        })
    }

    /// Waits for a host and returns a stream to it. Two threads copy, because a port is not a
    /// socket: a short read of it does not mean that nothing is left, which the runtime assumes of
    /// what it polls.
    pub(super) async fn stream(&self) -> io::Result<UnixStream> {
        // Before the restore, which may come later than this, a read would say that the stream has ended.
        while !has_host(&self.device)? {
            tokio::time::sleep(PAUSE).await;
        }
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (mut from_host, mut to_host) = (self.device.try_clone()?, self.device.try_clone()?);
        let (mut from_us, mut to_us) = (theirs.try_clone()?, theirs);
        let reader = spawn(move || {
            let mut buffer = vec![0; BUFFER];
            while has_input(&from_host, &to_us) && copy(&mut from_host, &mut to_us, &mut buffer) {}
            let _ = to_us.shutdown(Shutdown::Both);
        });
        let writer = spawn(move || {
            let mut buffer = vec![0; BUFFER];
            while copy(&mut from_us, &mut to_host, &mut buffer) {}
            let _ = from_us.shutdown(Shutdown::Both);
        });
        self.threads().extend([reader, writer]);
        UnixStream::from_std(ours)
    }

    /// Waits until nothing reads for the last stream, which was dropped, and says so to its host.
    pub(super) async fn end(&self) -> io::Result<()> {
        let threads: Vec<_> = self.threads().drain(..).collect();
        let mut device = self.device.try_clone()?;
        tokio::task::spawn_blocking(move || {
            for thread in threads {
                thread
                    .join()
                    .map_err(|_| io::Error::other("copying between the host and this machine failed"))?;
            }
            device.write_all(&END)
        })
        .await?
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.copying.lock()
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

/// Returns whether a host has the other end of a serial port.
fn has_host(device: &impl AsFd) -> io::Result<bool> {
    let mut state = [PollFd::new(device, PollFlags::IN)];
    poll(&mut state, Some(&Timespec::default()))?;
    Ok(!state[0].revents().contains(PollFlags::HUP))
}

/// Waits until the host has sent something or has left; returns whether anybody here still wants it.
fn has_input(device: &impl AsFd, stream: &impl AsFd) -> bool {
    let mut states = [
        PollFd::new(device, PollFlags::IN),
        PollFd::new(stream, PollFlags::empty()),
    ];
    retry_on_intr(|| poll(&mut states, None)).is_ok() && states[1].revents().is_empty()
}

/// Copies what is there; returns whether both are still open.
fn copy(from: &mut impl Read, to: &mut impl Write, buffer: &mut [u8]) -> bool {
    match from.read(buffer) {
        Ok(count @ 1..) => to.write_all(&buffer[..count]).is_ok(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn a_stream_whose_other_end_nobody_has_is_not_read() {
        let (machine, host) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(has_host(&machine).unwrap());
        drop(host);
        assert!(!has_host(&machine).unwrap());
    }

    #[tokio::test]
    async fn what_a_host_sends_after_the_end_is_for_the_next_stream() {
        let (machine, mut host) = std::os::unix::net::UnixStream::pair().unwrap();
        host.set_read_timeout(Some(LIMIT)).unwrap();
        let port = SerialPort {
            device: File::from(OwnedFd::from(machine)),
            copying: Mutex::default(),
        };
        let mut first = port.stream().await.unwrap();
        host.write_all(b"one").unwrap();
        let mut read = [0; 3];
        first.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"one");
        first.write_all(b"done").await.unwrap();
        drop(first);
        port.end().await.unwrap();
        let mut last = [0; 8];
        host.read_exact(&mut last).unwrap();
        assert_eq!(&last, b"done\0\0\0\0");
        host.write_all(b"two").unwrap();
        let mut second = port.stream().await.unwrap();
        second.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"two");
        // Without a host, the stream ends, too.
        drop(host);
        assert_eq!(second.read(&mut read).await.unwrap(), 0);
    }
}
