//! TLS, where certificates are given.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::options::TlsOptions;

/// Reason that TLS is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read, or is not PEM.
    #[error("read `{}` for TLS", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        source: PemError,
    },
    /// A file without a certificate.
    #[error("read `{}` for TLS: there is no certificate in it", path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
    /// Certificates and a key that cannot be used.
    #[error("use the certificates and the key for TLS")]
    Refused(#[from] rustls::Error),
}

/// Interval between two checks of whether the files have changed.
const LOOK: Duration = Duration::from_secs(5);

/// Encrypts connections.
#[derive(Debug)]
pub(super) struct Tls {
    options: TlsOptions,
    current: Mutex<Current>,
}

struct Current {
    acceptor: TlsAcceptor,
    stamps: [Option<SystemTime>; 2],
    looked: Instant,
}

impl std::fmt::Debug for Current {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Current").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files.
    pub(super) fn load(options: &TlsOptions) -> Result<Self, TlsError> {
        // Before the files, so that a change meanwhile is seen the next time.
        let stamps = stamps(options);
        let acceptor = acceptor(options)?;
        Ok(Self {
            options: options.clone(),
            current: Mutex::new(Current {
                acceptor,
                stamps,
                looked: Instant::now(),
            }),
        })
    }

    /// Returns the acceptor that encrypts the next connection. Files that have changed are read first; if
    /// they cannot be used, those before them still are.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut current = self.current.lock();
        if current.looked.elapsed() >= LOOK {
            current.looked = Instant::now();
            self.look(&mut current);
        }
        current.acceptor.clone()
    }

    /// Reads the files again without waiting for the time to do so, or for a change that the file
    /// system's clock is fine enough to show.
    #[cfg(test)]
    pub(super) fn look_now(&self) {
        let mut current = self.current.lock();
        current.stamps = [None; 2];
        self.look(&mut current);
    }

    fn look(&self, current: &mut Current) {
        let stamps = stamps(&self.options);
        if stamps == current.stamps {
            return;
        }
        match acceptor(&self.options) {
            Ok(acceptor) => {
                tracing::info!("read the changed certificates");
                current.acceptor = acceptor;
                current.stamps = stamps;
            }
            // One file may have been written and the other not yet; the next look sees both.
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the changed certificates cannot be used"
            ),
        }
    }
}

fn stamps(options: &TlsOptions) -> [Option<SystemTime>; 2] {
    let stamp = |path: &Path| path.metadata().and_then(|it| it.modified()).ok();
    [stamp(&options.certificates), stamp(&options.key)]
}

fn acceptor(options: &TlsOptions) -> Result<TlsAcceptor, TlsError> {
    let read = |path: &PathBuf| {
        let path = path.clone();
        move |source| TlsError::Read { path, source }
    };
    let path = &options.certificates;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(read(path))?.collect();
    let certificates = certificates.map_err(read(path))?;
    if certificates.is_empty() {
        return Err(TlsError::Empty { path: path.clone() });
    }
    let key = PrivateKeyDer::from_pem_file(&options.key).map_err(read(&options.key))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_that_cannot_be_used_are_told_with_their_file() {
        let dir = tempfile::tempdir().unwrap();
        let options = TlsOptions {
            certificates: dir.path().join("cert.pem"),
            key: dir.path().join("key.pem"),
        };
        let told = |options| Tls::load(options).unwrap_err().to_string();
        let certificates = options.certificates.display();
        assert_eq!(told(&options), format!("read `{certificates}` for TLS"));
        std::fs::write(&options.certificates, "not a certificate").unwrap();
        assert_eq!(
            told(&options),
            format!("read `{certificates}` for TLS: there is no certificate in it")
        );
    }
}
