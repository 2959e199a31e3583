//! Content-addressed objects, their metadata and origins.
//!
//! The id of an artifact is the sha256 of its bytes ([`ArtifactId`]), so that equal bytes are
//! stored once and changed bytes are noticed when they are read. In addition to the bytes, a
//! [`Store`] keeps [`Metadata`], written once, and any number of [`Origin`]s, which record who made
//! these bytes from what; each is a separate object and is only ever added. A [`Store`] works over
//! any `object_store`, including a folder. Artifacts without references are removed after a while
//! ([`Store::collect`]). A [`VersionSeries`] gives artifacts a name and versions; [`Store::tiered`]
//! keeps them on this machine and in a remote store. [`ArtifactEnvelope`] describes an artifact in
//! a response.

mod draft;
mod envelope;
mod error;
mod gc;
mod id;
mod metadata;
mod open;
mod pin;
mod reader;
#[cfg(feature = "s3")]
mod s3;
mod series;
mod store;
mod tiered;
mod urls;

pub use draft::ArtifactDraft;
pub use envelope::{ArtifactEnvelope, CHART, ChartArtifact, ImageArtifact, Picture};
pub use error::{ArtifactError, is_disk_full};
pub use gc::{CollectionReport, Retention};
pub use id::{ArtifactId, ParseIdError};
pub use metadata::{ArtifactDescription, Kind, Metadata, Origin};
pub use open::{check_objects, objects};
pub use pin::PinOwner;
pub use reader::Reader;
#[cfg(feature = "s3")]
pub use s3::{Credentials, S3};
pub use series::VersionSeries;
pub use store::Store;
pub use urls::{Urls, UrlsError, extension};
