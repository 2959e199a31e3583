//! A runner whose code counts against its owner's quotas.

use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::turn::{CallResult, CallSandbox, Runner, ToolsetCall};
use cellblock_agent::wire::Item;
use futures_util::future::BoxFuture;

use super::Quotas;

/// Runs code with another runner if its owner's quotas permit it. Otherwise the model receives the
/// reason.
pub(crate) struct QuotaRunner {
    runner: Arc<dyn Runner>,
    quotas: Quotas,
    owner: String,
    wait: Duration,
}

struct MeteredPlace {
    place: Arc<dyn CallSandbox>,
    quotas: Quotas,
    owner: String,
    wait: Duration,
}

impl QuotaRunner {
    /// Counts what this runner runs. Code whose owner runs as much as it may waits for its turn, at
    /// most so long.
    pub(crate) fn new(runner: Arc<dyn Runner>, quotas: Quotas, owner: String, wait: Duration) -> Self {
        Self {
            runner,
            quotas,
            owner,
            wait,
        }
    }
}

impl Runner for QuotaRunner {
    fn files(&self) -> Vec<String> {
        self.runner.files()
    }

    fn about(&self) -> Option<&str> {
        self.runner.about()
    }

    fn network(&self) -> Option<&str> {
        self.runner.network()
    }

    fn lost(&self) -> Option<String> {
        self.runner.lost()
    }

    fn skills(&self) -> Option<String> {
        self.runner.skills()
    }

    fn derives(&self) -> bool {
        self.runner.derives()
    }

    fn read(&self, items: Vec<Item>) -> BoxFuture<'_, Vec<Item>> {
        self.runner.read(items)
    }

    fn place(&self, before: usize) -> BoxFuture<'_, Arc<dyn CallSandbox>> {
        Box::pin(async move {
            let (quotas, owner) = (self.quotas.clone(), self.owner.clone());
            let place = self.runner.place(before).await;
            let wait = self.wait;
            Arc::new(MeteredPlace {
                place,
                quotas,
                owner,
                wait,
            }) as Arc<dyn CallSandbox>
        })
    }
}

impl CallSandbox for MeteredPlace {
    fn container(&self) -> &str {
        self.place.container()
    }

    fn run(&self, call: ToolsetCall) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            // Dropped when the code has run, or when nobody waits for it any more.
            let mut permit = match self.quotas.cell_in_turn(&self.owner, self.wait).await {
                Ok(permit) => permit,
                Err(error) => return CallResult::refused(format!("The code was not run: {error}.")),
            };
            if let Err(refused) = self.place.ready().await {
                return refused;
            }
            permit.begin();
            self.place.run(call).await
        })
    }
}
