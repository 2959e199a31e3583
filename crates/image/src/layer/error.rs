//! Errors of a layer, in words with which a model can repair its request.

use crate::ImageError;
use crate::requirement::RequirementError;

/// The reason why a layer could not be created.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// A requirement is invalid.
    #[error(transparent)]
    Requirement(#[from] RequirementError),
    /// The number of requirements is 0 or too large.
    #[error("{actual} requirements were given; 1 to {limit} are possible")]
    Count {
        /// Number of requirements.
        actual: usize,
        /// Maximum number.
        limit: usize,
    },
    /// The image is a whole root filesystem.
    #[error(
        "the image `{image}` is a root filesystem, and packages are only added to images that Cellblock \
         builds; install them when the image is built, and import it again"
    )]
    RootFilesystem {
        /// Name of the image.
        image: String,
    },
    /// A package does not exist.
    #[error(
        "the package index has no package {}; check the spelling of the requirements, or use another package",
        quoted(packages)
    )]
    Unknown {
        /// Names of the packages.
        packages: Vec<String>,
    },
    /// The requirements conflict with packages of the image.
    #[error(
        "the requirements do not fit the packages that are already installed: {}. Those cannot be \
         changed; loosen the versions, or use what is installed. The resolver says: {explanation}",
        quoted(installed)
    )]
    Conflict {
        /// The conflicting packages of the image, as `name==version`.
        installed: Vec<String>,
        /// The resolver's explanation.
        explanation: String,
    },
    /// A package would have to be compiled.
    #[error(
        "there is no ready-made build of {} for this platform, and nothing is compiled here; choose \
         another package or version",
        quoted(packages)
    )]
    NoWheel {
        /// Names of the packages.
        packages: Vec<String>,
    },
    /// No set of versions satisfies all requirements.
    #[error(
        "the requirements cannot be satisfied together; loosen versions or remove one. The \
         resolver says: {explanation}"
    )]
    Unsatisfiable {
        /// The resolver's explanation.
        explanation: String,
    },
    /// The package index cannot be reached.
    #[error(
        "the package index cannot be reached from this host, so no packages can be added now; use \
         what is installed"
    )]
    Offline,
    /// The requirements contain a network client.
    #[error(
        "the requirements bring in {}, and this image allows no network clients. Where the session's \
         network is `egress`, run `pip install` in a cell instead; elsewhere there is no network to use \
         them on: work on the data that you were given",
        quoted(clients)
    )]
    Forbidden {
        /// Names of the clients.
        clients: Vec<String>,
    },
    /// The server does not permit a package.
    #[error("this server does not permit {}; {}", quoted(packages), permitted(allowed))]
    NotAllowed {
        /// Names of the packages.
        packages: Vec<String>,
        /// Names of the permitted packages.
        allowed: Vec<String>,
    },
    /// The packages take up more than all layers together may.
    #[error(
        "the requirements take up {actual} bytes on the disk, the limit is {limit}; require fewer \
         packages, or use what is installed"
    )]
    TooLarge {
        /// Size in bytes.
        actual: u64,
        /// Maximum size of all layers.
        limit: u64,
    },
    /// There is no room for another layer.
    #[error(
        "there is no room for {new} more bytes of packages: those of other sessions take up {taken} of \
         {limit}, and are in use or were used in the last two days; use what is installed, or ask the \
         operator to raise `requirements.max_bytes`"
    )]
    NoRoom {
        /// Size of the new layer in bytes.
        new: u64,
        /// Size of the layers that exist.
        taken: u64,
        /// Maximum size of all layers.
        limit: u64,
    },
    /// The caller has had too many layers made.
    #[error(
        "no more packages can be installed for now: {reason}; use what is installed, or requirements that \
         were used before"
    )]
    Quota {
        /// The quota, its limit and when to try again.
        reason: String,
    },
    /// The host failed; this error is not for a model.
    #[error("make a layer of packages")]
    Image(#[from] ImageError),
}

impl LayerError {
    /// Returns whether a full disk is the cause.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Image(error) if error.is_disk_full())
    }

    /// Returns whether other requirements can help.
    pub fn is_callers(&self) -> bool {
        !matches!(self, Self::Offline | Self::NoRoom { .. } | Self::Image(_))
    }
}

fn permitted(allowed: &[String]) -> String {
    if allowed.is_empty() {
        "it permits no packages; use what is installed".to_owned()
    } else {
        format!("require only {}, or use what is installed", quoted(allowed))
    }
}

fn quoted(names: &[String]) -> String {
    names
        .iter()
        .map(|it| format!("`{it}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
