//! Certificates of the hosts of a domain.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use cellblock_egress::LocalAuthority;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, crypto};
use tokio_rustls::TlsAcceptor;

use crate::support::{handshake, trusting};

/// Returns whether a client that trusts an authority accepts a server with these files as a host.
async fn is_trusted(authority: &Path, certificate: &Path, key: &Path, host: &str) -> bool {
    let certificate = CertificateDer::from_pem_file(certificate).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::from_pem_file(key).unwrap())
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
            let found = is_trusted(&before, &files.certificate, &files.key, host).await;
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
async fn an_authority_signs_for_its_domain_alone() {
    let folder = tempfile::tempdir().unwrap();
    let own = LocalAuthority::open(folder.path(), "cell.localhost").unwrap();
    // The files of a host elsewhere, signed with the same key.
    let key = "authority.key";
    std::fs::create_dir(folder.path().join("bank.example")).unwrap();
    let [from, to] = ["cell.localhost", "bank.example"].map(|name| folder.path().join(name).join(key));
    std::fs::copy(from, to).unwrap();
    let other = LocalAuthority::open(folder.path(), "bank.example").unwrap();
    let files = other.files();
    let host = "www.bank.example";
    assert!(is_trusted(&files.authority, &files.certificate, &files.key, host).await);
    assert!(!is_trusted(&own.files().authority, &files.certificate, &files.key, host).await);
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
