//! The body of `POST /sandboxes`. A field that is accepted is enforced; others are refused by name.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::super::error::{Answer, Problem};
use super::super::volumes::VolumeMount;
use super::network_request::NetworkConfig;
use crate::bounded::{BoundedDescription, BoundedName};

/// Bytes of metadata, and of environment variables.
pub(super) const MAX_TEXT: usize = 64 * 1024;

/// A sandbox to create. Fields that nothing enforces are read so that they are refused by name.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewSandbox {
    #[serde(rename = "templateID")]
    template: Option<BoundedName>,
    pub(super) timeout: Option<u64>,
    pub(super) auto_pause: Option<bool>,
    pub(super) auto_pause_memory: Option<bool>,
    auto_resume: Option<AutoResume>,
    pub(super) secure: Option<bool>,
    #[serde(rename = "allow_internet_access")]
    pub(super) internet: Option<bool>,
    pub(super) network: Option<NetworkConfig>,
    pub(super) metadata: Option<BoundedDescription<BTreeMap<String, String>>>,
    pub(super) env_vars: Option<BoundedDescription<BTreeMap<String, String>>>,
    mcp: Option<BTreeMap<String, Value>>,
    iam: Option<Iam>,
    pub(super) volume_mounts: Option<Vec<VolumeMount>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AutoResume {
    enabled: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Iam {
    tokens: Option<BTreeMap<String, Value>>,
}

impl NewSandbox {
    /// One without a token, and otherwise with the defaults.
    pub(super) fn unsecured() -> Self {
        Self {
            secure: Some(false),
            ..Self::default()
        }
    }

    /// Returns the name of its template or snapshot.
    pub(super) fn template(&self) -> &str {
        self.template.as_ref().map_or("", |it| it.as_str())
    }

    /// Returns whether a request resumes it.
    pub(super) fn resumes(&self) -> bool {
        self.auto_resume.as_ref().is_some_and(|it| it.enabled)
    }

    /// Rejects what this server would not do.
    pub(super) fn check(&self) -> Answer<()> {
        if self.auto_pause_memory == Some(false) && self.resumes() {
            let why = "requests do not start a sandbox anew that was paused without its memory; leave \
                       `autoResume` out, and connect to it";
            return Err(Problem::unenforced("autoPauseMemory", &false, why));
        }
        // Values of the next ones may be secrets.
        if let Some(names) = self.mcp.as_ref().filter(|it| !it.is_empty()) {
            let names: Vec<_> = names.keys().collect();
            let why = "this server starts no MCP servers in sandboxes; run them with commands";
            return Err(Problem::unenforced("mcp", &names, why));
        }
        let tokens = self.iam.as_ref().and_then(|it| it.tokens.as_ref());
        if let Some(names) = tokens.filter(|it| !it.is_empty()) {
            let names: Vec<_> = names.keys().collect();
            let why = "sandboxes have no workload identity; pass credentials with `envs`";
            return Err(Problem::unenforced("iam.tokens", &names, why));
        }
        VolumeMount::check(self.volume_mounts.as_deref().unwrap_or_default())?;
        for (name, map) in [("metadata", &self.metadata), ("envVars", &self.env_vars)] {
            let pairs = map.iter().flat_map(|map| map.iter());
            let bytes: usize = pairs.map(|(name, value)| name.len() + value.len()).sum();
            if bytes > MAX_TEXT {
                return Err(Problem::invalid(format!(
                    "`{name}` has {bytes} bytes, the limit is {MAX_TEXT}"
                )));
            }
        }
        self.check_variables()
    }

    fn check_variables(&self) -> Answer<()> {
        for (name, value) in self.env_vars.iter().flat_map(|map| map.iter()) {
            if let Some(wrong) = [name, value].into_iter().find(|it| it.contains('\0')) {
                return Err(Problem::invalid(format!(
                    "`envVars`: {wrong:?} contains a NUL character"
                )));
            }
            if name.is_empty() || name.contains('=') {
                return Err(Problem::invalid(format!(
                    "`envVars`: {name:?} is not the name of a variable"
                )));
            }
        }
        Ok(())
    }
}
