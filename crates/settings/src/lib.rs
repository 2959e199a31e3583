//! Forms of settings: [`Time`] and [`Size`], with units; which addresses need a permission
//! ([`is_public`]); and the error of a build that lacks what a setting needs ([`MissingFeature`]).
//! The lowest crate that most others may import, it also has the wall clock ([`clock`]) and the reader
//! of JSON fields ([`json`]).
//!
//! An options struct describes each of its settings once: the field is read from a configuration,
//! its default is the struct's, its doc comment becomes the reference, and its type the JSON
//! Schema. Fields that the program calculates with stay plain numbers and durations:
//!
//! ```
//! # use std::time::Duration;
//! # use cellblock_settings::{Size, Time};
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! #[serde(default, deny_unknown_fields)]
//! struct ServerOptions {
//!     /// Timeout of a call.
//!     #[serde(with = "Time")]
//!     timeout: Duration,
//!     /// Maximum size of a result.
//!     #[serde(with = "Size")]
//!     max_result: u64,
//! }
//! # impl Default for ServerOptions {
//! #     fn default() -> Self { Self { timeout: Duration::from_secs(60), max_result: 32 << 20 } }
//! # }
//! ```

mod address;
pub mod clock;
mod feature;
pub mod json;
mod size;
mod time;

pub use address::{is_public, translated_v4};
pub use feature::MissingFeature;
pub use size::{ParseSizeError, Size};
pub use time::Time;
