//! Approval of calls that change something: a rehearsal lists them, and a run makes no others.
//!
//! ```text
//! rehearsal ──call──> WriteRecorder ──list──> a person ──approves──> ApprovedWrites <──call── run
//! ```
//!
//! Only functions that write are concerned. What a function does is a statement of its connector.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use cellblock_protocol::{FetchEffect, json_size};
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Card, Connector, ConnectorError, ConnectorErrorKind, FetchAnswer, MemoPolicy, Redaction};
use crate::render::plain::line;

/// Maximum number of calls that a rehearsal lists.
pub const MAX_WRITES: usize = 200;
/// Maximum size of all calls that a rehearsal lists, in bytes as JSON.
pub const MAX_WRITE_BYTES: usize = 256 << 10;
/// Maximum number of characters of a call in an error.
const CALL_CHARS: usize = 300;

/// Approval of the calls of functions with `effect: writes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteApproval {
    /// Code makes such calls without approval.
    #[default]
    None,
    /// Code that can make such calls is rehearsed: a person approves the calls that it would make,
    /// and it makes no others.
    Rehearse,
}

/// A call of a function that changes something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntendedWrite {
    /// The connector.
    pub connector: String,
    /// The function, by its name in code.
    pub function: String,
    /// The arguments with defaults.
    pub arguments: Map<String, Value>,
}

impl fmt::Display for IntendedWrite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}(", self.connector, self.function)?;
        for (at, (name, value)) in self.arguments.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(
                formatter,
                "{comma}{}={}",
                shown_name(name),
                line(&value.to_string())
            )?;
        }
        formatter.write_str(")")
    }
}

/// Returns the name of an argument, quoted if it could be taken for more: where a function has open
/// parameters, code chooses it, and a person decides by what is shown.
fn shown_name(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.chars().any(|c| !is_plain(c)) {
        return line(&Value::from(name).to_string());
    }
    name.to_owned()
}

impl IntendedWrite {
    fn shortened(&self) -> String {
        let text = self.to_string();
        match text.char_indices().nth(CALL_CHARS) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        }
    }
}

/// Treatment of the calls of a cell that change something.
#[derive(Clone, Debug, Default)]
pub(crate) enum WriteMode {
    /// They are made, except those that need approval.
    #[default]
    Plain,
    /// They are rejected: a try cannot undo them.
    Trying,
    /// They are listed, and not made.
    Rehearsing(Arc<WriteRecorder>),
    /// Those that were approved are made, each once.
    Approved(Arc<ApprovedWrites>),
}

/// Outcome of a call that changes something, before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteDecision {
    Make,
    /// Its function answers with null instead.
    StandIn,
}

impl WriteMode {
    /// Returns the mode of a cell with these approved calls.
    pub(crate) fn of_approved(writes: Option<&[IntendedWrite]>) -> Self {
        writes.map_or(Self::Plain, |writes| {
            Self::Approved(Arc::new(ApprovedWrites(Mutex::new(WritesLeft {
                writes: writes.to_vec(),
                stopped: false,
            }))))
        })
    }

    pub(super) fn decide(
        &self,
        connector: &dyn Connector,
        card: &Card,
        arguments: &Map<String, Value>,
    ) -> Result<WriteDecision, ConnectorError> {
        if card.effect == FetchEffect::Reads {
            return Ok(WriteDecision::Make);
        }
        let write = || IntendedWrite {
            connector: connector.name().to_owned(),
            function: card.function.clone(),
            arguments: arguments.clone(),
        };
        match self {
            Self::Plain if connector.needs_approval(card) => Err(unapproved(connector.name(), card)),
            Self::Plain | Self::Trying => Ok(WriteDecision::Make),
            Self::Rehearsing(recorder) => recorder.note(write()).map(|()| WriteDecision::StandIn),
            Self::Approved(approved) => approved.take(&write()).map(|()| WriteDecision::Make),
        }
    }
}

/// The calls that a rehearsal has listed so far.
#[derive(Debug, Default)]
pub(crate) struct WriteRecorder(Mutex<RecordedWrites>);

#[derive(Debug, Default)]
struct RecordedWrites {
    writes: Vec<IntendedWrite>,
    bytes: usize,
    /// Whether a call was left out.
    is_full: bool,
}

impl WriteRecorder {
    fn note(&self, write: IntendedWrite) -> Result<(), ConnectorError> {
        let bytes = json_size(&write).unwrap_or(usize::MAX);
        let mut recorded = self.lock();
        let total = recorded.bytes.saturating_add(bytes);
        if recorded.writes.len() >= MAX_WRITES || total > MAX_WRITE_BYTES {
            recorded.is_full = true;
            let text = format!(
                "`{}.{}` was not rehearsed: one approval covers at most {MAX_WRITES} calls that write, with \
                 {MAX_WRITE_BYTES} bytes of arguments; do the work in several cells",
                write.connector, write.function
            );
            return Err(ConnectorError::new(ConnectorErrorKind::NotGranted, text));
        }
        recorded.bytes = total;
        recorded.writes.push(write);
        Ok(())
    }

    /// Takes the calls; `None` if they are not all.
    pub(crate) fn take(&self) -> Option<Vec<IntendedWrite>> {
        let RecordedWrites { writes, is_full, .. } = std::mem::take(&mut *self.lock());
        (!is_full).then_some(writes)
    }

    fn lock(&self) -> MutexGuard<'_, RecordedWrites> {
        self.0.lock()
    }
}

/// The approved calls that a run has not made yet.
#[derive(Debug)]
pub(crate) struct ApprovedWrites(Mutex<WritesLeft>);

#[derive(Debug)]
struct WritesLeft {
    writes: Vec<IntendedWrite>,
    /// Whether the run wanted another call: it is not the one that was approved.
    stopped: bool,
}

impl ApprovedWrites {
    fn take(&self, write: &IntendedWrite) -> Result<(), ConnectorError> {
        let mut left = self.0.lock();
        let place = left.writes.iter().position(|approved| approved == write);
        if let (Some(place), false) = (place, left.stopped) {
            left.writes.swap_remove(place);
            return Ok(());
        }
        left.stopped = true;
        let text = format!(
            "`{}` was not made: it is not among the calls that were approved, of which {} are left; this \
             run makes no more calls that write. Run code that does the rest, which is rehearsed again",
            write.shortened(),
            left.writes.len()
        );
        Err(ConnectorError::new(ConnectorErrorKind::NotGranted, text))
    }
}

fn unapproved(connector: &str, card: &Card) -> ConnectorError {
    let text = format!(
        "`{connector}.{}` was not called: it changes something and needs approval, which nobody can give \
         here. Run the code through the Responses API or an MCP client with elicitation, or let the \
         operator set `approval: none`",
        card.function
    );
    ConnectorError::new(ConnectorErrorKind::NotGranted, text)
}

/// Returns a connector whose functions that write need approval.
pub fn with_approval(connector: Arc<dyn Connector>, approval: WriteApproval) -> Arc<dyn Connector> {
    match approval {
        WriteApproval::None => connector,
        WriteApproval::Rehearse => Arc::new(RehearsedConnector(connector)),
    }
}

/// A connector whose functions that write need approval.
#[derive(Debug)]
struct RehearsedConnector(Arc<dyn Connector>);

impl Connector for RehearsedConnector {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn description(&self) -> &str {
        self.0.description()
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        self.0.cards()
    }

    fn fetch(
        &self,
        function: &str,
        arguments: Map<String, Value>,
        until: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        self.0.fetch(function, arguments, until)
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        self.0.check()
    }

    fn redaction(&self) -> &Redaction {
        self.0.redaction()
    }

    fn memo(&self) -> MemoPolicy {
        self.0.memo()
    }

    fn waits_for_client(&self) -> bool {
        self.0.waits_for_client()
    }

    fn needs_approval(&self, card: &Card) -> bool {
        card.effect == FetchEffect::Writes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write(sku: u64) -> IntendedWrite {
        let arguments = json!({"sku": sku, "price": 2.5});
        IntendedWrite {
            connector: "shop".to_owned(),
            function: "set_price".to_owned(),
            arguments: arguments.as_object().unwrap().clone(),
        }
    }

    #[test]
    fn each_approved_call_is_made_once_and_another_call_stops_the_run() {
        let WriteMode::Approved(approved) = WriteMode::of_approved(Some(&[write(1), write(1), write(2)]))
        else {
            panic!("a mode of approved calls");
        };
        assert_eq!(approved.take(&write(1)), Ok(()));
        assert_eq!(approved.take(&write(1)), Ok(()));
        let third = approved.take(&write(1)).unwrap_err().to_string();
        assert!(third.contains("`shop.set_price("), "{third}");
        assert!(third.contains("of which 1 are left"), "{third}");
        assert!(approved.take(&write(2)).is_err(), "the run has been stopped");
    }

    #[test]
    fn a_rehearsal_lists_a_bounded_number_of_calls() {
        let recorder = WriteRecorder::default();
        for sku in 0..MAX_WRITES as u64 {
            recorder.note(write(sku)).unwrap();
        }
        let beyond = recorder.note(write(0)).unwrap_err().to_string();
        assert!(beyond.contains("at most 200 calls"), "{beyond}");
        assert_eq!(recorder.take(), None, "a part of the calls is never approved");

        let mut large = write(1);
        let text = "x".repeat(MAX_WRITE_BYTES);
        large.arguments.insert("text".to_owned(), text.into());
        assert!(recorder.note(large).is_err());
        assert_eq!(recorder.take(), None);
        assert_eq!(recorder.take(), Some(Vec::new()));
    }

    #[test]
    fn code_cannot_disguise_a_call_in_the_list() {
        let arguments = json!({"note": "a\n- b\u{202e}", "sku=1)\n- shop.get_price(x": 2});
        let disguised = IntendedWrite {
            arguments: arguments.as_object().unwrap().clone(),
            ..write(1)
        };
        assert_eq!(
            disguised.to_string(),
            r#"shop.set_price(note="a\n- b\u{202e}", "sku=1)\n- shop.get_price(x"=2)"#
        );
    }

    #[test]
    fn an_approval_is_spelled_as_in_a_configuration() {
        let read = |text| serde_json::from_value::<WriteApproval>(json!(text)).ok();
        assert_eq!(read("none"), Some(WriteApproval::None));
        assert_eq!(read("rehearse"), Some(WriteApproval::Rehearse));
        assert_eq!(read("always"), None);
    }
}
