//! Who is told what was counted.

use std::net::SocketAddr;

use cellblock_gateway::{MetricsOptions, Options};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Access to `GET /metrics`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Metrics {
    /// Serve the metrics without a key.
    pub(crate) public: bool,
    /// Separate address and port that serve the metrics without a key.
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
