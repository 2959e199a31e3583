//! TCP ports of a session: what listens in its sandbox, and connections to it from the host.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use cellblock_sandbox::guest::SandboxStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Session;
use crate::error::{Error, Result};
pub use crate::port_error::PortError;

/// The ports of a session.
#[derive(Clone, Copy, Debug)]
pub struct Ports<'a>(&'a Session);

/// A connection to a port of a session, which is in use as long as the connection is open.
#[derive(Debug)]
pub struct PortStream {
    stream: SandboxStream,
    _in_use: Arc<()>,
}

impl Session {
    /// Returns its ports. They can be used while a cell runs.
    pub const fn ports(&self) -> Ports<'_> {
        Ports(self)
    }
}

impl Ports<'_> {
    /// Returns the ports on which programs listen, sorted; none if the session has no network or no sandbox.
    pub async fn list(self) -> Result<Vec<u16>> {
        match self.0.table.link() {
            Some(link) if !self.0.network.is_none() => Ok(link.ports().await?),
            _ => Ok(Vec::new()),
        }
    }

    /// Connects to a port.
    pub async fn connect(self, port: u16) -> Result<PortStream> {
        if self.0.network.is_none() {
            return Err(PortError::NoNetwork { port }.into());
        }
        let link = self.0.table.link().ok_or(PortError::NoSandbox { port })?;
        let connection = link.connect(port).await.map_err(|error| refused(port, error))?;
        Ok(PortStream {
            stream: connection.into_stream(),
            _in_use: self.0.table.in_use(),
        })
    }
}

/// Returns the meaning of a guest's refusal for a port.
fn refused(port: u16, error: cellblock_sandbox::Error) -> Error {
    let of_port = match error.guest_refusal() {
        Some(("no_network", _)) => PortError::NoNetwork { port },
        Some(("refused", reason)) => PortError::Closed {
            port,
            reason: reason.to_owned(),
        },
        Some(("too_many", reason)) => PortError::TooMany {
            port,
            reason: reason.to_owned(),
        },
        _ => return error.into(),
    };
    of_port.into()
}

impl AsyncRead for PortStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for PortStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
