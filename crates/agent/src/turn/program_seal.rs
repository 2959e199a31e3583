//! Sealed starts of programs, which clients keep while a program waits.

use serde::{Deserialize, Serialize};

/// Start of a program, which each of its runs repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStart {
    /// Time in milliseconds since 1970.
    pub started_ms: u64,
    /// Id of its container.
    pub container: String,
}

/// Seals the starts of programs, which clients keep and send back.
pub trait ProgramSeal: Send + Sync {
    /// Seals the start of the program with this call id and code.
    fn seal(&self, call_id: &str, code: &str, start: &ProgramStart) -> Option<String>;

    /// Returns the start that was sealed for this call id and code.
    fn open(&self, call_id: &str, code: &str, fingerprint: &str) -> Option<ProgramStart>;
}

/// Seal for turns whose conversations no client keeps: it hides and binds nothing.
pub(super) struct PlainSeal;

impl ProgramSeal for PlainSeal {
    fn seal(&self, _call_id: &str, _code: &str, start: &ProgramStart) -> Option<String> {
        serde_json::to_string(start).ok()
    }

    fn open(&self, _call_id: &str, _code: &str, fingerprint: &str) -> Option<ProgramStart> {
        serde_json::from_str(fingerprint).ok()
    }
}
