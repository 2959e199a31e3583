//! A runner whose code counts against its owner's quotas.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::Quotas;
use crate::turn::{Code, Place, Ran, Runner};
use crate::wire::Item;

/// Runs code as another runner does, when its owner's quotas have room for it. A model whose code has none is told so.
pub(crate) struct Metered {
    runner: Arc<dyn Runner>,
    quotas: Quotas,
    owner: String,
}

struct MeteredPlace {
    place: Arc<dyn Place>,
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
    fn files(&self) -> Vec<String> {
        self.runner.files()
    }

    fn about(&self) -> Option<&str> {
        self.runner.about()
    }

    fn derives(&self) -> bool {
        self.runner.derives()
    }

    fn read(&self, items: Vec<Item>) -> BoxFuture<'_, Vec<Item>> {
        self.runner.read(items)
    }

    fn place(&self, before: usize) -> BoxFuture<'_, Arc<dyn Place>> {
        Box::pin(async move {
            let (quotas, owner) = (self.quotas.clone(), self.owner.clone());
            let place = self.runner.place(before).await;
            Arc::new(MeteredPlace { place, quotas, owner }) as Arc<dyn Place>
        })
    }
}

impl Place for MeteredPlace {
    fn container(&self) -> &str {
        self.place.container()
    }

    fn run(&self, code: Code) -> BoxFuture<'_, Ran> {
        Box::pin(async move {
            match self.quotas.cell(&self.owner).await {
                // Dropped when the code has run, or when nobody waits for it any more.
                Ok(_permit) => self.place.run(code).await,
                Err(error) => Ran::refused(format!("The code was not run: {error}.")),
            }
        })
    }
}
