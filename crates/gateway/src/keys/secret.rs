//! The secret of a key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// Prefix of secrets, so that they are found in places that should not have them.
const PREFIX: &str = "cbk_";
/// Prefix of E2B's secrets.
const E2B_PREFIX: &str = "e2b_";

/// Form in which a secret is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecretForm {
    /// `cbk_` and 256 random bits in base64url.
    #[default]
    Cellblock,
    /// `e2b_` and 160 random bits in hexadecimal, which E2B's clients look for.
    E2b,
}

/// The secret of a key, in one of its forms. It shows itself only when it is asked to.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(SecretBytes);

#[derive(Clone, Copy, PartialEq, Eq)]
enum SecretBytes {
    Cellblock([u8; 32]),
    E2b([u8; 20]),
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

impl Secret {
    /// A new one.
    pub fn random(form: SecretForm) -> Self {
        Self(match form {
            SecretForm::Cellblock => SecretBytes::Cellblock(crate::random()),
            SecretForm::E2b => SecretBytes::E2b(crate::random()),
        })
    }

    /// Reads one; `None` where it cannot be one of ours.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(digits) = text.strip_prefix(E2B_PREFIX) {
            return from_hex(digits.as_bytes()).map(|bytes| Self(SecretBytes::E2b(bytes)));
        }
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        bytes
            .try_into()
            .ok()
            .map(|bytes| Self(SecretBytes::Cellblock(bytes)))
    }

    /// As its owner has to know it.
    pub fn reveal(&self) -> String {
        match self.0 {
            SecretBytes::Cellblock(bytes) => format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)),
            SecretBytes::E2b(bytes) => bytes
                .iter()
                .fold(E2B_PREFIX.to_owned(), |all, byte| format!("{all}{byte:02x}")),
        }
    }

    /// Returns the hash that is stored for it.
    pub(crate) fn hash(&self) -> [u8; 32] {
        match self.0 {
            SecretBytes::Cellblock(bytes) => Sha256::digest(bytes),
            SecretBytes::E2b(bytes) => Sha256::digest(bytes),
        }
        .into()
    }
}

/// Reads lower-case hexadecimal digits, of which each secret has one form only.
fn from_hex(digits: &[u8]) -> Option<[u8; 20]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    if digits.len() != 40 {
        return None;
    }
    let mut bytes = [0; 20];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}
