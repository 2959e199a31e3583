//! Reasons that records cannot be in the Postgres database that a URL names.

use std::borrow::Cow;
use std::path::PathBuf;

/// Reason that a text is not the URL of a database. The message continues a sentence that starts with the
/// name of the setting, and does not repeat the URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidPostgresUrl(pub(super) Cow<'static, str>);

impl InvalidPostgresUrl {
    pub(super) const fn new(problem: &'static str) -> Self {
        Self(Cow::Borrowed(problem))
    }

    /// Fails unless a text names Postgres rather than something else.
    pub(super) fn unless_named(text: &str) -> Result<(), Self> {
        let mut schemes = ["postgres://", "postgresql://"].iter();
        if schemes.any(|scheme| text.starts_with(scheme)) {
            return Ok(());
        }
        Err(FORM)
    }
}

pub(super) const FORM: InvalidPostgresUrl =
    InvalidPostgresUrl::new("must be a URL such as `postgres://user:password@host/database`");

/// Reason that a server cannot be verified.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// The file cannot be read.
    #[error("read the certificates in `{}`, which `sslrootcert` names", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        source: rustls::pki_types::pem::Error,
    },
    /// There is no certificate.
    #[error(
        "there is no certificate to verify Postgres with; install `ca-certificates`, or name a file by \
         `sslrootcert` in the URL"
    )]
    Missing,
    /// TLS cannot be set up.
    #[error("set up TLS")]
    Tls(#[from] rustls::Error),
}
