//! Providers beside a small server on loopback, which answers as it is told.

mod http;
mod scripted;
pub(super) mod server;

use std::time::Duration;

use futures_util::StreamExt as _;

use super::{ModelEvent, ModelRequest, Provider, ProviderEndpoint, ProviderError, ProviderKey, Retries};
use crate::wire::{Item, ItemStatus, Message, Part, Role};

/// A request that says `hi`.
pub(crate) fn request() -> ModelRequest {
    let text = Part::InputText {
        text: "hi".to_owned(),
    };
    ModelRequest::new("m", vec![said(Role::User, vec![text])])
}

pub(crate) fn said(role: Role, content: Vec<Part>) -> Item {
    Item::Message(Message {
        id: "msg_1".to_owned(),
        status: ItemStatus::Completed,
        role,
        content,
        phase: None,
    })
}

/// An endpoint with a key that tries three times without long waits.
pub(super) fn endpoint(base: &str) -> ProviderEndpoint {
    let pause = Duration::from_millis(1);
    let retries = Retries {
        count: 2,
        first_wait: pause,
        max_wait: pause,
    };
    ProviderEndpoint::new(base, Some(ProviderKey::new("sk-secret").unwrap()))
        .unwrap()
        .retries(retries)
}

/// The events of an answer up to its end or its first error.
pub(super) async fn events(provider: &impl Provider) -> (Vec<ModelEvent>, Option<ProviderError>) {
    let mut stream = match provider.stream(request()).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => events.push(event),
            Err(error) => return (events, Some(error)),
        }
    }
    (events, None)
}
