//! Images: an interpreter and a locked set of packages that sandboxes start from.
//!
//! An [`ImageSpec`] describes an image, a [`ImageStore`] builds it and finds it again, an [`OpenImage`] is
//! one in use. A built image is a directory that needs only the C library and the system libraries
//! that its manifest lists. Its address is the hash of its content.

mod archive;
mod audit;
mod build;
mod check;
mod copy;
mod digest;
mod elf;
mod error;
mod fuzz;
mod home;
mod host_packages;
#[cfg(feature = "download")]
mod http;
mod install;
mod interpreter;
pub mod layer;
mod libraries;
mod lock;
mod manifest;
mod mirror;
mod oci;
mod open;
mod process;
mod progress;
mod pull;
mod requirement;
mod running;
mod scrub;
mod shipped;
mod spec;
mod stop;
mod store;
#[cfg(test)]
mod tests;
mod uv;

pub use archive::{ArchiveSummary, archive_name};
pub use audit::{AuditFinding, AuditReport, Detection};
pub use copy::PYTHON_IN_SANDBOX;
pub use error::{ImageError, Result};
pub use fuzz::fuzz_manifest;
pub use home::Home;
pub use host_packages::host_packages;
pub use libraries::find_library;
pub use manifest::{LAYOUT, Manifest, Package, RootFilesystem};
pub use mirror::{Mirror, MirrorEntry, add_to_mirror};
pub use oci::{Containerfile, RootFormat, RootSource};
pub use open::OpenImage;
pub use progress::{Progress, Sink};
pub use running::RunningBuild;
pub use shipped::{CORE_IMAGE, DEFAULT_IMAGE, POLARS_IMAGE, SHIPPED_IMAGES};
pub use spec::{ImageSpec, PackagePolicy, PythonVersion};
pub use stop::stop_builds;
pub use store::ImageStore;

pub(crate) use build::{flush, remove};
pub(crate) use digest::hex;
pub(crate) use error::IoResultExt;
pub(crate) use home::{names, write_atomically};
pub(crate) use manifest::is_id;
pub(crate) use {audit::audit, audit::installed, lock::Lock, uv::Uv, uv::run as run_uv};
