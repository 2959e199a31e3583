//! Authentication of callers. Each dialect finds the secret where its clients put it, and the program around
//! says whose it is.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;

use cellblock_interpreter::hosting::Owner;

/// Says whose a secret is.
pub trait Doorkeeper: fmt::Debug + Send + Sync {
    /// Returns the owner that a secret belongs to. Without a secret that is the one owner of a
    /// server without keys.
    fn owner<'a>(
        &'a self,
        secret: Option<&'a str>,
        path: &'a str,
        peer: Option<SocketAddr>,
    ) -> Pin<Box<dyn Future<Output = Result<Owner, NoEntry>> + Send + 'a>>;

    /// Returns whether an owner whose sandbox a request opens without its key, by an ID or a token,
    /// is let in: its key is neither revoked nor expired.
    fn admits<'a>(
        &'a self,
        owner: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<bool, NoEntry>> + Send + 'a>>;

    /// Asks whether the sessions of an owner, or of another name under which a dialect keeps
    /// things, are in this server. If not, the answer to the request is of no interest: the program
    /// around sends the request to the server that has them.
    fn at_home<'a>(
        &'a self,
        _name: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), NoEntry>> + Send + 'a>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Reason that nobody is let in, as a fragment for the dialect's own form of an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEntry {
    /// There is no secret, and one is needed; status 401.
    #[error("{0}")]
    NoKey(String),
    /// The secret opens nothing; status 401.
    #[error("{0}")]
    WrongKey(String),
    /// The secret may not be used here; status 403.
    #[error("{0}")]
    Forbidden(String),
    /// It cannot be found out now; status 503.
    #[error("{0}")]
    Unavailable(String),
}
