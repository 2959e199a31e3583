//! The certificate authority of a proxy and its branches. Only their sandboxes trust it, and its key is
//! only in the memory of the host.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, crypto};

use crate::target::TargetHost;
use crate::trust::pem;

const DAY: Duration = Duration::from_hours(24);
/// Validity of certificates: longer than any session.
const VALID: Duration = Duration::from_hours(365 * 24);
/// Maximum number of hosts whose certificates are kept.
const MAX_KEPT: usize = 256;

/// The certificate authority could not be created, or could not sign.
#[derive(Debug, thiserror::Error)]
#[error("cannot create a certificate")]
pub struct AuthorityError {
    #[from]
    source: rcgen::Error,
}

/// Signs certificates for the hosts whose connections are intercepted.
pub(crate) struct CertificateAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// The key of all certificates: a key for each host would protect nothing more.
    key: KeyPair,
    kept: Mutex<HashMap<TargetHost, Arc<ServerConfig>>>,
}

impl CertificateAuthority {
    pub(crate) fn new(session: &str) -> Result<Self, AuthorityError> {
        let mut params = params()?;
        // The name is for people who look at the certificates inside.
        let name: String = session
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(32)
            .collect();
        params
            .distinguished_name
            .push(DnType::CommonName, format!("Cellblock egress {name}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Ok(Self {
            issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)?,
            key: KeyPair::generate()?,
            kept: Mutex::default(),
        })
    }

    /// Returns the authority's certificate as PEM.
    pub(crate) fn pem(&self) -> String {
        pem(self.issuer.der())
    }

    /// Returns the TLS settings of a host.
    pub(crate) fn server(&self, host: &TargetHost) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut kept = self.kept.lock();
        if let Some(config) = kept.get(host) {
            return Ok(Arc::clone(config));
        }
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        let config = Arc::new(self.sign(host)?);
        kept.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }

    fn sign(&self, host: &TargetHost) -> Result<ServerConfig, AuthorityError> {
        let name = match host {
            TargetHost::Name(name) => SanType::DnsName(name.as_str().try_into()?),
            TargetHost::Ip(address) => SanType::IpAddress(*address),
        };
        let leaf = leaf(vec![name])?.signed_by(&self.key, &self.issuer)?;
        let key = PrivateKeyDer::Pkcs8(self.key.serialize_der().into());
        let mut config = builder()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)
            .map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Returns TLS settings without a certificate, with which every handshake ends in an alert.
pub(crate) fn refusing() -> Arc<ServerConfig> {
    Arc::new(
        builder()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(EmptyResolver)),
    )
}

#[derive(Debug)]
struct EmptyResolver;

impl ResolvesServerCert for EmptyResolver {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        None
    }
}

fn builder() -> rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier> {
    let provider = Arc::new(crypto::ring::default_provider());
    #[expect(clippy::expect_used, reason = "the provider supports the default versions")]
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports TLS 1.2 and 1.3")
}

/// Returns the contents of a server's certificate.
pub(crate) fn leaf(names: Vec<SanType>) -> Result<CertificateParams, AuthorityError> {
    let mut params = params()?;
    params.subject_alt_names = names;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// Returns what certificates of authorities and servers have in common.
pub(crate) fn params() -> Result<CertificateParams, AuthorityError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    let now = SystemTime::now();
    // The clock inside may be slow.
    params.not_before = (now - DAY).into();
    params.not_after = (now + VALID).into();
    Ok(params)
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CertificateAuthority")
            .finish_non_exhaustive()
    }
}
