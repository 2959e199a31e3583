//! `network_policy`: the hosts that code reaches, and secrets for them. Containers, tools that make
//! containers, and sessions have it in the same form.

use cellblock_interpreter::egress::{DomainSecret, EgressSecret, HostPattern};
use cellblock_interpreter::session::is_reserved_variable;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fields::{Fields, RequestFields as _};
use crate::wire::error::ApiError;

/// Maximum number of domains.
const MAX_DOMAINS: usize = 128;
/// Maximum number of secrets.
const MAX_SECRETS: usize = 32;
/// Maximum length of a variable's name.
const MAX_NAME: usize = 64;
/// Maximum size of a secret's value in bytes.
const MAX_VALUE: usize = 8 << 10;

/// Hosts that code reaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkAllowlist {
    r#type: AllowlistType,
    /// The hosts, each a name or an IP address without a port.
    pub allowed_domains: Vec<HostPattern>,
    /// Secrets of hosts that are listed. They are neither returned nor stored.
    #[serde(skip)]
    pub domain_secrets: Vec<DomainSecret>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AllowlistType {
    Allowlist,
}

impl NetworkAllowlist {
    /// Parses a `network_policy`; `None` if it disables the network.
    ///
    /// # Errors
    ///
    /// Returns an error about the first invalid field, whose name begins with `path`, the policy's path in
    /// the request. It never contains a secret.
    pub fn parse(policy: &Value, path: &str) -> Result<Option<Self>, ApiError> {
        let fields = Fields::of(policy, path)?;
        match fields.required("type")?.as_str() {
            "disabled" => Ok(None),
            "allowlist" => {
                let allowed_domains = domains(&fields)?;
                Ok(Some(Self {
                    r#type: AllowlistType::Allowlist,
                    domain_secrets: secrets(&fields, &allowed_domains)?,
                    allowed_domains,
                }))
            }
            other => Err(fields.unknown("type", other, "`disabled` or `allowlist`")),
        }
    }

    /// Parses the field `network_policy` of an object.
    pub(super) fn of(fields: &Fields<'_>) -> Result<Option<Self>, ApiError> {
        const KEY: &str = "network_policy";
        let policy = fields.get(KEY);
        policy.map_or(Ok(None), |policy| Self::parse(policy, &fields.path(KEY)))
    }
}

fn domains(fields: &Fields<'_>) -> Result<Vec<HostPattern>, ApiError> {
    const KEY: &str = "allowed_domains";
    let texts = fields.texts(KEY)?;
    bounded(fields, KEY, texts.len(), MAX_DOMAINS)?;
    let path = fields.path(KEY);
    if texts.is_empty() {
        let message = format!("`{path}` must list at least one domain; for none, use the type `disabled`");
        return Err(ApiError::invalid(path, "missing_required_parameter", message));
    }
    let domain = |(index, text): (usize, &String)| domain(&format!("{path}[{index}]"), text);
    texts.iter().enumerate().map(domain).collect()
}

fn secrets(fields: &Fields<'_>, allowed: &[HostPattern]) -> Result<Vec<DomainSecret>, ApiError> {
    const KEY: &str = "domain_secrets";
    let list = fields.list(KEY)?;
    bounded(fields, KEY, list.len(), MAX_SECRETS)?;
    let mut secrets: Vec<DomainSecret> = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let path = format!("{}[{index}]", fields.path(KEY));
        let secret = secret(&Fields::of(value, path.as_str())?, allowed)?;
        let is_same = |other: &DomainSecret| other.host == secret.host && other.name == secret.name;
        if secrets.iter().any(is_same) {
            let DomainSecret { host, name, .. } = &secret;
            let message = format!("`{path}`: there is already a secret `{name}` for `{host}`; remove one");
            return Err(invalid(path, message));
        }
        secrets.push(secret);
    }
    Ok(secrets)
}

fn secret(fields: &Fields<'_>, allowed: &[HostPattern]) -> Result<DomainSecret, ApiError> {
    let path = fields.path("domain");
    let host = domain(&path, &fields.required("domain")?)?;
    if !allowed.contains(&host) {
        let message = format!("`{path}` is `{host}`, which is not in `allowed_domains`; add it there");
        return Err(invalid(path, message));
    }
    let value = fields.required("value")?;
    let path = fields.path("value");
    if value.len() > MAX_VALUE {
        let message = format!(
            "`{path}` has {} bytes; it can have at most {MAX_VALUE}",
            value.len()
        );
        return Err(ApiError::invalid(path, "string_above_max_length", message));
    }
    let value = EgressSecret::new(value);
    if let Err(why) = value.check() {
        let message = format!("`{path}` cannot be sent in a header: {why}");
        return Err(invalid(path, message));
    }
    Ok(DomainSecret {
        host,
        name: variable(fields)?,
        value,
    })
}

/// Parses a host without a port.
fn domain(path: &str, text: &str) -> Result<HostPattern, ApiError> {
    let shown = text.chars().take(100).collect::<String>();
    let shown = shown.escape_debug();
    if text.starts_with("*.") {
        let message = format!("`{path}` is `{shown}`, which is not one host; list each host by its name");
        return Err(invalid(path, message));
    }
    text.parse()
        .map_err(|error| invalid(path, format!("`{path}` is `{shown}`: {error}")))
}

/// Parses the name of an environment variable.
fn variable(fields: &Fields<'_>) -> Result<String, ApiError> {
    let name = fields.required("name")?;
    let path = fields.path("name");
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(is_legal)
        && !name.starts_with(|first: char| first.is_ascii_digit());
    if !is_name {
        let message = format!(
            "`{path}` must be the name of an environment variable: 1 to {MAX_NAME} of `A-Z a-z 0-9 _`, and \
             no digit first"
        );
        return Err(invalid(path, message));
    }
    if is_reserved_variable(&name) {
        let message = format!("`{path}` is `{name}`, which the sandbox sets itself; use another name");
        return Err(invalid(path, message));
    }
    Ok(name)
}

fn bounded(fields: &Fields<'_>, key: &str, count: usize, most: usize) -> Result<(), ApiError> {
    if count <= most {
        return Ok(());
    }
    let path = fields.path(key);
    let message = format!("`{path}` has {count} entries; at most {most} are allowed");
    Err(ApiError::invalid(path, "array_above_max_length", message))
}

fn invalid(path: impl Into<String>, message: String) -> ApiError {
    ApiError::invalid(path, "invalid_value", message)
}

#[cfg(test)]
mod tests;
