//! The configuration of a server: a YAML file, the environment over it, and the command line over both.
//!
//! A section is a file in `sections/`, a field of [`Settings`], and a line each in [`Settings::check`] and [`Settings::options`]. Everything
//! else follows from its type: what may be written, the errors with their lines, `config show` and the schema.

mod check;
mod decode;
pub(crate) mod env;
mod file;
pub(crate) mod listen;
mod mistake;
mod node;
mod offer;
mod schema;
mod sections;
mod show;
#[cfg(test)]
mod tests;
mod units;
mod yaml;

use std::path::PathBuf;

use cellblock_gateway::Options;
use cellblock_interpreter::Limits as Enforced;
use cellblock_sandbox::pool::PoolConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use file::{ConfigError, Loaded, Sources};
pub(crate) use schema::schema;
use listen::Listen;
use sections::http::Http;
use sections::limits::Limits;
use sections::models::Models;
use sections::pool::Pool;
use sections::protections::Protections;
use sections::providers::Providers;
use sections::turn::Turn;
use units::Time;

/// The configuration of `cellblock serve`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Where the server listens.
    pub(crate) listen: Listen,
    /// The directory of what the server remembers across restarts. Default: `gateway` below `CELLBLOCK_HOME`.
    pub(crate) state: Option<PathBuf>,
    /// The image that sandboxes start from: a name, an id, or a TOML file that describes one.
    pub(crate) image: String,
    /// Run code in another Cellblock, or in any server that has `/execute` and `/health`, instead of here.
    pub(crate) sandbox_url: Option<String>,
    /// Providers of models by name, and the tool `code_interpreter`. The order counts: the first that has a model is asked for it.
    pub(crate) providers: Providers,
    pub(crate) models: Models,
    pub(crate) limits: Limits,
    pub(crate) pool: Pool,
    pub(crate) protections: Protections,
    pub(crate) turn: Turn,
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
            http: Http::default(),
        }
    }
}

impl Settings {
    /// Where code runs, if not here.
    pub(crate) fn sandbox_url(&self) -> Option<&str> {
        let tool = &self.providers.code_interpreter.settings;
        self.sandbox_url.as_deref().or(tool.sandbox_url.as_deref())
    }

    /// What the gateway is told.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::default();
        options.listen = self.listen.0;
        self.http.apply(&mut options);
        self.limits.apply(&mut options);
        self.turn.apply(&mut options);
        self.providers.code_interpreter.apply(&mut options);
        options
    }

    /// What the interpreter enforces.
    pub(crate) fn enforced(&self) -> Enforced {
        let mut limits = self.limits.enforced();
        if let Some(Time(time)) = self.providers.code_interpreter.settings.execution_timeout {
            limits.cell_time = time;
        }
        limits
    }

    /// How many sandboxes are kept ready.
    pub(crate) fn pool_config(&self) -> PoolConfig {
        let mut pool = self.pool.config();
        if let Some(Time(time)) = self.providers.code_interpreter.settings.claim_timeout {
            pool.acquire_limit = time;
        }
        pool
    }

    fn check(&self, check: &mut check::Check<'_>) {
        self.providers.check(check);
        self.check_twice(check);
        self.models.check(check);
        self.limits.check(check);
        self.pool.check(check);
        self.turn.check(check);
        self.http.check(check);
    }

    /// What can be written in two places must be written in one.
    fn check_twice(&self, check: &mut check::Check<'_>) {
        let tool = &self.providers.code_interpreter.settings;
        for (key, ours) in [
            ("sandbox_url", &["sandbox_url"][..]),
            ("execution_timeout", &["limits", "cell_timeout"]),
            ("claim_timeout", &["pool", "acquire_timeout"]),
        ] {
            let path = ["providers", "code_interpreter", "settings", key];
            if check.has(&path) && check.has(ours) {
                let message = format!("it says the same as `{}`, which is there too; remove one of the two", ours.join("."));
                check.wrong(&path, message);
            }
        }
        if let Some(time) = tool.execution_timeout
            && time > self.limits.max_cell_timeout
        {
            let most = self.limits.max_cell_timeout;
            let path = ["providers", "code_interpreter", "settings", "execution_timeout"];
            check.wrong(&path, format!("{time} are more than `limits.max_cell_timeout`, {most}; raise that one, or lower this"));
        }
        if let Some(url) = self.sandbox_url()
            && !(url.starts_with("http://") || url.starts_with("https://"))
        {
            let ours = ["sandbox_url"];
            let theirs = ["providers", "code_interpreter", "settings", "sandbox_url"];
            let path = if check.has(&ours) { &ours[..] } else { &theirs };
            check.wrong(path, "write an address that begins with `http://` or `https://`");
        }
    }
}
