//! Why a layer could not be made, in words that a model can repair its request from.

use crate::ImageError;

use super::requirement::RequirementError;

/// Why a layer could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// A requirement is not one.
    #[error(transparent)]
    Requirement(#[from] RequirementError),
    /// There are none, or too many.
    #[error("{actual} requirements were given; 1 to {limit} are possible")]
    Count {
        /// How many.
        actual: usize,
        /// How many may be.
        limit: usize,
    },
    /// A package does not exist.
    #[error(
        "the package index has no package {}; check the spelling of the requirements, or do without it",
        quoted(packages)
    )]
    Unknown {
        /// Their names.
        packages: Vec<String>,
    },
    /// What is asked for does not fit what the image has.
    #[error(
        "the requirements do not fit the packages that are already installed: {}. Those cannot be changed; loosen \
         the versions, or use what is installed. The resolver says: {explanation}",
        quoted(installed)
    )]
    Conflict {
        /// The image's packages that are in the way, as `name==version`.
        installed: Vec<String>,
        /// Why.
        explanation: String,
    },
    /// A package would have to be compiled.
    #[error(
        "there is no ready-made build of {} for this platform, and nothing is compiled here; choose another package \
         or version",
        quoted(packages)
    )]
    NoWheel {
        /// Their names.
        packages: Vec<String>,
    },
    /// No set of versions satisfies all requirements.
    #[error(
        "the requirements cannot be satisfied together; loosen versions or leave one out. The resolver says: {explanation}"
    )]
    Unsatisfiable {
        /// Why.
        explanation: String,
    },
    /// The index cannot be reached.
    #[error(
        "the package index cannot be reached from this host, so no packages can be added now; use what is installed"
    )]
    Offline,
    /// A package is there to talk over a network.
    #[error(
        "the requirements bring in {}, which the policy of this sandbox forbids: there is no network. Work on the data \
         that you were given",
        quoted(clients)
    )]
    Forbidden {
        /// Their names.
        clients: Vec<String>,
    },
    /// The host failed; not for a model.
    #[error("make a layer of packages")]
    Image(#[from] ImageError),
}

impl LayerError {
    /// Whether the disk is full, whatever failed because of it.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Image(error) if error.is_disk_full())
    }

    /// Whether changing the requirements can help.
    pub fn is_callers(&self) -> bool {
        !matches!(self, Self::Offline | Self::Image(_))
    }
}

fn quoted(names: &[String]) -> String {
    names
        .iter()
        .map(|it| format!("`{it}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
