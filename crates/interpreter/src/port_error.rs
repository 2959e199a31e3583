//! Reasons that a port of a session could not be reached.

/// Reason that a port of a session could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The session has no network of its own.
    #[error("reach port {port}: the session has no network; make one with `network: loopback`")]
    NoNetwork {
        /// The port.
        port: u16,
    },
    /// Nothing has run in the session, or its sandbox is gone.
    #[error("reach port {port}: the session has no sandbox at present; start the program that listens on it")]
    NoSandbox {
        /// The port.
        port: u16,
    },
    /// No program can be reached there.
    #[error("reach port {port}: {reason}; start one that listens on 127.0.0.1:{port} or on all addresses")]
    Closed {
        /// The port.
        port: u16,
        /// Description of the problem.
        reason: String,
    },
    /// Too many connections are open.
    #[error("reach port {port}: {reason}; close some of them first")]
    TooMany {
        /// The port.
        port: u16,
        /// Description of how many there are.
        reason: String,
    },
}

impl PortError {
    /// Returns a word for the kind of error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoNetwork { .. } => "session_without_network",
            Self::NoSandbox { .. } => "session_without_sandbox",
            Self::Closed { .. } => "port_closed",
            Self::TooMany { .. } => "too_many_connections",
        }
    }
}
