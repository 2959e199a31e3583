//! The configuration of a server: a YAML file, the environment over it, and the command line over both.
//!
//! A section is a file in `sections/`, a field of [`Settings`], and a line in [`Settings::check`]. Everything else follows from its type: what
//! may be written, the errors with their lines, `config show` and the schema.

mod check;
mod decode;
pub(crate) mod env;
mod file;
pub(crate) mod listen;
mod mistake;
mod node;
mod offer;
mod sections;
#[cfg(test)]
mod tests;
mod units;
mod yaml;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use file::{ConfigError, Loaded, Sources};
use listen::Listen;
use sections::containers::Containers;
use sections::http::Http;
use sections::limits::Limits;
use sections::models::Models;
use sections::pool::Pool;
use sections::protections::Protections;
use sections::providers::Providers;
use sections::turn::Turn;

/// The configuration of `cellblock serve`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Where the server listens.
    pub(crate) listen: Listen,
    /// The directory of what the server remembers across restarts. Default: `gateway` below CELLBLOCK_HOME.
    pub(crate) state: Option<PathBuf>,
    /// The image that sandboxes start from: a name, an id, or a TOML file that describes one.
    pub(crate) image: String,
    /// Run code in another Cellblock, or in any server that has `/execute` and `/health`, instead of here.
    pub(crate) sandbox_url: Option<String>,
    pub(crate) providers: Providers,
    pub(crate) models: Models,
    pub(crate) limits: Limits,
    pub(crate) pool: Pool,
    pub(crate) protections: Protections,
    pub(crate) turn: Turn,
    pub(crate) containers: Containers,
    pub(crate) http: Http,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            state: None,
            image: "default".to_owned(),
            sandbox_url: None,
            providers: Providers::default(),
            models: Models::default(),
            limits: Limits::default(),
            pool: Pool::default(),
            protections: Protections::default(),
            turn: Turn::default(),
            containers: Containers::default(),
            http: Http::default(),
        }
    }
}

impl Settings {
    fn check(&self, check: &mut check::Check<'_>) {
        self.providers.check(check);
        self.models.check(check);
        self.limits.check(check);
        self.pool.check(check);
        self.turn.check(check);
        self.containers.check(check);
        self.http.check(check);
    }
}
