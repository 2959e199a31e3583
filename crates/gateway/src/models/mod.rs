//! The models that a gateway offers, and the provider behind each.

mod list;
mod named;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use list::Model;

use crate::metrics::ObservedProvider;
use crate::now;
use crate::options::ModelListOptions;
use cellblock_agent::provider::Provider;
use cellblock_agent::wire::{ApiError, ErrorKind};
use list::ModelCache;
use named::RenamedProvider;

/// The models. A provider that has one by name counts before those that have it by a pattern, the
/// longest pattern before shorter ones, and among equals the first.
#[derive(Clone, Default)]
pub struct Models {
    routes: Vec<Route>,
    options: ModelListOptions,
    /// Seconds since 1970 when the first of them was offered.
    since: u64,
}

/// A provider's part in what is offered.
#[derive(Clone)]
pub struct Offer {
    /// Its name, which clients see as the owner of its models.
    pub name: String,
    /// Its models: names, or beginnings of names and a `*`.
    pub patterns: Vec<String>,
    /// Names that clients use, and its own name for each.
    pub rename: BTreeMap<String, String>,
    /// Whether its models are shown the pictures that tools make. What users show is sent in any case.
    pub vision: bool,
    /// Provider that is called.
    pub provider: Arc<dyn Provider>,
}

#[derive(Clone)]
struct Route {
    name: String,
    patterns: Vec<String>,
    rename: BTreeMap<String, String>,
    provider: Arc<dyn Provider>,
    listing: Arc<ModelCache>,
}

impl Route {
    /// Returns how surely this provider has a model.
    fn has(&self, model: &str) -> Option<usize> {
        if self.rename.contains_key(model) {
            return Some(usize::MAX);
        }
        self.patterns
            .iter()
            .filter_map(|pattern| fit(pattern, model))
            .max()
    }
}

/// Returns how closely a pattern fits a name.
fn fit(pattern: &str, model: &str) -> Option<usize> {
    match pattern.strip_suffix('*') {
        Some(beginning) => model.starts_with(beginning).then_some(beginning.len()),
        None => (pattern == model).then_some(usize::MAX),
    }
}

impl std::fmt::Debug for Models {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let routes = self.routes.iter().map(|route| (&route.name, &route.patterns));
        formatter.debug_map().entries(routes).finish()
    }
}

impl std::fmt::Debug for Offer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Offer");
        shown.field("name", &self.name).field("patterns", &self.patterns);
        shown.field("rename", &self.rename).field("vision", &self.vision);
        shown.finish_non_exhaustive()
    }
}

impl Models {
    /// Offers the models that a pattern fits: a name, or the beginning of names and a `*`.
    #[must_use]
    pub fn with(self, pattern: impl Into<String>, provider: Arc<dyn Provider>) -> Self {
        self.offer(Offer {
            name: "cellblock".to_owned(),
            patterns: vec![pattern.into()],
            rename: BTreeMap::new(),
            vision: true,
            provider,
        })
    }

    /// Offers a provider's models.
    #[must_use]
    pub fn offer(mut self, offer: Offer) -> Self {
        if self.since == 0 {
            self.since = now();
        }
        self.routes.push(Route {
            name: offer.name.clone(),
            patterns: offer.patterns.clone(),
            rename: offer.rename.clone(),
            provider: Arc::new(ObservedProvider::new(
                &offer.name.clone(),
                RenamedProvider::over(offer),
            )),
            listing: Arc::default(),
        });
        self
    }

    /// Lists the models of providers in this way.
    #[must_use]
    pub const fn options(mut self, options: ModelListOptions) -> Self {
        self.options = options;
        self
    }

    /// The provider of a model.
    pub fn provider(&self, model: &str) -> Result<Arc<dyn Provider>, ApiError> {
        let place = self.place(model).ok_or_else(|| self.not_found(model))?;
        Ok(Arc::clone(&self.routes[place].provider))
    }

    /// Returns the index of the provider that has a model.
    fn place(&self, model: &str) -> Option<usize> {
        let fits = self.routes.iter().enumerate();
        let fits = fits.filter_map(|(place, route)| Some((route.has(model)?, place)));
        // Of several that are as close, the first.
        fits.max_by_key(|(fit, place)| (*fit, std::cmp::Reverse(*place)))
            .map(|(_, place)| place)
    }

    pub(crate) fn not_found(&self, model: &str) -> ApiError {
        let others = if self.routes.is_empty() {
            ": this server has none, it gives sandboxes only"
        } else {
            "; `GET /v1/models` lists those that there are"
        };
        ApiError {
            kind: ErrorKind::NotFound,
            code: Some("model_not_found".to_owned()),
            message: format!("there is no model `{model}`{others}"),
            param: Some("model".to_owned()),
        }
    }
}
