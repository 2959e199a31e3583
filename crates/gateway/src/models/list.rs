//! List of models: those with names, and those that a provider says it has.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_agent::provider::OwnModel;
use futures_util::future::join_all;
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::{Models, Route, fit};
use crate::options::ModelListOptions;

/// The most models of one provider that are listed.
const MOST: usize = 10_000;
/// A provider that gave no list is asked again after this, or sooner where lists are remembered for less.
const FAILED: Duration = Duration::from_secs(10);

/// A model, as OpenAI's list has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Model {
    /// Its name.
    pub id: String,
    /// Always `model`.
    pub object: &'static str,
    /// Seconds since 1970: when it was made, as its provider says, or else since when it is offered.
    pub created: u64,
    /// The provider's name.
    pub owned_by: String,
}

/// Models that a provider listed, and the time of the list. Those who ask meanwhile wait for the one answer.
#[derive(Debug, Default)]
pub(super) struct ModelCache(Mutex<Option<ModelList>>);

#[derive(Debug)]
struct ModelList {
    at: Instant,
    /// Nothing where the provider gave no list.
    models: Option<Arc<Vec<OwnModel>>>,
}

impl Route {
    /// The provider's own list. One that is down, slow or has none gives nothing.
    async fn own(&self, options: ModelListOptions) -> Option<Arc<Vec<OwnModel>>> {
        let mut known = self.listing.0.lock().await;
        if let Some(known) = &*known {
            let fresh = if known.models.is_some() {
                options.list_cache
            } else {
                options.list_cache.min(FAILED)
            };
            if known.at.elapsed() < fresh {
                return known.models.clone();
            }
        }
        let models = match timeout(options.list_timeout, self.provider.models()).await {
            Ok(Ok(models)) => Some(Arc::new(models)),
            Ok(Err(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(provider = self.name, error, "list the models of a provider");
                None
            }
            Err(_) => {
                tracing::warn!(
                    provider = self.name,
                    limit = ?options.list_timeout,
                    "a provider did not list its models in time"
                );
                None
            }
        };
        *known = Some(ModelList {
            at: Instant::now(),
            models: models.clone(),
        });
        models
    }

    fn asks(&self) -> bool {
        self.patterns.iter().any(|pattern| pattern.ends_with('*'))
    }
}

impl Models {
    /// Returns every model: configured names first, then those that providers list. Providers are
    /// queried concurrently, with a time limit; one that does not respond is left out.
    pub async fn list(&self) -> Vec<Model> {
        let owns = self.routes.iter().map(|route| async move {
            if route.asks() {
                route.own(self.options).await
            } else {
                None
            }
        });
        let owns = join_all(owns).await;
        let mut listed = Vec::new();
        let mut seen = BTreeSet::new();
        let mut add = |place: usize, id: &str, created: Option<u64>| {
            // What another provider is asked for is not this one's.
            if self.place(id) == Some(place) && seen.insert(id.to_owned()) {
                listed.push(self.model(&self.routes[place], id, created));
            }
        };
        for (place, route) in self.routes.iter().enumerate() {
            for name in route.rename.keys() {
                add(place, name, None);
            }
            for name in route.patterns.iter().filter(|pattern| !pattern.ends_with('*')) {
                add(place, name, None);
            }
        }
        for (place, own) in owns.iter().enumerate() {
            let patterns = &self.routes[place].patterns;
            let offered =
                |model: &&OwnModel| patterns.iter().any(|pattern| fit(pattern, &model.id).is_some());
            let own = own.iter().flat_map(|models| models.iter());
            for model in own.filter(offered).take(MOST) {
                add(place, &model.id, model.created);
            }
        }
        listed
    }

    /// One model, if it is there. Where its provider gives no list, a name that fits is taken for one.
    pub async fn find(&self, id: &str) -> Option<Model> {
        let route = &self.routes[self.place(id)?];
        if route.has(id) == Some(usize::MAX) {
            return Some(self.model(route, id, None));
        }
        match route.own(self.options).await {
            None => Some(self.model(route, id, None)),
            Some(own) => {
                let found = own.iter().find(|model| model.id == id)?;
                Some(self.model(route, id, found.created))
            }
        }
    }

    fn model(&self, route: &Route, id: &str, created: Option<u64>) -> Model {
        Model {
            id: id.to_owned(),
            object: "model",
            created: created.unwrap_or(self.since),
            owned_by: route.name.clone(),
        }
    }
}
