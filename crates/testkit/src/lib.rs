//! Fixtures, leak counters and capability checks for Cellblock's own tests.
//!
//! A development dependency only: nothing that is shipped links it. Fifteen things are here:
//!
//! - [`Cli`] runs the built `cellblock` binary in a clean environment under a hard time limit;
//! - [`require!`] ends a test early where the machine lacks a [`Capability`], and records that it did;
//! - [`LeakOwner`] counts what a sandbox could leave behind and belongs to one process, and says
//!   what is left;
//! - [`LogRecords`] are what a test writes to the log;
//! - [`judged`] records what a suite of another project reports;
//! - [`bare_image`] and [`small_image`] are images that start sooner than the default one;
//! - [`S3Server`] serves buckets;
//! - [`Schema`] checks JSON against a schema;
//! - [`fenced`] finds the blocks of code in a page;
//! - [`wait`] waits for what tells nobody that it has happened;
//! - [`WebSockets`] serves connections that a test can cut;
//! - with the feature `databases`, `DatabaseServer` is a server of Postgres, or of another database;
//! - with the feature `kubernetes`, `TestCluster` is a Kubernetes cluster whose pods are processes;
//! - [`UploadProbe`] uploads more than it may, and slowly;
//! - [`as_ordinary_user`] starts a program without any privilege.
//!
//! ```
//! # fn main() {
//! use cellblock_testkit::require;
//!
//! fn memory_limit_holds_under_cgroup_v1() {
//!     require!(CgroupV1);
//!     // … the test proper …
//! }
//! # memory_limit_holds_under_cgroup_v1();
//! # }
//! ```

mod capability;
mod cli;
#[cfg(feature = "databases")]
mod database;
mod denied;
mod image;
mod judged;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
mod leak;
mod log_records;
mod page;
mod places;
mod s3_server;
mod schema;
mod skip;
mod uploads;
mod user;
pub mod wait;
mod websocket;

pub use capability::{Capability, firecracker, pip_wheel, postgres_program, python313};
pub use cli::{Cli, CommandOutput, RunningCli};
#[cfg(feature = "databases")]
pub use database::DatabaseServer;
pub use denied::without_user_namespaces;
pub use image::{bare_image, polars_image, small_image};
pub use judged::{SuiteCounts, judged};
pub use leak::{Count, LeakOwner, LeakReport};
pub use log_records::LogRecords;
pub use page::fenced;
pub use places::{binary, home, ordinary_home, target_dir, workspace_root};
pub use s3_server::S3Server;
pub use schema::Schema;
pub use skip::{SkipResult, expected_skips, lacking, missing};
pub use uploads::{UploadAnswer, UploadProbe};
pub use user::{ORDINARY_UID, as_ordinary_user, with_subordinate_ids};
pub use websocket::{Duplex, Messages, WebSockets};

/// Ends the test here, and records why, when this machine lacks a [`Capability`]: a variant, or a
/// value of it by its path.
///
/// With `CELLBLOCK_REQUIRE_ALL=1` the test fails instead, unless `.ci/expected-skips` lists the capability.
#[macro_export]
macro_rules! require {
    ($capability:ident) => {
        $crate::require!($crate::Capability::$capability)
    };
    ($capability:path) => {
        if $crate::missing($capability, module_path!()) {
            return $crate::SkipResult::skipped();
        }
    };
}
