//! Values that programs get from the operator.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::options::{GivenValue, is_secret};
use crate::recipe::OptionMistake;

/// Values by name, and which of them are secrets.
#[derive(Clone, Default)]
pub struct GivenValues {
    /// All values.
    pub values: BTreeMap<String, String>,
    /// The values that are removed from everything that comes back.
    pub secrets: Vec<String>,
}

impl GivenValues {
    /// Reads values that are written below a key.
    pub(crate) fn read(
        key: &str,
        written: &BTreeMap<String, GivenValue>,
        folder: Option<&Path>,
        mistakes: &mut Vec<OptionMistake>,
    ) -> Self {
        let mut given = Self::default();
        for (name, value) in written {
            let value = match value {
                GivenValue::Secret(secret) => {
                    let secret = secret.read(folder);
                    secret.inspect(|secret| given.secrets.extend(secret.clone()))
                }
                GivenValue::Text(_) if is_secret(name) => Err("a configuration must not contain secrets; \
                     write `{env: NAME}` or `{file: PATH}` with its source"
                    .to_owned()),
                GivenValue::Text(text) if text.contains('\0') => {
                    Err("must not have a NUL character".to_owned())
                }
                GivenValue::Text(text) => Ok(Some(text.clone())),
            };
            match value {
                Ok(value) => given.values.extend(value.map(|value| (name.clone(), value))),
                Err(problem) => mistakes.push(OptionMistake::new(&[key, name], problem)),
            }
        }
        given
    }
}

impl fmt::Debug for GivenValues {
    /// Without the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GivenValues")
            .field(&self.values.keys().collect::<Vec<_>>())
            .finish()
    }
}
