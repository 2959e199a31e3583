//! Content-addressed objects, their metadata and origins.
//!
//! An artifact is named by the sha256 of its bytes ([`ArtifactId`]), so that equal bytes are stored once and
//! changed bytes are noticed when they are read. Beside the bytes a [`Store`] keeps [`Metadata`], written once,
//! and any number of [`Origin`]s, each an object of its own that is only ever added: who made these bytes from
//! what. A [`Store`] works over any `object_store`; a folder is one. What nobody refers to is removed after a while
//! ([`Store::collect`]). [`ArtifactEnvelope`] is what an answer says of an artifact.

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
mod store;
mod urls;

pub use envelope::{ArtifactEnvelope, CHART, ChartArtifact, ImageArtifact, Picture};
pub use error::ArtifactError;
pub use gc::{Collected, Retention};
pub use id::{ArtifactId, ParseIdError};
pub use metadata::{About, Kind, Metadata, Origin};
pub use pin::Owner;
pub use reader::Reader;
#[cfg(feature = "s3")]
pub use s3::{Credentials, S3};
pub use store::Store;
pub use urls::{Urls, UrlsError, extension};
