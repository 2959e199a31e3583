//! A runner whose code counts against its owner's quotas.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::Quotas;
use crate::turn::{Code, Ran, Runner};

/// Runs code as another runner does, when its owner's quotas have room for it. A model whose code has none is told so.
pub(crate) struct Metered {
    runner: Arc<dyn Runner>,
    quotas: Quotas,
    owner: String,
}

impl Metered {
    /// Counts what this runner runs.
    pub(crate) fn new(runner: Arc<dyn Runner>, quotas: Quotas, owner: String) -> Self {
        Self {
            runner,
            quotas,
            owner,
        }
    }
}

impl Runner for Metered {
    fn container(&self) -> &str {
        self.runner.container()
    }

    fn run(&self, code: Code) -> BoxFuture<'_, Ran> {
        Box::pin(async move {
            match self.quotas.cell(&self.owner).await {
                // Dropped when the code has run, or when nobody waits for it any more.
                Ok(_permit) => self.runner.run(code).await,
                Err(error) => Ran::refused(format!("The code was not run: {error}.")),
            }
        })
    }

    fn stop(&self) {
        self.runner.stop();
    }
}
