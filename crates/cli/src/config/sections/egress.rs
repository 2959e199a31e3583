//! Hosts that code reaches with `network: egress`.

use cellblock_connector::SecretSource;
use cellblock_interpreter::egress::{
    AllowRule, EgressPolicy, EgressQuotas, EgressSecret, HostPattern, SecretRule,
};
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_settings::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::ConfigError;
use crate::config::check::Check;
use crate::config::file::LoadedConfig;
use crate::config::sections::limits::LimitsSection;

/// Hosts that code reaches with the network policy `egress`, through a proxy of the server.
/// Sessions have it if a request asks for it and `limits.max_network` is `egress`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Egress")]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EgressSection {
    /// The hosts: `HOST`, `*.DOMAIN` or an IP address, each with `:PORT` for another port than 80 and 443; or
    /// `{host, ports, methods}`, where `methods` makes the proxy look into encrypted requests.
    pub(crate) allow: Vec<AllowRule>,
    /// Headers with secret values that the proxy adds to requests. Code never has them.
    pub(crate) secrets: Vec<SecretHeaderSection>,
    /// Send secrets that requests bring (`domain_secrets`) unencrypted to other machines, too.
    pub(crate) allow_http_domain_secrets: bool,
    /// Maximum number of requests of a session; unlimited by default.
    pub(crate) max_requests: Option<u64>,
    /// Maximum number of bytes of a session, in both directions together; unlimited by default.
    pub(crate) max_bytes: Option<Size>,
}

/// A header with a secret value.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EgressSecretHeader")]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretHeaderSection {
    /// Hosts whose requests get it, which `allow` must list.
    pub(crate) host: HostPattern,
    /// Name of the header.
    pub(crate) header: String,
    /// Text before the value, such as `Bearer `.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) prefix: String,
    /// Source of the value, which is read when the server starts: `{env: NAME}` or `{file: PATH}`.
    pub(crate) value: SecretSource,
    /// Add it to unencrypted requests to other machines, too.
    #[serde(default)]
    pub(crate) allow_http: bool,
}

/// Path of the section.
const KEY: [&str; 1] = ["egress"];

impl EgressSection {
    pub(in crate::config) fn check(&self, limits: &LimitsSection, check: &mut Check<'_>) {
        if limits.max_network == NetworkPolicy::Egress && self.allow.is_empty() {
            let text = "is `egress`, which needs hosts; list them in `egress.allow`";
            check.wrong(&["limits", "max_network"], text);
        }
        for secret in &self.secrets {
            if let Err(problem) = secret.value.read(None) {
                check.wrong(&["egress", "secrets"], problem);
            }
        }
        // The values are not needed to know whether they can be used.
        let hidden = |_: &SecretHeaderSection| Some("value".to_owned());
        if let Err(error) = self.policy(hidden).check() {
            check.wrong(&KEY, error.to_string());
        }
    }

    fn policy(&self, mut value: impl FnMut(&SecretHeaderSection) -> Option<String>) -> EgressPolicy {
        let secrets = self.secrets.iter().filter_map(|secret| {
            Some(SecretRule {
                host: secret.host.clone(),
                header: secret.header.clone(),
                value: EgressSecret::new(format!("{}{}", secret.prefix, value(secret)?)),
                allow_http: secret.allow_http,
            })
        });
        EgressPolicy {
            secrets: secrets.collect(),
            allow: self.allow.clone(),
            allow_http_domain_secrets: self.allow_http_domain_secrets,
            quotas: EgressQuotas {
                max_requests: self.max_requests,
                max_bytes: self.max_bytes.map(|size| size.0),
            },
            ..EgressPolicy::default()
        }
    }
}

impl LoadedConfig {
    /// Returns what sessions with `network: egress` reach, if anything. Reads the secrets now.
    pub(crate) fn egress(&self) -> Result<Option<EgressPolicy>, ConfigError> {
        let section = &self.settings.egress;
        if section.allow.is_empty() {
            return Ok(None);
        }
        let mut check = Check::new(&self.tree);
        let policy = section.policy(|secret| self.secret(&["egress", "secrets"], &secret.value, &mut check));
        if check.mistakes.is_empty() {
            Ok(Some(policy))
        } else {
            Err(ConfigError::Wrong(check.mistakes))
        }
    }
}
