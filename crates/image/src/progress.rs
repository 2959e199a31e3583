//! Progress reports of a build.

use std::fmt;
use std::sync::Arc;

/// One progress report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A new stage started.
    Stage {
        /// Name of the stage, such as `copying the interpreter`.
        name: String,
    },
    /// Bytes of the current stage; `total` may still grow.
    Bytes {
        /// Bytes done so far.
        done: u64,
        /// Bytes known so far.
        total: u64,
    },
    /// A message of one line.
    Line(String),
    /// Another process is building; this one waits and then uses the result.
    Waiting {
        /// Reason for the wait.
        what: String,
    },
}

/// The receiver of a build's [`Progress`], called from the thread that builds.
#[derive(Clone)]
pub struct Sink(Arc<dyn Fn(Progress) + Send + Sync>);

impl Sink {
    /// Sends every report to `hear`.
    pub fn new(hear: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Ignores all reports.
    pub fn silent() -> Self {
        Self::new(|_| ())
    }

    pub(crate) fn send(&self, progress: Progress) {
        (self.0)(progress);
    }

    pub(crate) fn stage(&self, name: impl Into<String>) {
        (self.0)(Progress::Stage { name: name.into() });
    }

    pub(crate) fn bytes(&self, done: u64, total: u64) {
        (self.0)(Progress::Bytes { done, total });
    }

    pub(crate) fn line(&self, line: impl Into<String>) {
        (self.0)(Progress::Line(line.into()));
    }

    pub(crate) fn waiting(&self, what: impl Into<String>) {
        (self.0)(Progress::Waiting { what: what.into() });
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}
