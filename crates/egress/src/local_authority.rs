//! A certificate authority for the hosts of one domain that lead to this machine. Its files outlive the
//! server, so that clients trust it once.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints, SanType, SerialNumber,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

use crate::authority::{AuthorityError, leaf, params};
use crate::trust::{pem, pem_of};

/// Validity of the authority.
const VALID: Duration = Duration::from_hours(10 * 365 * 24);
/// Label of a private key as text.
const KEY: &str = "PRIVATE KEY";
/// Permissions of files with certificates, and of those with keys.
const READABLE: u32 = 0o644;
const PRIVATE: u32 = 0o600;

/// The authority of one domain. It can sign for nothing but hosts of that domain.
#[derive(Debug)]
pub struct LocalAuthority {
    domain: String,
    issuer: Issuer<'static, KeyPair>,
    key: KeyPair,
    files: LocalCertificate,
}

/// Files, as PEM, with which a server answers as any host of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalCertificate {
    /// Certificate of the authority, which clients have to trust.
    pub authority: PathBuf,
    /// Certificate of the hosts.
    pub certificate: PathBuf,
    /// Private key of the hosts' certificate.
    pub key: PathBuf,
}

/// A file of an authority cannot be used, or it could not sign.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalAuthorityError {
    /// A file cannot be read or written.
    #[error("{action} `{}`", path.display())]
    File {
        /// The action that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Reason of the failure.
        source: io::Error,
    },
    /// The file of the authority's key has something else.
    #[error(
        "`{}` is not a private key; remove its folder for a new authority, which clients have to trust again",
        path.display()
    )]
    Key {
        /// The file.
        path: PathBuf,
    },
    /// A certificate could not be signed.
    #[error(transparent)]
    Sign(#[from] AuthorityError),
}

impl LocalAuthority {
    /// Opens the authority of a domain, whose files are in a folder with its name, or makes it. The hosts
    /// get a new certificate and key.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written, or has something else.
    pub fn open(folder: &Path, domain: &str) -> Result<Self, LocalAuthorityError> {
        let folder = folder.join(domain);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(file("create", &folder))?;
        let files = LocalCertificate {
            authority: folder.join("authority.pem"),
            certificate: folder.join("hosts.pem"),
            key: folder.join("hosts.key"),
        };
        let key = folder.join("authority.key");
        let is_new = !key.exists();
        let own = authority_key(&key)?;
        let params = authority_params(domain)?;
        // A certificate of another key would fail at each client, and not here.
        if is_new || !files.authority.exists() {
            let signed = params.self_signed(&own).map_err(AuthorityError::from)?;
            write(&files.authority, &pem(signed.der()), READABLE)?;
        }
        let authority = Self {
            domain: domain.to_owned(),
            issuer: Issuer::new(params, own),
            key: KeyPair::generate().map_err(AuthorityError::from)?,
            files,
        };
        write(
            &authority.files.key,
            &pem_of(KEY, &authority.key.serialize_der()),
            PRIVATE,
        )?;
        authority.renew()?;
        Ok(authority)
    }

    /// Returns the files.
    pub const fn files(&self) -> &LocalCertificate {
        &self.files
    }

    /// Signs the certificate of the hosts anew; it is valid for a year.
    ///
    /// # Errors
    ///
    /// Its file cannot be written.
    pub fn renew(&self) -> Result<(), LocalAuthorityError> {
        let names = [format!("*.{}", self.domain), self.domain.clone()];
        let names: Result<Vec<_>, rcgen::Error> = names
            .into_iter()
            .map(|name| Ok(SanType::DnsName(name.try_into()?)))
            .collect();
        let mut params = leaf(names.map_err(AuthorityError::from)?)?;
        // By default the number is that of the key: browsers refuse two certificates with the same one.
        params.serial_number = Some(serial_number());
        let signed = params
            .signed_by(&self.key, &self.issuer)
            .map_err(AuthorityError::from)?;
        write(&self.files.certificate, &pem(signed.der()), READABLE)
    }
}

fn authority_params(domain: &str) -> Result<CertificateParams, AuthorityError> {
    let mut params = params()?;
    params
        .distinguished_name
        .push(DnType::CommonName, format!("Cellblock {domain}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_after = (SystemTime::now() + VALID).into();
    // Whoever gets the key cannot pretend to be anybody else's host.
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName(domain.to_owned())],
        excluded_subtrees: Vec::new(),
    });
    Ok(params)
}

/// Reads the key of the authority, or makes it.
fn authority_key(path: &Path) -> Result<KeyPair, LocalAuthorityError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let key = KeyPair::generate().map_err(AuthorityError::from)?;
            write(path, &pem_of(KEY, &key.serialize_der()), PRIVATE)?;
            return Ok(key);
        }
        Err(error) => return Err(file("read", path)(error)),
    };
    let key = PrivateKeyDer::from_pem_slice(&text)
        .ok()
        .and_then(|key| KeyPair::try_from(&key).ok());
    key.ok_or_else(|| LocalAuthorityError::Key {
        path: path.to_owned(),
    })
}

fn serial_number() -> SerialNumber {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    SerialNumber::from_slice(&since.as_nanos().to_be_bytes())
}

/// Writes a file as a whole, so that a reader sees the old or the new one.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), LocalAuthorityError> {
    let temporary = path.with_extension("new");
    let written = || {
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(mode).open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    written().map_err(file("write", path))
}

fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LocalAuthorityError {
    let path = path.to_owned();
    move |source| LocalAuthorityError::File { action, path, source }
}
