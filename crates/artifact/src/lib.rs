//! Content-addressed objects, their metadata and origins.
//!
//! An artifact is named by the sha256 of its bytes ([`ArtifactId`]), so that equal bytes are stored once and
//! changed bytes are noticed when they are read. Beside the bytes a [`Store`] keeps [`Metadata`], written once,
//! and any number of [`Origin`]s, each an object of its own that is only ever added: who made these bytes from
//! what. A [`Store`] works over any `object_store`; a folder is one.

mod error;
mod id;
mod metadata;
mod reader;
mod store;

pub use error::ArtifactError;
pub use id::{ArtifactId, ParseIdError};
pub use metadata::{About, Kind, Metadata, Origin};
pub use reader::Reader;
pub use store::Store;
