//! Frames and messages between the Cellblock host and its guest.
//!
//! `docs/protocol.md` is the contract. This crate does no I/O: the owner of a channel reads the
//! eight bytes of a [`Prefix`], then the header, then the blobs, or passes everything to a
//! [`Decoder`]. Data from a guest is not trusted, so each decoder is total: any bytes result in a
//! frame, a wait for more, or a [`FrameError`].

mod blob;
mod cell;
mod error;
mod frame;
mod generation;
mod guest;
mod json;
mod kernel;
mod obstacle;
mod output;
mod schema;
pub mod text;

pub use blob::{Blob, BlobReader};
pub use cell::{CellError, CellNames, Finding, KernelOutcome, Rejection, Variable};
pub use error::FrameError;
pub use frame::{Decoder, Frame, FrameLimits, Header, MAX_BLOBS, MessageSet, Prefix, encode, encode_before};
pub use generation::GENERATION;
pub use guest::{
    ChangeKind, Disk, FileDifference, FileEntry, FileStamp, FromGuest, SkippedFile, Stream, TerminalSize,
    ToGuest,
};
pub use json::json_size;
pub use kernel::{
    Bundle, CallError, Card, CellMode, FetchEffect, FromKernel, Guard, InputFormat, Language, OutputLimits,
    Reference, Rescue, ToKernel,
};
pub use obstacle::Obstacle;
pub use output::{
    Answer, Axes, Chart, Column, Dataframe, DataframeLibrary, Exception, ExceptionFrame, Figure,
    FigureLibrary, Image, ImageMime, Output, Primitive, Rich, Scalar, Series, SeriesKind,
};
pub use schema::schema;
