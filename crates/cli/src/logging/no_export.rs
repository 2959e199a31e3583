//! A build without the feature `otlp`, which exports no spans.

use std::error::Error;
use std::time::Duration;

use cellblock_settings::MissingFeature;
use tracing_subscriber::layer::Identity;

use crate::env_vars;

/// Never exists.
#[derive(Debug)]
pub(crate) enum NoExport {}

impl NoExport {
    /// Fails if the environment names a collector.
    pub(super) fn start() -> Result<Option<Self>, Box<dyn Error>> {
        match env_vars::OTLP.get() {
            None => Ok(None),
            Some(_) => Err(MissingFeature("otlp").into()),
        }
    }

    pub(super) fn layer(&self) -> Identity {
        match *self {}
    }

    pub(crate) fn finish(self, _: Duration) {
        match self {}
    }
}
