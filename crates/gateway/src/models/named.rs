//! A provider under the names that clients use.

use std::collections::BTreeMap;
use std::sync::Arc;

use cellblock_agent::provider::{ModelRequest, ModelStream, OwnModel, Provider, ProviderError};
use cellblock_agent::wire::{FunctionOutput, Item, Part};
use futures_util::future::BoxFuture;

use super::Offer;

/// Text that replaces a picture that a model cannot see.
const UNSEEN: &str = "(a picture, which the user sees)";

/// A provider whose models have other names here, or that are not shown the pictures of tools.
pub(super) struct RenamedProvider {
    provider: Arc<dyn Provider>,
    rename: BTreeMap<String, String>,
    vision: bool,
}

impl RenamedProvider {
    /// The offer's provider, as it is where there is nothing to change.
    pub(super) fn over(offer: Offer) -> Arc<dyn Provider> {
        if offer.rename.is_empty() && offer.vision {
            return offer.provider;
        }
        Arc::new(Self {
            provider: offer.provider,
            rename: offer.rename,
            vision: offer.vision,
        })
    }
}

impl RenamedProvider {
    /// A request as the provider knows it.
    fn own(&self, mut request: ModelRequest) -> ModelRequest {
        if let Some(own) = self.rename.get(&request.model) {
            own.clone_into(&mut request.model);
        }
        if !self.vision {
            request.items.iter_mut().for_each(hide_pictures);
        }
        request
    }
}

impl Provider for RenamedProvider {
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        self.provider.stream(self.own(request))
    }

    fn count(&self, request: ModelRequest) -> BoxFuture<'_, Result<Option<u64>, ProviderError>> {
        self.provider.count(self.own(request))
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<OwnModel>, ProviderError>> {
        self.provider.models()
    }
}

fn hide_pictures(item: &mut Item) {
    let Item::FunctionCallOutput(output) = item else {
        return;
    };
    let FunctionOutput::Parts(parts) = &mut output.output else {
        return;
    };
    for part in parts
        .iter_mut()
        .filter(|part| matches!(part, Part::InputImage { .. }))
    {
        let text = UNSEEN.to_owned();
        *part = Part::InputText { text };
    }
}
