//! Certificates, where the server encrypts.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;

/// Certificates, where the server encrypts: both keys, or none.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tls {
    /// A PEM file: the server's certificate, and those that lead from it to its authority.
    pub(crate) certificates: Option<PathBuf>,
    /// A PEM file with the certificate's private key.
    pub(crate) key: Option<PathBuf>,
}

impl Tls {
    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        let missing = match (&self.certificates, &self.key) {
            (Some(_), None) => "key",
            (None, Some(_)) => "certificates",
            _ => return,
        };
        check.wrong(
            &["tls"],
            format!("the key `{missing}` is missing: a server that encrypts needs both files"),
        );
    }
}
