//! Whole results of tools, under the names with which cells and models refer to them.
//!
//! An [`AliasStore`] records the results of tools. Each result gets an alias, `<tool>_<n>`, and is
//! kept in the artifact store, not in a sandbox. A cell gets the recorded bytes
//! ([`AliasStore::splice`]); a model rereads a view of them that fits a budget and always names the
//! alias ([`AliasStore::model_view`], [`AliasStore::model_views`]); an answer names all data that
//! it is based on ([`AliasStore::canonical_dataset`]).
//!
//! ```text
//! tool result ──record──> get_price_1 ──splice──> /cellblock/inputs.json
//!                              ├────────model_views──> a prompt, within a budget
//!                              └────────canonical_dataset──> one document with a URL
//! ```

mod bounds;
mod content;
mod dataset;
mod entry;
mod error;
mod manifest;
mod name;
mod outline;
mod record;
pub mod reserved;
mod shape;
mod splice;
mod store;
mod survey;
mod table;
mod view;

pub use bounds::Bounds;
pub use content::Content;
pub use dataset::CanonicalDataset;
pub use entry::Entry;
pub use error::{AliasError, NameFault};
pub use shape::{Shape, ShapeColumn, ShapeKind};
pub use splice::{Span, Splice, TableFile};
pub use store::AliasStore;
pub use view::{Level, View};
