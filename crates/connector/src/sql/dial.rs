//! Connections to servers: the name is resolved once, and the connection goes to an address that was checked.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use cellblock_interpreter::connector::ConnectorError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::target::ServerAddress;
use crate::address::{PrivateAddress, resolved};

/// Bytes from and to a server.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Address at which a server answered, so that a second connection goes to the same one.
#[derive(Clone, Debug)]
pub(super) enum ServerEndpoint {
    Socket(PathBuf),
    Address(SocketAddr),
}

impl ServerAddress {
    /// Returns the addresses of a server that may be connected to.
    pub(super) async fn addresses(&self) -> Result<Vec<ServerEndpoint>, ConnectorError> {
        match self {
            Self::Socket(path) => Ok(vec![ServerEndpoint::Socket(path.clone())]),
            Self::Host {
                host,
                port,
                allow_private,
                ..
            } => {
                let found = resolved(host, *port, *allow_private).await;
                let found = found.map_err(|error| {
                    let text = match error.downcast_ref::<PrivateAddress>() {
                        Some(private) => private.to_string(),
                        None => format!("`{host}` could not be resolved: {error}"),
                    };
                    ConnectorError::provider(text)
                })?;
                Ok(found.into_iter().map(ServerEndpoint::Address).collect())
            }
        }
    }

    /// Connects to a server.
    pub(super) async fn dial(&self) -> Result<(Box<dyn Wire>, ServerEndpoint), ConnectorError> {
        let mut last = None;
        for reached in self.addresses().await? {
            match reached.dial().await {
                Ok(wire) => return Ok((wire, reached)),
                Err(error) => last = Some(error),
            }
        }
        Err(unreachable(
            &last.unwrap_or_else(|| io::Error::other("it has no address")),
        ))
    }
}

impl ServerEndpoint {
    pub(super) async fn dial(&self) -> io::Result<Box<dyn Wire>> {
        Ok(match self {
            Self::Socket(path) => Box::new(UnixStream::connect(path).await?),
            Self::Address(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
        })
    }
}

/// Returns the error of a server that cannot be connected to, or broke the connection. Its host is
/// not named, because that is not for the sandbox.
pub(super) fn unreachable(error: &(dyn Error + 'static)) -> ConnectorError {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let text = format!("the database cannot be reached: {cause}");
    ConnectorError::provider(text)
}
