//! Limits on the packages that cells may require.

use cellblock_settings::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LayerError, Requirement, check_count};
use crate::requirement::normalise;

/// Packages that code may require in addition to those of the image (`requirements` of a cell).
/// They are installed on the host as layers, which sessions share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Requirements")]
pub struct RequirementOptions {
    /// Names of the packages that may be required; `*` stands for all, and an empty list for none.
    /// What these packages depend on is installed with them, whether or not it is listed.
    pub allow: Vec<String>,
    /// Maximum size on disk of all layers together, and therefore of one. If a new layer does not
    /// fit, layers are removed that no session uses and that none has used for two days, those that
    /// were used least recently first; if that is not enough, it is rejected.
    #[serde(with = "Size")]
    pub max_bytes: u64,
    /// Layers that a key may have installed per day (UTC), failed attempts included; `null` removes
    /// the limit. Requirements for which there is a layer already do not count.
    pub per_key_per_day: Option<u64>,
}

impl Default for RequirementOptions {
    fn default() -> Self {
        Self {
            allow: vec!["*".to_owned()],
            max_bytes: 20 << 30,
            per_key_per_day: Some(100),
        }
    }
}

impl RequirementOptions {
    /// Checks that requirements are valid and name only packages that are allowed.
    pub fn check(&self, requirements: &[String]) -> Result<(), LayerError> {
        check_count(requirements)?;
        let allowed: Vec<_> = self.allow.iter().map(|name| normalise(name.trim())).collect();
        let mut packages = Vec::new();
        for requirement in requirements {
            let requirement: Requirement = requirement.parse()?;
            let name = requirement.name();
            if !allowed.iter().any(|allowed| allowed == "*" || allowed == name) {
                packages.push(name.to_owned());
            }
        }
        if packages.is_empty() {
            return Ok(());
        }
        let allowed = self.allow.clone();
        Err(LayerError::NotAllowed { packages, allowed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(allow: &[&str], requirements: &[&str]) -> Result<(), LayerError> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let options = RequirementOptions {
            allow: owned(allow),
            ..RequirementOptions::default()
        };
        options.check(&owned(requirements))
    }

    #[test]
    fn only_allowed_packages_may_be_required() {
        check(&["*"], &["anything>=1", "else"]).unwrap();
        check(&["Scikit_Learn", "six"], &["scikit-learn[extra]>=1", "SIX"]).unwrap();
        let error = check(&["six", "rich"], &["six", "attrs>=23", "emoji"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this server does not permit `attrs`, `emoji`; require only `six`, `rich`, or use \
             what is installed"
        );
        assert!(error.is_callers());
        let error = check(&[], &["six"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this server does not permit `six`; it permits no packages; use what is installed"
        );
        let error = check(&["six"], &["./six"]).unwrap_err();
        assert!(matches!(error, LayerError::Requirement(_)), "{error}");
    }
}
