//! The HTTP client of downloads.

use std::env;
use std::error::Error;
use std::path::Path;
use std::time::Duration;

use reqwest::Certificate;
use reqwest::blocking::Client;

/// Maximum time for a connection.
const CONNECT: Duration = Duration::from_secs(15);
/// Maximum wait for a response, and for each part of its body.
const SILENCE: Duration = Duration::from_mins(1);

/// Returns a client that trusts this machine's certificates, or those of browsers if there are
/// none.
pub(crate) fn client() -> reqwest::Result<Client> {
    let stores = [
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/cert.pem",
    ];
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"]
        .iter()
        .any(|it| env::var_os(it).is_some());
    // An error means that a provider of cryptography is installed already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder().connect_timeout(CONNECT).timeout(SILENCE);
    if !named && !stores.iter().any(|it| Path::new(it).exists()) {
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        let roots: Result<Vec<_>, _> = roots.map(|it| Certificate::from_der(it)).collect();
        builder = builder.tls_certs_only(roots?);
    }
    builder.build()
}

/// Returns an error with its causes.
pub(crate) fn reasons(error: &dyn Error) -> String {
    error.source().map_or_else(
        || error.to_string(),
        |cause| format!("{error}: {}", reasons(cause)),
    )
}
