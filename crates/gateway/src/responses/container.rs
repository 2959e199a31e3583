//! Finds the container that a conversation has used before, so that its variables and files are there.
//!
//! ```text
//! items of the input ──> previous_response_id ──> a key that the client repeats ──> none: a new container
//! ```

use std::fmt::Write as _;

use cellblock_agent::wire::{ApiError, Container, Item, ResponseRequest, Role, container};
use ring::digest::{SHA256, digest};

use super::prepare::PriorConversation;
use crate::now_ms;
use crate::options::StickyKey;
use crate::records::whereabouts::{self, ConversationKey, Lead};
use crate::state::Gateway;

/// Returns the container, and the key by which later requests of the conversation find it.
pub(super) async fn find(
    gateway: &Gateway,
    owner: &str,
    request: &ResponseRequest,
    leads: Vec<Lead>,
    earlier: &PriorConversation,
) -> Result<(Option<String>, Option<ConversationKey>), ApiError> {
    let asking = owner.to_owned();
    let found = gateway
        .records
        .with(move |connection| whereabouts::by_leads(connection, &asking, &leads))
        .await?;
    let found = found.or_else(|| earlier.container.clone());
    let Some(key) = key(&gateway.options.containers.sticky_keys, owner, request) else {
        return Ok((found, None));
    };
    if found.is_some() {
        return Ok((found, Some(key)));
    }
    let (asked, begins) = (key.clone(), begins(request));
    let found = gateway
        .records
        .with(move |connection| whereabouts::by_key(connection, &asked, begins, now_ms()));
    Ok((found.await?, Some(key)))
}

/// Notes the container that a response has used under its conversation's key.
pub(super) async fn bind(gateway: &Gateway, key: ConversationKey, container: String) {
    let bound = gateway
        .records
        .with(move |connection| whereabouts::bind(connection, &key, &container, now_ms()));
    if let Err(error) = bound.await {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "remember the container of a conversation"
        );
    }
}

/// The first of the configured keys that a request has, if its code can run in a container that is found.
fn key(known: &[StickyKey], owner: &str, request: &ResponseRequest) -> Option<ConversationKey> {
    if !matches!(container(&request.tools), Some((_, Container::Auto(_)))) {
        return None;
    }
    known.iter().find_map(|kind| {
        let value = match kind {
            StickyKey::Session => request.metadata.get("session"),
            StickyKey::PromptCacheKey => request.prompt_cache_key.as_ref(),
            StickyKey::SafetyIdentifier => request.safety_identifier.as_ref(),
            StickyKey::User => request.user.as_ref(),
        };
        let value = value.filter(|value| !value.is_empty())?;
        let mut text = format!("{}:", kind.name());
        for byte in digest(&SHA256, value.as_bytes()).as_ref() {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Some(ConversationKey {
            owner: owner.to_owned(),
            text,
            one_conversation: *kind == StickyKey::PromptCacheKey,
        })
    })
}

/// Whether a request begins a conversation: nothing in it was said by a model in answer to the user.
fn begins(request: &ResponseRequest) -> bool {
    let mut asked = false;
    request.previous_response_id.is_none()
        && request.conversation.is_none()
        && request.input.iter().all(|item| match item {
            Item::Message(message) if message.role == Role::Assistant => !asked,
            Item::Message(message) => {
                asked |= message.role == Role::User;
                true
            }
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use cellblock_agent::wire::Ids;

    fn request(mut fields: Value) -> ResponseRequest {
        fields["model"] = json!("m");
        if fields["input"].is_null() {
            fields["input"] = json!("go");
        }
        if fields["tools"].is_null() {
            fields["tools"] = json!([{"type": "code_interpreter", "container": {"type": "auto"}}]);
        }
        ResponseRequest::parse(fields.to_string().as_bytes(), &mut Ids::counted()).unwrap()
    }

    #[test]
    fn the_first_configured_key_of_a_request_counts() {
        let all = [StickyKey::Session, StickyKey::PromptCacheKey, StickyKey::User];
        let kind = |fields: Value| {
            let key = key(&all, "ann", &request(fields))?;
            Some(key.text.split(':').next().unwrap().to_owned())
        };
        let every = json!({"metadata": {"session": "s"}, "prompt_cache_key": "c", "user": "u"});
        assert_eq!(kind(every.clone()).as_deref(), Some("session"));
        assert_eq!(
            kind(json!({"prompt_cache_key": "c", "user": "u"})).as_deref(),
            Some("prompt_cache_key")
        );
        assert_eq!(
            kind(json!({"prompt_cache_key": "", "user": "u"})).as_deref(),
            Some("user")
        );
        assert_eq!(kind(json!({"safety_identifier": "u"})), None);
        // Only a container that the gateway chooses is found by a key.
        let mut named = every;
        named["tools"] = json!([{"type": "code_interpreter", "container": "cntr_1"}]);
        assert_eq!(kind(named), None);
    }

    #[test]
    fn a_greeting_of_the_model_does_not_make_a_history() {
        let said = |roles: &[&str]| -> Value {
            let items = roles.iter().map(|role| json!({"role": role, "content": "x"}));
            items.collect()
        };
        for (roles, first) in [
            (vec!["user"], true),
            (vec!["developer", "assistant", "user"], true),
            (vec!["system", "user", "user"], true),
            (vec!["user", "assistant", "user"], false),
        ] {
            assert_eq!(
                begins(&request(json!({"input": said(&roles)}))),
                first,
                "{roles:?}"
            );
        }
        let goes_on = json!({"previous_response_id": "resp_1"});
        assert!(!begins(&request(goes_on)));
        let reference = json!({"input": [{"type": "item_reference", "id": "msg_1"}]});
        assert!(!begins(&request(reference)));
    }
}
