//! What a person sees of a run. Text from a sandbox is made harmless here, before it is written anywhere.

pub(crate) mod exception;
pub(crate) mod fetches;
pub(crate) mod figure;
pub(crate) mod json;
pub(crate) mod outcome;
pub(crate) mod screen;
pub(crate) mod table;

pub(crate) use screen::Screen;

pub(crate) use crate::style::{BAD, FAINT, GOOD, NOTE, STRONG, styled};
