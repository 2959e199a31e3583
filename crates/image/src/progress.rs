//! What a build tells whoever watches it.

use std::fmt;
use std::sync::Arc;

/// One piece of news from a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A new stage began.
    Stage {
        /// What is being done, such as `copying the interpreter`.
        name: String,
    },
    /// Bytes of the current stage; `total` may still grow.
    Bytes {
        /// Done so far.
        done: u64,
        /// Known so far.
        total: u64,
    },
    /// Something worth a line.
    Line(String),
    /// Another process is building; this one waits and then uses the result.
    Waiting {
        /// What is waited for.
        what: String,
    },
}

/// Where a build's [`Progress`] goes. Called from the thread that builds.
#[derive(Clone)]
pub struct Sink(Arc<dyn Fn(Progress) + Send + Sync>);

impl Sink {
    /// Sends every piece of news to `hear`.
    pub fn new(hear: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Listens to nothing.
    pub fn silent() -> Self {
        Self::new(|_| ())
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
