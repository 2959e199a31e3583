//! Who is told what was counted.

use std::net::SocketAddr;

use cellblock_gateway::{MetricsOptions, Options};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who is told what was counted, `GET /metrics`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Metrics {
    /// Whether they are told to everybody, rather than to callers with a key.
    pub(crate) public: bool,
    /// An address and a port of their own, where they are told to everybody who can reach it.
    #[schemars(with = "Option<String>")]
    pub(crate) listen: Option<SocketAddr>,
}

impl Default for Metrics {
    fn default() -> Self {
        let MetricsOptions { public, listen } = MetricsOptions::default();
        Self { public, listen }
    }
}

impl Metrics {
    pub(in crate::config) fn apply(&self, options: &mut Options) {
        options.metrics = MetricsOptions {
            public: self.public,
            listen: self.listen,
        };
    }
}
