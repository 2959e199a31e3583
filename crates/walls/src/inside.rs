//! The other side of the wall: what a machine does between its snapshot and its first request.

use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

use crate::wake::Wake;

/// Pause between two attempts to connect to a socket that is not there before the restore.
pub const PAUSE: Duration = Duration::from_millis(2);

/// A stream to the host.
pub trait Channel: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Channel for T {}

/// Where the host is reached.
#[derive(Clone, Debug)]
pub enum HostAddress {
    /// A socket that appears after the restore.
    Socket(PathBuf),
}

impl FromStr for HostAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("socket", path)) => Ok(Self::Socket(path.into())),
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
        }
    }
}

/// Waits for the host's first line, gives this machine its own seed, time and name, and answers.
pub async fn wake(channel: &mut dyn Channel) -> io::Result<Wake> {
    let mut channel = channel;
    let wake = Wake::receive(&mut channel).await?;
    if wake.seed().is_none() {
        let reason = "the host's seed is not 64 hexadecimal digits";
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    rustix::system::sethostname(wake.identity.as_bytes())?;
    wake.answer(&mut channel).await?;
    Ok(wake)
}
