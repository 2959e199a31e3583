//! Typed outputs: a cell's outputs, checked, limited and stored.
//!
//! A kernel's outputs are not trusted. A [`OutputDecoder`] checks them byte by byte, puts their bytes
//! into the artifact store (tables as Parquet, pictures and specifications unchanged), and returns
//! an [`Output`], which contains only limited text and references. [`Output`] is the form in
//! `--json`, HTTP and MCP.

mod answer;
mod decode;
mod error;
mod limits;
mod page;
mod picture;
mod redact;
pub(crate) mod table;
pub(crate) mod text;
mod unkept;
mod value;

#[doc(hidden)]
pub mod fuzz;

pub(crate) use answer::bytes_of;
pub use decode::OutputDecoder;
pub(crate) use decode::PARQUET;
pub use error::OutputError;
pub use limits::DecodingLimits;
pub use page::{OutputPage, TextPage};
pub use redact::{redact, redact_source};
pub(crate) use table::{
    RowOrder, batches as table_batches, rows as table_rows, slice as table_slice, write_arrow, write_csv,
};
pub use table::{RowsFormat, TablePage};
pub(crate) use unkept::why_unkept;
pub use unkept::{DecodedOutput, UnkeptBytes};
pub use value::{
    Answer, ArtifactRef, Chart, Column, Dataframe, Exception, Figure, Image, Output, Primitive,
    Representation, Rich,
};

pub use cellblock_protocol::{
    Axes, DataframeLibrary, ExceptionFrame, FigureLibrary, ImageMime, Scalar, Series, SeriesKind,
};

#[cfg(test)]
mod tests;
