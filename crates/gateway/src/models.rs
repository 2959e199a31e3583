//! The models that a gateway offers, and the provider behind each.

use std::sync::Arc;

use crate::metrics::Observed;
use crate::provider::Provider;
use crate::wire::{ApiError, ErrorKind};

/// The models, the first whose pattern fits counts.
#[derive(Clone, Default)]
pub struct Models {
    routes: Vec<Route>,
}

#[derive(Clone)]
struct Route {
    pattern: String,
    provider: Arc<dyn Provider>,
}

impl std::fmt::Debug for Models {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let patterns = self.routes.iter().map(|route| &route.pattern);
        formatter.debug_list().entries(patterns).finish()
    }
}

impl Models {
    /// Offers the models that a pattern fits: a name, or the beginning of names and a `*`.
    #[must_use]
    pub fn with(mut self, pattern: impl Into<String>, provider: Arc<dyn Provider>) -> Self {
        let pattern = pattern.into();
        self.routes.push(Route { pattern, provider });
        self
    }

    /// The provider of a model.
    pub fn provider(&self, model: &str) -> Result<Arc<dyn Provider>, ApiError> {
        let fits = |route: &&Route| match route.pattern.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning),
            None => route.pattern == model,
        };
        let found = self.routes.iter().find(fits);
        found
            .map(|route| {
                Arc::new(Observed::new(&route.pattern, Arc::clone(&route.provider))) as Arc<dyn Provider>
            })
            .ok_or_else(|| ApiError {
                kind: ErrorKind::NotFound,
                code: Some("model_not_found".to_owned()),
                message: format!("there is no model `{model}`; `GET /v1/models` lists those that there are"),
                param: Some("model".to_owned()),
            })
    }
}
