//! Templates that clients build: steps run in a sandbox, and the files of its home become the template.
//!
//! ```text
//! POST /v3/templates ──> TemplateBuild          a name, tags, and room for uploads
//! PUT …/uploads/{token} ──> its files
//! POST …/builds/{id} ──> plan ──> run: a separate sandbox ── pack ──> archive in a volume of the key
//! GET …/status ──> its log
//! POST /sandboxes ──> a session that begins with the archive, its variables and its start command
//! ```
//!
//! The host never unpacks an archive, neither one of a client nor one of a template: programs in sandboxes
//! do. So a build can do what any code in a sandbox can, and nothing else.

mod answer;
mod base;
mod builds;
mod index;
mod log;
mod plan;
mod request;
mod routes;
mod run;
mod start;
mod tags;
mod upload;

pub(super) use builds::TemplateBuilds;
pub(super) use index::{BuiltTemplate, TEMPLATE_VOLUME};
pub(super) use routes::{routes, upload_routes};
pub(super) use start::{await_ready, is_pause, setup};
pub(super) use upload::server_of;
