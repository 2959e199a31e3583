//! Public keys from files: PEM, or a JSON Web Key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;

/// Bytes before the 32 bytes of an Ed25519 key (RFC 8410).
const ED25519: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
/// The identifier of RSA, with its empty parameters (RFC 3279).
const RSA: [u8; 15] = [
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];

/// A public key. Its kind says which algorithm a token may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PublicKey {
    /// Ed25519.
    Ed25519(Vec<u8>),
    /// RSA: the modulus and the exponent, or both as PKCS#1.
    Rsa {
        /// The modulus.
        modulus: Vec<u8>,
        /// The exponent.
        exponent: Vec<u8>,
    },
    /// RSA as a sequence of both.
    RsaSequence(Vec<u8>),
}

impl PublicKey {
    /// Reads a key from the content of a file.
    pub(super) fn read(content: &[u8]) -> Result<Self, String> {
        if content.trim_ascii_start().starts_with(b"{") {
            let jwk = serde_json::from_slice(content).map_err(|error| format!("it is not JSON: {error}"))?;
            return Self::of_jwk(&jwk);
        }
        let info = SubjectPublicKeyInfoDer::from_pem_slice(content)
            .map_err(|error| format!("it has no `BEGIN PUBLIC KEY`: {error}"))?;
        Self::of_info(&info).ok_or_else(|| "it is not a key for Ed25519 or RSA".to_owned())
    }

    fn of_jwk(jwk: &Value) -> Result<Self, String> {
        let part = |name: &str| {
            let text = jwk[name].as_str().ok_or_else(|| format!("it has no `{name}`"))?;
            let decoded = URL_SAFE_NO_PAD.decode(text.trim_end_matches('='));
            decoded.map_err(|_| format!("its `{name}` is not base64url"))
        };
        if jwk.get("d").is_some() {
            return Err(
                "it is a private key; keep that with LibreChat, and put the public one here".to_owned(),
            );
        }
        match (jwk["kty"].as_str(), jwk["crv"].as_str()) {
            (Some("OKP"), Some("Ed25519")) => match part("x")? {
                key if key.len() == 32 => Ok(Self::Ed25519(key)),
                _ => Err("its `x` does not have 32 bytes".to_owned()),
            },
            (Some("RSA"), _) => Ok(Self::Rsa {
                modulus: part("n")?,
                exponent: part("e")?,
            }),
            _ => Err("it is not a key for Ed25519 or RSA".to_owned()),
        }
    }

    fn of_info(info: &[u8]) -> Option<Self> {
        if let Some(key) = info.strip_prefix(&ED25519) {
            return (key.len() == 32).then(|| Self::Ed25519(key.to_vec()));
        }
        let (body, rest) = element(0x30, info)?;
        let bits = body.strip_prefix(&RSA)?;
        let (bits, after) = element(0x03, bits)?;
        let sequence = bits.strip_prefix(&[0])?;
        (rest.is_empty() && after.is_empty()).then(|| Self::RsaSequence(sequence.to_vec()))
    }

    /// Returns the algorithm that a token must name.
    pub(super) const fn algorithm(&self) -> &'static str {
        match self {
            Self::Ed25519(_) => "EdDSA",
            Self::Rsa { .. } | Self::RsaSequence(_) => "RS256",
        }
    }

    /// Whether a signature is one of this key for this message.
    pub(super) fn verifies(&self, message: &[u8], signed: &[u8]) -> bool {
        match self {
            Self::Ed25519(key) => UnparsedPublicKey::new(&signature::ED25519, key).verify(message, signed),
            Self::RsaSequence(key) => {
                let algorithm = &signature::RSA_PKCS1_2048_8192_SHA256;
                UnparsedPublicKey::new(algorithm, key).verify(message, signed)
            }
            Self::Rsa { modulus, exponent } => {
                let components = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                components.verify(&signature::RSA_PKCS1_2048_8192_SHA256, message, signed)
            }
        }
        .is_ok()
    }
}

/// Splits a DER element with this tag from what follows it.
fn element(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            let length = bytes.iter().fold(0, |all, byte| all << 8 | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    (found == tag).then(|| rest.split_at_checked(length)).flatten()
}
