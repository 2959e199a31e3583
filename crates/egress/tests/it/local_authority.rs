//! Certificates of the hosts of a domain.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use cellblock_egress::LocalAuthority;
use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, crypto};
use tokio_rustls::TlsAcceptor;

use crate::support::{handshake, trusting};

/// Returns whether a client that trusts an authority accepts a server with this certificate as a host.
async fn is_trusted(
    authority: &Path,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    host: &str,
) -> bool {
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let root = trusting(&std::fs::read_to_string(authority).unwrap());
    let (client, server) = tokio::io::duplex(64 << 10);
    let accepted = tokio::spawn(TlsAcceptor::from(Arc::new(config)).accept(server));
    let done = handshake(client, host, root).await;
    accepted.await.unwrap().ok();
    done.is_ok()
}

#[tokio::test]
async fn hosts_of_the_domain_are_trusted_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = LocalAuthority::open(folder.path(), "cell.localhost").unwrap();
    let files = first.files().clone();
    let before = folder.path().join("before.pem");
    std::fs::copy(&files.authority, &before).unwrap();
    drop(first);
    let again = LocalAuthority::open(folder.path(), "cell.localhost").unwrap();
    for _ in 0..2 {
        for (host, expected) in [
            ("api.cell.localhost", true),
            ("3000-i0.cell.localhost", true),
            ("a.b.cell.localhost", false),
            ("api.other.localhost", false),
        ] {
            let certificate = CertificateDer::from_pem_file(&files.certificate).unwrap();
            let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
            let found = is_trusted(&before, certificate, key, host).await;
            assert_eq!(found, expected, "{host}");
        }
        let signed = std::fs::read(&files.certificate).unwrap();
        again.renew().unwrap();
        assert_ne!(std::fs::read(&files.certificate).unwrap(), signed);
    }
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let own = folder.path().join("cell.localhost");
    assert_eq!(mode(&own), 0o700);
    assert_eq!([mode(&files.key), mode(&own.join("authority.key"))], [0o600; 2]);
}

#[tokio::test]
async fn a_stolen_key_signs_for_no_other_domain() {
    let folder = tempfile::tempdir().unwrap();
    let authority = LocalAuthority::open(folder.path(), "cell.localhost").unwrap();
    let own = folder.path().join("cell.localhost/authority.key");
    let stolen = KeyPair::try_from(&PrivateKeyDer::from_pem_file(own).unwrap()).unwrap();
    let mut issuer = CertificateParams::new(Vec::new()).unwrap();
    issuer.distinguished_name = DistinguishedName::new();
    issuer
        .distinguished_name
        .push(DnType::CommonName, "Cellblock cell.localhost");
    let issuer = Issuer::new(issuer, stolen);
    let key = KeyPair::generate().unwrap();
    for (host, expected) in [("x.cell.localhost", true), ("www.bank.example", false)] {
        let leaf = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = leaf.signed_by(&key, &issuer).unwrap().der().clone();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let found = is_trusted(&authority.files().authority, certificate, key, host).await;
        assert_eq!(found, expected, "{host}");
    }
}

#[tokio::test]
async fn an_authority_with_a_new_key_gets_a_new_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let first = LocalAuthority::open(folder.path(), "cell.localhost").unwrap();
    let files = first.files().clone();
    std::fs::remove_file(folder.path().join("cell.localhost/authority.key")).unwrap();
    LocalAuthority::open(folder.path(), "cell.localhost").unwrap();
    let certificate = CertificateDer::from_pem_file(&files.certificate).unwrap();
    let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
    assert!(is_trusted(&files.authority, certificate, key, "api.cell.localhost").await);
}

#[test]
fn a_file_that_is_not_a_key_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("cell.localhost")).unwrap();
    std::fs::write(folder.path().join("cell.localhost/authority.key"), "x").unwrap();
    let error = LocalAuthority::open(folder.path(), "cell.localhost").unwrap_err();
    assert!(
        error.to_string().contains("authority.key` is not a private key"),
        "{error}"
    );
}
