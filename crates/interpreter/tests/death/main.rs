//! Every part of Cellblock is killed at every step of a cell's life: the caller hears the right
//! thing, the session goes on, and nothing is left.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bomb;
mod disk;
mod host;
mod matrix;
mod rounds;
mod steps;
mod victim;
mod world;
