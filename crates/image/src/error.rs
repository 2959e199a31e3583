//! What can go wrong with an image.

use std::io;
use std::path::{Path, PathBuf};

use super::audit::Report;

/// A result of the image module.
pub type Result<T, E = ImageError> = std::result::Result<T, E>;

/// Why an image could not be built, found or used.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file or directory of the host did not do what it should.
    #[error("{action} `{}`", path.display())]
    Io {
        /// The failed action.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The specification is not one.
    #[error("image specification {origin}: {problem}")]
    Spec {
        /// The file.
        origin: String,
        /// What is wrong with it.
        problem: String,
    },
    /// uv is neither here nor to be had.
    #[error(
        "get uv {version}, which builds images: {problem}; install uv so that it is on PATH, or make the \
         Python package index reachable (UV_DEFAULT_INDEX or PIP_INDEX_URL name another one)"
    )]
    UvFetch {
        /// The pinned version.
        version: String,
        /// Every way tried, with its failure.
        problem: String,
    },
    /// uv is not installed, and the feature that downloads it is off.
    #[error(
        "find uv, which builds images and installs packages: it is not installed, and this program was built without \
         the feature `download`; install uv so that it is on PATH, or build with that feature"
    )]
    NoUv,
    /// A program that builds did not succeed.
    #[error("{action}: {program} {status}{}", said(output))]
    Program {
        /// The failed action.
        action: &'static str,
        /// Which program.
        program: String,
        /// How it ended.
        status: String,
        /// The last lines that it said.
        output: String,
    },
    /// There is no usable interpreter and none can be installed.
    #[error(
        "find a Python {wanted} (or, failing that, any CPython from 3.11 on): looked at {searched}; \
         installing one with uv failed: {install}; install Python {wanted} and try again"
    )]
    NoInterpreter {
        /// The version asked for.
        wanted: String,
        /// Where it was looked for.
        searched: String,
        /// Why uv could not install it.
        install: String,
    },
    /// The copy of the interpreter or its packages do not work.
    #[error("check the built image: {problem}")]
    Broken {
        /// What does not work.
        problem: String,
    },
    /// The image holds what its policy forbids.
    #[error(
        "the image's policy forbids network clients, and it holds {}; leave them out, or name them in the \
         specification's `policy.allow`", .report.summary()
    )]
    Audit {
        /// The whole report.
        report: Box<Report>,
    },
    /// No image goes by that name.
    #[error("no image `{reference}` is built here (there are: {known}); `cellblock image build` builds one")]
    NotFound {
        /// What was asked for.
        reference: String,
        /// What there is.
        known: String,
    },
    /// Several images go by that name.
    #[error("`{reference}` fits several images: {matches}; give more of the id")]
    Ambiguous {
        /// What was asked for.
        reference: String,
        /// What fits.
        matches: String,
    },
    /// The image is being used.
    #[error("image {id} is in use by a running Cellblock; end it, then remove the image")]
    InUse {
        /// The image.
        id: String,
    },
    /// The image is not what it was when it was built.
    #[error("image {id} is damaged: {problem}; `cellblock image build --force` builds it again")]
    Damaged {
        /// The image.
        id: String,
        /// What is missing or wrong.
        problem: String,
    },
    /// A file is not the archive of an image that can be used here.
    #[error("import the image archive `{origin}`: {problem}")]
    Archive {
        /// Path or address of the archive.
        origin: String,
        /// Why it is rejected.
        problem: String,
    },
    /// There is no directory to keep images in.
    #[error("find a directory for images: {problem}; set CELLBLOCK_HOME to one that can be written")]
    Home {
        /// What is wrong with those tried.
        problem: String,
    },
    /// The runtime ended a blocking task.
    #[error("the image task was cancelled")]
    Cancelled,
}

fn said(output: &str) -> String {
    if output.is_empty() {
        String::new()
    } else {
        format!("; it said:\n{output}")
    }
}

impl ImageError {
    /// Whether the disk is full, whatever failed because of it.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                matches!(
                    source.kind(),
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
                )
            }
            Self::Program { output: text, .. } | Self::UvFetch { problem: text, .. } => {
                text.contains("No space left on device")
            }
            _ => false,
        }
    }

    /// Whether the caller asked for something that cannot be, rather than this machine failing.
    pub fn is_callers(&self) -> bool {
        matches!(
            self,
            Self::Spec { .. }
                | Self::NotFound { .. }
                | Self::Ambiguous { .. }
                | Self::InUse { .. }
                | Self::Archive { .. }
                | Self::Audit { .. }
        )
    }
}

/// Adds the failed action and the path to an I/O result.
pub(crate) trait At<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T, E: Into<io::Error>> At<T> for std::result::Result<T, E> {
    fn at(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| ImageError::Io {
            action,
            path: path.to_owned(),
            source: source.into(),
        })
    }
}
