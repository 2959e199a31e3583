//! TCP ports of a session: what listens in its sandbox, and connections to it from the host.

use crate::error::{Error, Result};
pub use crate::port_error::PortError;
use crate::session::Session;
pub use cellblock_sandbox::guest::SandboxStream;

/// The ports of a session.
#[derive(Clone, Copy, Debug)]
pub struct Ports<'a>(&'a Session);

impl Session {
    /// Returns its ports. They can be used while a cell runs.
    pub const fn ports(&self) -> Ports<'_> {
        Ports(self)
    }
}

impl Ports<'_> {
    /// Returns the ports on which programs listen, sorted; none if the session has no network or no sandbox.
    pub async fn list(self) -> Result<Vec<u16>> {
        match self.0.table.link()? {
            Some(link) if !self.0.network.is_none() => Ok(link.ports().await?),
            _ => Ok(Vec::new()),
        }
    }

    /// Connects to a port. The session is in use as long as the connection is open.
    pub async fn connect(self, port: u16) -> Result<SandboxStream> {
        if self.0.network.is_none() {
            return Err(PortError::NoNetwork { port }.into());
        }
        let link = self.0.table.link()?.ok_or(PortError::NoSandbox { port })?;
        let connection = link.connect(port).await.map_err(|error| refused(port, error))?;
        Ok(connection.into_stream(self.0.table.in_use()))
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
