//! The secret of a key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// What secrets begin with, so that they are found where they should not be.
const PREFIX: &str = "cbk_";
/// Random bytes.
const BYTES: usize = 32;

/// The secret of a key: `cbk_` and 256 random bits in base64url. It shows itself only when it is asked to.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; BYTES]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

impl Secret {
    /// A new one.
    pub fn random() -> Self {
        Self(crate::random())
    }

    /// Reads one; `None` where it cannot be one of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    /// As its owner has to know it.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0))
    }

    /// What is kept of it.
    pub(crate) fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }
}
