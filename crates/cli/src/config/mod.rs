//! The configuration of a server: a YAML file, the environment over it, and the command line over both.
//!
//! A section is a file in `sections/`, a field of [`Settings`], and a line each in [`Settings::check`] and [`Settings::options`]. Everything
//! else follows from its type: what may be written, the errors with their lines, `config show` and the schema.

mod check;
mod decode;
pub(crate) mod env;
mod file;
pub(crate) mod listen;
mod mcp;
mod mistake;
mod node;
mod offer;
#[cfg(test)]
pub(crate) mod reference;
pub(crate) mod schema;
mod sections;
mod show;
mod site;
#[cfg(test)]
mod tests;
mod tool_servers;
mod units;
mod yaml;

use std::path::PathBuf;

use cellblock_gateway::Options;
use cellblock_image::DEFAULT_IMAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use file::{ConfigError, Loaded, RECORDS, Sources};
use listen::Listen;
pub(crate) use schema::schema;
use sections::auth::Auth;
use sections::containers::Containers;
use sections::execute::Execute;
use sections::files::Files;
use sections::http::Http;
use sections::limits::Limits;
use sections::mcp::Mcp;
pub(crate) use sections::mcp::McpToolset;
use sections::mcp_requests::McpRequests;
use sections::mcp_servers::McpServers;
pub(crate) use sections::mcp_servers::OfferPolicy;
use sections::metrics::Metrics;
use sections::models::Models;
use sections::pool::Pool;
use sections::protections::Protections;
use sections::providers::Providers;
use sections::quotas::Quotas;
use sections::remote::Remote;
use sections::responses::Responses;
use sections::sessions::Sessions;
use sections::tls::Tls;
use sections::turn::Turn;

/// The configuration of `cellblock serve`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Address to listen on.
    pub(crate) listen: Listen,
    /// Directory for the state that the server keeps across restarts. Default: `gateway` below
    /// `CELLBLOCK_HOME`.
    pub(crate) state: Option<PathBuf>,
    /// Image for sandboxes: a name, an ID, or a TOML file that describes one.
    pub(crate) image: String,
    /// Run code on another Cellblock, or on any server with `/execute` and `/health`, instead of on
    /// this machine.
    pub(crate) sandbox_url: Option<String>,
    /// Environment variable with the key of the server at `sandbox_url`.
    pub(crate) sandbox_key_env: Option<String>,
    /// File with the server's key.
    pub(crate) sandbox_key_file: Option<PathBuf>,
    /// Allow sending code, data and the key to another machine over unencrypted `http://`.
    pub(crate) sandbox_allow_http: bool,
    /// Providers of models by name, and the tool `code_interpreter`.
    pub(crate) providers: Providers,
    pub(crate) models: Models,
    pub(crate) mcp_servers: McpServers,
    pub(crate) mcp_requests: McpRequests,
    pub(crate) limits: Limits,
    pub(crate) pool: Pool,
    pub(crate) protections: Protections,
    pub(crate) turn: Turn,
    pub(crate) responses: Responses,
    pub(crate) containers: Containers,
    pub(crate) files: Files,
    pub(crate) sessions: Sessions,
    pub(crate) execute: Execute,
    pub(crate) mcp: Mcp,
    pub(crate) remote: Remote,
    pub(crate) auth: Auth,
    pub(crate) quotas: Quotas,
    pub(crate) tls: Tls,
    pub(crate) metrics: Metrics,
    pub(crate) http: Http,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            state: None,
            image: DEFAULT_IMAGE.to_owned(),
            sandbox_url: None,
            sandbox_key_env: None,
            sandbox_key_file: None,
            sandbox_allow_http: false,
            providers: Providers::default(),
            models: Models::default(),
            mcp_servers: McpServers::default(),
            mcp_requests: McpRequests::default(),
            limits: Limits::default(),
            pool: Pool::default(),
            protections: Protections::default(),
            turn: Turn::default(),
            responses: Responses::default(),
            containers: Containers::default(),
            files: Files::default(),
            sessions: Sessions::default(),
            execute: Execute::default(),
            mcp: Mcp::default(),
            remote: Remote::default(),
            auth: Auth::default(),
            quotas: Quotas::default(),
            tls: Tls::default(),
            metrics: Metrics::default(),
            http: Http::default(),
        }
    }
}

impl Settings {
    /// What the gateway is told, but for files that it reads.
    fn options(&self) -> Options {
        let mut options = Options::default();
        self.listen.apply(&mut options);
        self.responses.apply(&mut options);
        self.containers.apply(&mut options);
        self.files.apply(&mut options);
        self.sessions.apply(&mut options);
        self.execute.apply(&mut options);
        self.remote.apply(&mut options);
        self.auth.apply(&mut options);
        self.quotas.apply(&mut options);
        self.metrics.apply(&mut options);
        self.http.apply(&mut options);
        self.limits.apply(&mut options);
        self.turn.apply(&mut options);
        self.providers.code_interpreter.apply(&mut options);
        options
    }

    fn check(&self, check: &mut check::Check<'_>) {
        self.providers.check(check);
        self.check_site(check);
        self.models.check(check);
        self.mcp_servers.check(check);
        self.mcp_requests.check(check);
        self.limits.check(check);
        self.pool.check(check);
        self.turn.check(check);
        self.responses.check(check);
        self.containers.check(check);
        self.sessions.check(check);
        self.execute.check(check);
        self.mcp.check(check);
        self.tls.check(check);
        self.http.check(check);
    }

    /// Takes over what was written under a key of `providers.code_interpreter.settings` that says the same as one of ours.
    fn unite(&mut self, check: &mut check::Check<'_>) {
        let tool = &self.providers.code_interpreter.settings;
        let tell = |check: &mut check::Check<'_>, place: usize| {
            let (theirs, ours) = SAME[place];
            if check.has(ours) {
                let message = format!("`{}` says something else; remove one of the two", ours.join("."));
                check.wrong(theirs, message);
            }
        };
        if let Some(url) = &tool.sandbox_url
            && self
                .sandbox_url
                .replace(url.clone())
                .is_some_and(|other| other != *url)
        {
            tell(check, 0);
        }
        if let Some(time) = tool.execution_timeout
            && std::mem::replace(&mut self.limits.cell_timeout, time) != time
        {
            tell(check, 1);
        }
        if let Some(time) = tool.claim_timeout
            && std::mem::replace(&mut self.pool.acquire_timeout, time) != time
        {
            tell(check, 2);
        }
    }
}

/// Keys of other gateways, and those of ours that say the same.
const SAME: [(&[&str], &[&str]); 3] = [
    (
        &["providers", "code_interpreter", "settings", "sandbox_url"],
        &["sandbox_url"],
    ),
    (
        &["providers", "code_interpreter", "settings", "execution_timeout"],
        &["limits", "cell_timeout"],
    ),
    (
        &["providers", "code_interpreter", "settings", "claim_timeout"],
        &["pool", "acquire_timeout"],
    ),
];

/// The key of another gateway that says the same as one of ours.
fn same_as(ours: &[&str]) -> Option<&'static [&'static str]> {
    SAME.iter()
        .find(|(_, other)| *other == ours)
        .map(|(theirs, _)| *theirs)
}
