//! The stream socket of a virtual machine, to which the host connects.

use std::io;
use std::os::fd::OwnedFd;

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// The context id that stands for any of a machine's own (`VMADDR_CID_ANY`).
const ANY: u32 = u32::MAX;
/// Number of hosts that may wait: one, and one that came back before the end of the other was seen.
const BACKLOG: i32 = 2;

/// A listening stream socket of any address family.
#[derive(Debug)]
pub struct StreamListener {
    socket: Socket,
    /// The same socket as the runtime waits for any.
    readiness: UnixStream,
}

impl StreamListener {
    /// Listens on a port of virtual sockets.
    pub(super) fn vsock(port: u32) -> io::Result<Self> {
        Self::bind(Domain::VSOCK, &SockAddr::vsock(ANY, port))
    }

    fn bind(domain: Domain, address: &SockAddr) -> io::Result<Self> {
        let socket = Socket::new(domain, Type::STREAM, None)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)?;
        let readiness = stream(socket.try_clone()?)?;
        Ok(Self { socket, readiness })
    }

    /// Waits for a host.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        let accept = || self.socket.accept();
        let (accepted, _) = self.readiness.async_io(Interest::READABLE, accept).await?;
        stream(accepted)
    }
}

/// A socket as a stream of the runtime, which waits for, reads and writes any stream socket as it
/// does those of Unix.
fn stream(socket: Socket) -> io::Result<UnixStream> {
    socket.set_nonblocking(true)?;
    UnixStream::from_std(OwnedFd::from(socket).into())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn hosts_come_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host");
        let listener = StreamListener::bind(Domain::UNIX, &SockAddr::unix(&path).unwrap()).unwrap();
        for word in ["one", "two"] {
            let host = async {
                tokio::task::yield_now().await;
                let mut stream = UnixStream::connect(&path).await.unwrap();
                stream.write_all(word.as_bytes()).await.unwrap();
            };
            let machine = async {
                let mut said = String::new();
                let mut stream = listener.accept().await.unwrap();
                stream.read_to_string(&mut said).await.unwrap();
                said
            };
            assert_eq!(tokio::join!(machine, host).0, word);
        }
    }
}
