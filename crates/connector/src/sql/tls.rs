//! TLS of connections to servers.

use std::path::Path;

use cellblock_interpreter::connector::ConnectorError;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Returns the certificates that servers are verified with: those of a file, or the machine's.
pub(super) fn roots(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, ConnectorError> {
    // An error means that a cryptography provider is already installed, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificates = match file {
        Some(path) => CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|error| {
                // The path is not for the sandbox.
                tracing::warn!(path = %path.display(), %error, "the file in `sslrootcert` cannot be read");
                ConnectorError::provider("the file in `sslrootcert` of the URL cannot be read")
            })?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let usable =
        |certificate: &CertificateDer<'static>| RootCertStore::empty().add(certificate.clone()).is_ok();
    let certificates: Vec<_> = certificates.into_iter().filter(usable).collect();
    if certificates.is_empty() {
        let text = "there is no certificate to verify the database with; install `ca-certificates`, or \
                    name a file with `sslrootcert` in the URL";
        return Err(ConnectorError::provider(text));
    }
    Ok(certificates)
}
