//! Errors of images.

use std::io;
use std::path::{Path, PathBuf};

use super::audit::AuditReport;

/// A result of the image module.
pub type Result<T, E = ImageError> = std::result::Result<T, E>;

/// The reason why an image could not be built, found or used.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// An operation on a file or directory of the host failed.
    #[error("{action} `{}`", path.display())]
    Io {
        /// Failed action.
        action: &'static str,
        /// Path of the action.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The specification is invalid.
    #[error("image specification {origin}: {problem}")]
    Spec {
        /// Name of the file.
        origin: String,
        /// The problem.
        problem: String,
    },
    /// uv is not installed and cannot be downloaded.
    #[error(
        "get uv {version}, which builds images: {problem}; install uv so that it is on PATH, or make the \
         Python package index reachable (UV_DEFAULT_INDEX or PIP_INDEX_URL name another one)"
    )]
    UvFetch {
        /// Pinned version.
        version: String,
        /// Every attempt, with its error.
        problem: String,
    },
    /// uv is not installed, and the feature that downloads it is disabled.
    #[error(
        "find uv, which builds images and installs packages: it is not installed, and this program was \
         built without the feature `download`; install uv so that it is on PATH, or build \
         with that feature"
    )]
    NoUv,
    /// A program of the build failed.
    #[error("{action}: {program} {status}{}", said(output))]
    Program {
        /// Failed action.
        action: &'static str,
        /// Name of the program.
        program: String,
        /// Exit status.
        status: String,
        /// Last lines of its output.
        output: String,
    },
    /// There is no usable interpreter, and none can be installed.
    #[error(
        "find a Python {wanted} (or else any CPython 3.11 or newer) to build the image with: looked at \
         {searched}; installing one with uv failed: {install}; install Python {wanted} (`uv python \
         install {wanted}`), or get the image ready-made: set CELLBLOCK_IMAGE_MIRROR to a mirror, or \
         `cellblock image import FILE`"
    )]
    NoInterpreter {
        /// Requested version.
        wanted: String,
        /// Searched locations, and what was found there that is too old.
        searched: String,
        /// Reason that uv could not install it.
        install: String,
    },
    /// The copy of the interpreter, or its packages, do not work.
    #[error("check the built image: {problem}")]
    Broken {
        /// The part that does not work.
        problem: String,
    },
    /// The image contains packages that its policy forbids.
    #[error(
        "the image's policy forbids network clients, and it contains {}; remove them, or list them in the \
         specification's `policy.allow`", .report.summary()
    )]
    Audit {
        /// The whole report.
        report: Box<AuditReport>,
    },
    /// No image has that name.
    #[error("image `{reference}` not found (available: {known}); `cellblock image build` builds one")]
    NotFound {
        /// Requested name or id.
        reference: String,
        /// Names of the available images.
        known: String,
    },
    /// Several images match the id.
    #[error("`{reference}` matches several images: {matches}; use more digits of the id")]
    Ambiguous {
        /// Requested name or id.
        reference: String,
        /// Matching images.
        matches: String,
    },
    /// The image is being used.
    #[error("image {id} is in use by a running Cellblock; end it, then remove the image")]
    InUse {
        /// Id of the image.
        id: String,
    },
    /// The image has changed since it was built.
    #[error("image {id} is damaged: {problem}; `cellblock image build --force` builds it again")]
    Damaged {
        /// Id of the image.
        id: String,
        /// The missing or changed part.
        problem: String,
    },
    /// A file is not the archive of an image that can be used here.
    #[error("import the image archive `{origin}`: {problem}")]
    Archive {
        /// Path or address of the archive.
        origin: String,
        /// Reason that it is rejected.
        problem: String,
    },
    /// Containerfiles cannot be built.
    #[error(
        "find buildah, which builds Containerfiles: it is not on PATH; install it (on Debian and Ubuntu: \
         apt-get install buildah), or build the image elsewhere and use `cellblock image import \
         docker-archive FILE`"
    )]
    NoBuildah,
    /// A mirror is not one, or does not have the image.
    #[error("pull the image `{reference}` from {mirror}: {problem}")]
    Pull {
        /// Name of the image.
        reference: String,
        /// Address of the mirror, without a password.
        mirror: String,
        /// Reason that it cannot be pulled.
        problem: String,
    },
    /// There is no directory for images.
    #[error(
        "find a directory for images: {problem}; set CELLBLOCK_HOME to a writable directory from which \
         programs can run"
    )]
    Home {
        /// The problems of the tried directories.
        problem: String,
    },
    /// The runtime ended a blocking task.
    #[error("the image task was canceled")]
    Cancelled,
}

fn said(output: &str) -> String {
    if output.is_empty() {
        String::new()
    } else {
        format!("; its output:\n{output}")
    }
}

impl ImageError {
    /// Returns whether a full disk is the cause.
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

    /// Returns whether the caller's request was invalid, rather than this machine having failed.
    pub fn is_callers(&self) -> bool {
        matches!(
            self,
            Self::Spec { .. }
                | Self::NotFound { .. }
                | Self::Ambiguous { .. }
                | Self::InUse { .. }
                | Self::Archive { .. }
                | Self::Pull { .. }
                | Self::Audit { .. }
        )
    }
}

/// Adds the failed action and the path to an I/O result.
pub(crate) trait IoResultExt<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T, E: Into<io::Error>> IoResultExt<T> for std::result::Result<T, E> {
    fn at(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| ImageError::Io {
            action,
            path: path.to_owned(),
            source: source.into(),
        })
    }
}

/// An error that blames the archive.
pub(crate) fn invalid(origin: &str, problem: impl Into<String>) -> ImageError {
    ImageError::Archive {
        origin: origin.to_owned(),
        problem: problem.into(),
    }
}
