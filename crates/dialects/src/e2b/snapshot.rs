//! Snapshots: copies of sandboxes that nobody runs code in, and that sandboxes begin from.
//!
//! A snapshot is a session, which counts as a sandbox of its key. It is independent of the sandbox
//! that it was made of, and ends when it is deleted, when nobody has used it for a week, or with the
//! server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use cellblock_interpreter::Session;
use cellblock_interpreter::error::Error;
use cellblock_interpreter::hosting::{Owner, ResidentGuard};
use cellblock_interpreter::session::fork::{ForkError, ForkOptions};

use super::code::Contexts;
use super::error::{Answer, Problem};
use super::state::E2b;
use crate::session::DialectSession;

/// Maximum number of snapshots of a key.
pub(super) const MAX_SNAPSHOTS: usize = 32;
/// Time after which a snapshot ends that nobody uses.
pub(super) const UNUSED: Duration = Duration::from_hours(24 * 7);
/// Tag of a snapshot without another one.
pub(super) const DEFAULT_TAG: &str = "default";
/// Prefix of the ids of snapshots.
pub(super) const SNAPSHOT_ID: &str = "s";

/// Name of the action in errors.
const RESTORE: &str = "create a sandbox of a snapshot";

/// A snapshot in use.
pub(super) type HeldSnapshot = ResidentGuard<DialectSession<Snapshot>>;

/// State of E2B about a snapshot.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) label: SnapshotLabel,
    /// Whether a client has named it. Otherwise its name is its id.
    pub(super) is_named: bool,
    /// Sandbox that it was made of.
    pub(super) source: String,
    /// Whether it has variables.
    pub(super) memory: bool,
    pub(super) envs: BTreeMap<String, String>,
    pub(super) workdir: String,
    pub(super) contexts: Arc<Contexts>,
}

/// Name and tag of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SnapshotLabel {
    name: String,
    tag: Option<String>,
}

impl SnapshotLabel {
    /// Reads `name` or `name:tag`.
    pub(super) fn new(text: &str) -> Self {
        let (name, tag) = text.split_once(':').unzip();
        Self {
            name: name.unwrap_or(text).to_owned(),
            tag: tag.filter(|tag| *tag != DEFAULT_TAG).map(str::to_owned),
        }
    }

    /// Returns whether clients may name a snapshot so.
    pub(super) fn is_valid(&self) -> bool {
        Self::is_word(&self.name) && self.tag.as_deref().is_none_or(Self::is_word)
    }

    /// Returns whether a text may be a name or a tag.
    pub(super) fn is_word(text: &str) -> bool {
        let is_part = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
        (1..=128).contains(&text.len()) && text.bytes().all(is_part)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn tag(&self) -> &str {
        self.tag.as_deref().unwrap_or(DEFAULT_TAG)
    }

    /// Returns whether a filter selects it, which may lack the tag.
    pub(super) fn fits(&self, filter: &str) -> bool {
        let wanted = Self::new(filter);
        self.name == wanted.name && (!filter.contains(':') || self.tag == wanted.tag)
    }

    /// Returns the name with its tag.
    pub(super) fn full(&self) -> String {
        format!("{}:{}", self.name, self.tag())
    }
}

impl E2b {
    /// Holds the owner's snapshot with a name or id.
    pub(super) fn snapshot(&self, owner: &Owner, text: &str) -> Option<HeldSnapshot> {
        let label = SnapshotLabel::new(text);
        let all = self.snapshots.of(owner.name());
        // To look at it is not to use it: it ends when no sandbox begins from it.
        all.iter().rev().find(|it| it.kept.label == label)?.peek()
    }

    /// Returns a session with the state of a snapshot, which rests again after that.
    pub(super) async fn restore(&self, snapshot: &HeldSnapshot, options: ForkOptions) -> Answer<Session> {
        let turn = snapshot.turn().await?;
        let (e2b, memory, tasks) = (self.clone(), snapshot.kept.memory, self.host.tasks.clone());
        // Also without the client, the snapshot rests afterwards.
        let copying = self.host.tasks.spawn(async move {
            let copied = copy(&turn.session, options, RESTORE).await;
            tasks.spawn(async move {
                if let Err(error) = e2b.rest(&turn.session, memory).await {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        snapshot = turn.id,
                        "rest a snapshot"
                    );
                }
            });
            copied
        });
        copying
            .await
            .map_err(|error| Problem::internal(RESTORE, &error))?
    }

    /// Frees the memory of a snapshot, as far as its backend can keep what it has.
    pub(super) async fn rest(&self, session: &Session, memory: bool) -> Result<(), Error> {
        match memory {
            false => session.hibernate_files().await.map(drop),
            true if self.host.interpreter.backend().suspends() => session.hibernate().await.map(drop),
            true => Ok(()),
        }
    }
}

/// Makes one copy of a session.
pub(super) async fn copy(session: &Session, options: ForkOptions, action: &str) -> Answer<Session> {
    let copies = session
        .fork(options)
        .await
        .map_err(|error| refused(error, action))?;
    let copy = copies.into_iter().next();
    copy.ok_or_else(|| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("could not {action}")))
}

/// Names what a sandbox has that cannot be copied.
pub(super) fn refused(error: Error, action: &str) -> Problem {
    match error {
        Error::Fork(ForkError::Refused { obstacle, remedy }) => Problem::new(
            StatusCode::CONFLICT,
            format!("{action}: the sandbox has {obstacle}, which cannot be copied; {remedy}"),
        ),
        Error::Fork(ForkError::Unsupported { .. }) => {
            Problem::new(StatusCode::NOT_IMPLEMENTED, format!("{action}: {error}"))
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_name_with_a_tag() {
        let plain = SnapshotLabel::new("app");
        assert_eq!(plain, SnapshotLabel::new("app:default"));
        assert_ne!(plain, SnapshotLabel::new("app:v2"));
        assert_eq!(plain.full(), "app:default");
        assert!(
            SnapshotLabel::new("app:v2").fits("app") && !SnapshotLabel::new("app:v2").fits("app:default")
        );
        for (text, is_valid) in [
            ("a-b_c.1:v1", true),
            ("", false),
            (":v1", false),
            ("a:", false),
            ("a:b:c", false),
            ("team/a", false),
            ("a b", false),
        ] {
            assert_eq!(SnapshotLabel::new(text).is_valid(), is_valid, "{text:?}");
        }
    }
}
