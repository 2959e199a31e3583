//! Values that clients send and the server keeps: their size is limited where they are read.

use std::ops::Deref;

use cellblock_interpreter::json_size;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Limit of a path or a name.
pub(crate) const MAX_NAME: usize = 4096;
/// Limit of a program with its arguments and environment, or of the metadata of a sandbox.
pub(crate) const MAX_DESCRIPTION: usize = 128 * 1024;

/// A value with a limit on its size as JSON, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BoundedValue<T, const MAX: usize>(T);

/// A path or a name.
pub(crate) type BoundedName = BoundedValue<String, MAX_NAME>;
/// A description that consists of several texts.
pub(crate) type BoundedDescription<T> = BoundedValue<T, MAX_DESCRIPTION>;

impl<T, const MAX: usize> BoundedValue<T, MAX> {
    /// Returns the value.
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

impl<T: Serialize, const MAX: usize> BoundedValue<T, MAX> {
    /// Accepts a value of at most the limit.
    ///
    /// # Errors
    ///
    /// Returns a description of a larger value, as a fragment.
    pub(crate) fn new(value: T) -> Result<Self, String> {
        let size = json_size(&value).map_err(|error| error.to_string())?;
        if size > MAX {
            return Err(format!(
                "too large: it has {size} bytes as JSON, the limit is {MAX}"
            ));
        }
        Ok(Self(value))
    }
}

impl<T, const MAX: usize> Deref for BoundedValue<T, MAX> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: Deserialize<'de> + Serialize, const MAX: usize> Deserialize<'de> for BoundedValue<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(T::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<T: Serialize, const MAX: usize> Serialize for BoundedValue<T, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Entries = BoundedValue<BTreeMap<String, String>, 16>;

    #[test]
    fn a_value_over_the_limit_is_rejected_with_its_size() {
        let read = |text: &str| serde_json::from_str::<BoundedValue<String, 8>>(text);
        assert_eq!(*read("\"123456\"").unwrap(), "123456");
        let error = read("\"1234567\"").unwrap_err().to_string();
        assert!(
            error.starts_with("too large: it has 9 bytes as JSON, the limit is 8"),
            "{error}"
        );
        // Many small entries take more memory than their text.
        assert!(serde_json::from_str::<Entries>(r#"{"a":"","b":""}"#).is_ok());
        assert!(serde_json::from_str::<Entries>(r#"{"a":"","b":"","c":""}"#).is_err());
    }
}
