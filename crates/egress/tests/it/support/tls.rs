//! Certificates of servers, and TLS of clients.

use std::io;
use std::sync::Arc;

use cellblock_egress::EgressOptions;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, crypto};
use serde_json::json;
use tokio::io::DuplexStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Proxy, connect};

/// An authority that signs certificates of servers.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    pub(crate) fn root(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// Returns the settings of a server with a certificate for a name or an address.
    pub(crate) fn server(&self, name: &str) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let leaf = params.signed_by(&key, &self.issuer).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![leaf.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        Arc::new(config)
    }
}

/// Reads the certificate of a proxy's authority.
pub(crate) fn trusting(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// Starts TLS with a server name, trusting one authority.
pub(crate) async fn handshake(
    stream: DuplexStream,
    name: &str,
    root: CertificateDer<'static>,
) -> io::Result<TlsStream<DuplexStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(root).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Opens an intercepted connection to an address whose server has a certificate of the authority,
/// through a proxy that allows `GET` to it.
pub(crate) async fn intercepted(authority: &Authority, address: &str) -> (Proxy, TlsStream<DuplexStream>) {
    let options = EgressOptions {
        roots: vec![authority.root()],
        ..EgressOptions::default()
    };
    let policy = json!({ "allow": [{ "host": address, "methods": ["GET"] }] });
    let proxy = Proxy::new(policy, options);
    let (tunnel, _) = connect(&proxy, address).await;
    let root = trusting(&proxy.proxy.ca_pem().unwrap());
    let stream = handshake(tunnel, "127.0.0.1", root).await.unwrap();
    (proxy, stream)
}
