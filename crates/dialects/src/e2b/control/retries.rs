//! `Idempotency-Key`: a creation that a client repeats returns the sandbox that the first one made.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use cellblock_interpreter::hosting::Owner;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::OwnedMutexGuard;

use super::super::error::{Answer, Problem};
use crate::presented::header;

/// Maximum number of characters of a key.
const MAX_KEY: usize = 255;

/// Creations by owner and key. Each is remembered while its sandbox lives.
#[derive(Debug, Default)]
pub(in super::super) struct Retries(Mutex<HashMap<(String, String), RetrySlot>>);

type RetrySlot = Arc<tokio::sync::Mutex<Option<Creation>>>;

/// A creation that succeeded.
#[derive(Debug)]
struct Creation {
    body: [u8; 32],
    id: String,
}

/// A creation with a key.
#[derive(Debug)]
pub(super) enum Attempt {
    /// There was none before, or it failed.
    First(FirstAttempt),
    /// It has made the sandbox with this id.
    Repeated(String),
}

/// A creation that others with the same key wait for.
#[derive(Debug)]
pub(super) struct FirstAttempt {
    slot: OwnedMutexGuard<Option<Creation>>,
    body: [u8; 32],
}

impl Retries {
    /// Begins a creation, if its request has a key. `is_alive` says of an id whether its sandbox lives.
    pub(super) async fn begin(
        &self,
        owner: &Owner,
        headers: &HeaderMap,
        body: &Bytes,
        is_alive: impl Fn(&str) -> bool,
    ) -> Answer<Option<Attempt>> {
        let Some(key) = header(headers, "idempotency-key") else {
            return Ok(None);
        };
        let is_valid = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
        if key.is_empty() || key.len() > MAX_KEY || !key.bytes().all(is_valid) {
            return Err(Problem::invalid(format!(
                "invalid `Idempotency-Key`: it has 1 to {MAX_KEY} lowercase letters, digits and hyphens, \
                 such as a UUID"
            )));
        }
        let is_over = |made: &Option<Creation>| made.as_ref().is_none_or(|made| !is_alive(&made.id));
        let slot = {
            let mut all = self.0.lock();
            all.retain(|_, slot| {
                Arc::strong_count(slot) > 1 || !slot.try_lock().is_ok_and(|it| is_over(&it))
            });
            Arc::clone(all.entry((owner.name().to_owned(), key.to_owned())).or_default())
        };
        let slot = slot.lock_owned().await;
        let body = Sha256::digest(body).into();
        match slot.as_ref().filter(|made| is_alive(&made.id)) {
            None => Ok(Some(Attempt::First(FirstAttempt { slot, body }))),
            Some(made) if made.body == body => Ok(Some(Attempt::Repeated(made.id.clone()))),
            Some(_) => Err(Problem::new(
                StatusCode::CONFLICT,
                format!(
                    "`Idempotency-Key`: `{key}` has made a sandbox with another request; repeat that \
                     request, or use another key"
                ),
            )),
        }
    }
}

impl FirstAttempt {
    /// Remembers the sandbox.
    pub(super) fn succeed(mut self, id: &str) {
        *self.slot = Some(Creation {
            body: self.body,
            id: id.to_owned(),
        });
    }
}
