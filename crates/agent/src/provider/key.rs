//! Keys of providers: from the environment or a file, and never shown.

use std::fmt;
use std::path::{Path, PathBuf};

/// A provider's key.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderKey(String);

/// The reason why the key is missing.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The environment variable is not set.
    #[error("read the provider's key: the environment variable `{name}` is not set or is not text")]
    Variable {
        /// Name of the variable.
        name: String,
    },
    /// The file cannot be read.
    #[error("read the provider's key from `{}`", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The key is empty or contains characters that are invalid in a header.
    #[error("read the provider's key: it is empty, or contains characters other than visible ASCII")]
    Unfit,
}

impl ProviderKey {
    /// Creates a key; surrounding blanks are removed.
    pub fn new(key: &str) -> Result<Self, KeyError> {
        let key = key.trim();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyError::Unfit);
        }
        Ok(Self(key.to_owned()))
    }

    /// Reads the key from an environment variable.
    pub fn from_environment(name: &str) -> Result<Self, KeyError> {
        let name = name.to_owned();
        let key = std::env::var(&name).map_err(|_| KeyError::Variable { name })?;
        Self::new(&key)
    }

    /// Reads the key from a file.
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        let path = path.to_owned();
        match std::fs::read_to_string(&path) {
            Ok(key) => Self::new(&key),
            Err(source) => Err(KeyError::File { path, source }),
        }
    }

    /// Returns the key itself, for a client that builds its own header.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the header with the key.
    pub fn header(&self) -> Option<reqwest::header::HeaderValue> {
        let mut value = reqwest::header::HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Removes the key from a text: some providers repeat a key that they reject.
    pub fn remove_from(&self, text: &str) -> String {
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for ProviderKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_a_file_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "sk-secret\n").unwrap();
        let key = ProviderKey::from_file(&path).unwrap();
        assert_eq!(key, ProviderKey::new("sk-secret").unwrap());
        assert_eq!(format!("{key:?}"), "Key([redacted])");
        let header = key.header().unwrap();
        assert_eq!(header, "Bearer sk-secret");
        assert_eq!(format!("{header:?}"), "Sensitive");
        assert_eq!(key.remove_from("bad key sk-secret!"), "bad key [key]!");
    }

    #[test]
    fn a_key_that_is_missing_or_unfit_is_an_error() {
        assert!(matches!(
            ProviderKey::from_environment("CELLBLOCK_TEST_NO_SUCH_KEY"),
            Err(KeyError::Variable { .. })
        ));
        assert!(matches!(
            ProviderKey::from_file(Path::new("/nowhere/key")),
            Err(KeyError::File { .. })
        ));
        for unfit in ["", " \n", "a b", "a\nb", "ключ"] {
            assert!(
                matches!(ProviderKey::new(unfit), Err(KeyError::Unfit)),
                "{unfit:?}"
            );
        }
        // Some variable that every test run has.
        assert_eq!(
            ProviderKey::from_environment("CARGO_PKG_NAME").unwrap(),
            ProviderKey::new("cellblock-agent").unwrap()
        );
    }
}
