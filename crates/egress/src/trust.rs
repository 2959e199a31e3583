//! The authorities by which servers are verified.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, crypto};
use rustls_platform_verifier::Verifier;
use tokio_rustls::TlsConnector;

/// The system's certificates, and the caller's. They are read when the first server is verified.
#[derive(Debug)]
pub(crate) struct Trust {
    roots: Vec<CertificateDer<'static>>,
    config: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Trust {
    pub(crate) const fn new(roots: Vec<CertificateDer<'static>>) -> Self {
        let config = OnceLock::new();
        Self { roots, config }
    }

    /// Returns what makes verified connections.
    pub(crate) fn connector(&self) -> Result<TlsConnector, String> {
        // Reading the system's certificates takes longer than a handshake, so all proxies without
        // own certificates share them.
        static SYSTEM: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
        let config = if self.roots.is_empty() {
            &SYSTEM
        } else {
            &self.config
        };
        let config = config.get_or_init(|| verified(&self.roots).map_err(|error| error.to_string()));
        config.clone().map(TlsConnector::from)
    }
}

/// Returns the system's certificates as text, for code that verifies servers itself.
pub(crate) fn system_pem() -> &'static str {
    static SYSTEM: OnceLock<String> = OnceLock::new();
    SYSTEM.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs();
        found.certs.iter().map(|certificate| pem(certificate)).collect()
    })
}

/// Writes a certificate as text.
pub(crate) fn pem(certificate: &CertificateDer<'_>) -> String {
    pem_of("CERTIFICATE", certificate)
}

/// Writes bytes as text with a label.
pub(crate) fn pem_of(label: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines = text
        .as_bytes()
        .chunks(64)
        .map(|line| String::from_utf8_lossy(line) + "\n");
    [format!("-----BEGIN {label}-----\n").into()]
        .into_iter()
        .chain(lines)
        .chain([format!("-----END {label}-----\n").into()])
        .collect()
}

fn verified(roots: &[CertificateDer<'static>]) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(crypto::ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(roots.iter().cloned(), Arc::clone(&provider))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
