//! Certificates, where the server encrypts.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;

/// Certificate and key for TLS: set both, or neither.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tls {
    /// PEM file with the server's certificate and its chain.
    pub(crate) certificates: Option<PathBuf>,
    /// PEM file with the certificate's private key.
    pub(crate) key: Option<PathBuf>,
}

impl Tls {
    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        let missing = match (&self.certificates, &self.key) {
            (Some(_), None) => "key",
            (None, Some(_)) => "certificates",
            _ => return,
        };
        check.wrong(&["tls"], format!("missing key `{missing}`: TLS needs both files"));
    }
}
