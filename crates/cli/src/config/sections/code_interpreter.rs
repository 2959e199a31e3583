//! The tool `code_interpreter`, under keys that other gateways use for it too.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use cellblock_settings::Time;

/// The tool `code_interpreter`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CodeInterpreter {
    /// Whether the tool is offered. If not, requests that use it are rejected.
    pub(crate) enabled: bool,
    /// Offer the tool in every chat completion. Otherwise only chat completions that list it in
    /// `tools` have it.
    pub(crate) chat_completions: bool,
    /// Sandboxes and timeouts of code.
    pub(crate) settings: CodeInterpreterSettings,
}

/// Sandboxes and timeouts of code.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Settings")]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CodeInterpreterSettings {
    /// Run code on another Cellblock, or on any server with `/execute` and `/health`, instead of on
    /// this machine. The same as `sandbox_url`.
    pub(crate) sandbox_url: Option<String>,
    /// Template of sandboxes in a Kubernetes cluster. The same as `kubernetes.template` with
    /// `backend: kubernetes`.
    pub(crate) sandbox_template: Option<String>,
    /// Namespace of those sandboxes. The same as `kubernetes.namespace`.
    pub(crate) sandbox_namespace: Option<String>,
    /// Timeout of code. The same as `limits.cell_timeout`.
    pub(crate) execution_timeout: Option<Time>,
    /// Maximum time to wait for a sandbox. The same as `pool.acquire_timeout`.
    pub(crate) claim_timeout: Option<Time>,
}

impl Default for CodeInterpreter {
    fn default() -> Self {
        Self {
            enabled: true,
            chat_completions: false,
            settings: CodeInterpreterSettings::default(),
        }
    }
}

impl CodeInterpreter {
    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        let path = |key| ["providers", "code_interpreter", "settings", key];
        let settings = &self.settings;
        if settings.sandbox_url.is_some() && settings.sandbox_template.is_some() {
            check.wrong(
                &path("sandbox_template"),
                "cannot be combined with `sandbox_url`: code runs in one place; remove one of the two",
            );
        }
        if settings.sandbox_namespace.is_some() && settings.sandbox_template.is_none() {
            check.wrong(
                &path("sandbox_namespace"),
                "has an effect only with `sandbox_template`; remove it",
            );
        }
    }
}
