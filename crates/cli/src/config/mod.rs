//! The configuration of a server: a YAML file, the environment over it, and the command line over both.
//!
//! A section is a field of [`Settings`], and most are options of a crate as they are. Everything
//! follows from the type: the keys and their defaults, errors with their lines, `config show`, the
//! reference and the schema. `sections/` has what types cannot express.

mod cells;
mod check;
mod connectors;
mod decode;
pub(crate) mod env;
mod file;
mod kubernetes;
pub(crate) mod listen;
mod mcp;
mod mistake;
mod node;
mod offer;
mod records;
#[cfg(test)]
pub(crate) mod reference;
pub(crate) mod schema;
mod sections;
mod show;
mod site;
#[cfg(test)]
mod tests;
mod tool_servers;
mod yaml;

use std::path::PathBuf;

use cellblock_agent::tools::TurnOptions;
use cellblock_connector::GivenValue;
use cellblock_dialects::DialectsOptions;
use cellblock_gateway::options::{
    AdvertisedUrl, AuthOptions, CellOptions, ContainerOptions, ExecuteOptions, FileOptions,
    HttpServerOptions, MetricsOptions, ModelListOptions, Options, QuotaOptions, RemoteOptions,
    ResponseOptions, RunOptions, SessionsOptions, SkillOptions, UploadOptions, VolumeOptions,
};
use cellblock_image::Mirror;
use cellblock_mcp::Options as McpOptions;
pub(crate) use cellblock_mcp_client::OfferPolicy;
use cellblock_mcp_client::RequestedServerOptions;
use cellblock_sandbox::pool::PoolConfig;
use cellblock_settings::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::env_vars;
use cellblock_interpreter::connector::FetchOptions;
use cellblock_interpreter::image::layer::RequirementOptions;
use cellblock_interpreter::walls::WallOptions;
use cellblock_interpreter::walls::gvisor::GvisorOptions;
use cellblock_interpreter::walls::microvm::MicrovmOptions;
use cellblock_sandbox::backend::{BackendChoice, BackendKind, KubernetesOptions};
pub(crate) use cells::snippet;
pub(crate) use file::{ConfigError, LoadedConfig, Sources};
pub(crate) use kubernetes::PodSite;
use listen::Listen;
pub(crate) use schema::schema;
use sections::connectors::Connectors;
use sections::egress::EgressSection;
use sections::limits::LimitsSection;
use sections::mcp_servers::McpServers;
use sections::protections::Protections;
use sections::providers::Providers;
use sections::tls::Tls;
pub(crate) use tool_servers::OfferedServer;

/// The configuration of `cellblock serve`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Address to listen on.
    pub(crate) listen: Listen,
    /// URL at which other servers that share `records` reach this one, such as
    /// `http://10.0.0.3:8080`. They forward requests to it whose session, container or running
    /// response it has.
    pub(crate) advertise: Option<AdvertisedUrl>,
    /// Directory for the state that the server keeps across restarts. Default: `gateway` below
    /// `CELLBLOCK_HOME`.
    pub(crate) state: Option<PathBuf>,
    /// Postgres database for the server's records, which several servers can share: an environment
    /// variable or a file with its URL, such as `postgres://user:password@host/database`, or the
    /// URL itself if it has no password. Default: the file `records.sqlite` in `state`.
    pub(crate) records: Option<GivenValue>,
    /// Image for sandboxes: a name, an ID, or a TOML file that describes one. `CELLBLOCK_IMAGE`
    /// changes the default.
    #[schemars(with = "String")]
    pub(crate) image: ImageName,
    /// Mirror from which the image is pulled if it is missing: a folder, `https://…` or
    /// `oci://HOST/REPOSITORY`. Default: the one that `CELLBLOCK_IMAGE_MIRROR` names, if it is set.
    pub(crate) image_mirror: Option<String>,
    /// Run code on another Cellblock, or on any server with `/execute` and `/health`, instead of on
    /// this machine.
    pub(crate) sandbox_url: Option<String>,
    /// Environment variable with the key of the server at `sandbox_url`.
    pub(crate) sandbox_key_env: Option<String>,
    /// File with the server's key. With `backend: kubernetes`, both are the key of the servers in pods.
    pub(crate) sandbox_key_file: Option<PathBuf>,
    /// Allow sending code, data and the key to another machine over unencrypted `http://`; required
    /// with `backend: kubernetes`, since pods have no certificates.
    pub(crate) sandbox_allow_http: bool,
    /// Providers of models by name, and the tool `code_interpreter`.
    pub(crate) providers: Providers,
    pub(crate) models: ModelListOptions,
    pub(crate) connectors: Connectors,
    pub(crate) fetches: FetchOptions,
    pub(crate) mcp_servers: McpServers,
    pub(crate) mcp_requests: RequestedServerOptions,
    pub(crate) limits: LimitsSection,
    pub(crate) egress: EgressSection,
    pub(crate) cells: CellOptions,
    pub(crate) requirements: RequirementOptions,
    pub(crate) pool: PoolConfig,
    pub(crate) protections: Protections,
    /// Wall around sandboxes: `process` (the host's kernel), `gvisor`, `microvm`, or `auto`, the
    /// strongest that works; or `kubernetes`, pods of a cluster. Default: `process`, or `auto` if
    /// `minimum_backend` is set.
    pub(crate) backend: Option<BackendChoice>,
    /// Weakest wall that may be used: `process`, `gvisor` or `microvm`. The server does not start
    /// behind a weaker one.
    pub(crate) minimum_backend: Option<BackendKind>,
    /// Maximum size on disk of the state of a session that is hibernated with its variables, which
    /// needs the backend `gvisor` or `microvm`. Default: what its sandbox can have in memory.
    pub(crate) hibernated_size: Option<Size>,
    pub(crate) gvisor: GvisorOptions,
    pub(crate) microvm: MicrovmOptions,
    pub(crate) kubernetes: KubernetesOptions,
    pub(crate) turn: TurnOptions,
    pub(crate) responses: ResponseOptions,
    pub(crate) containers: ContainerOptions,
    pub(crate) files: FileOptions,
    pub(crate) sessions: SessionsOptions,
    pub(crate) uploads: UploadOptions,
    pub(crate) skills: SkillOptions,
    pub(crate) volumes: VolumeOptions,
    pub(crate) runs: RunOptions,
    pub(crate) execute: ExecuteOptions,
    pub(crate) mcp: McpOptions,
    pub(crate) dialects: DialectsOptions,
    pub(crate) remote: RemoteOptions,
    pub(crate) auth: AuthOptions,
    pub(crate) quotas: QuotaOptions,
    pub(crate) tls: Tls,
    pub(crate) metrics: MetricsOptions,
    pub(crate) http: HttpServerOptions,
}

/// The name of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ImageName(pub(crate) String);

impl Default for ImageName {
    fn default() -> Self {
        Self(env_vars::default_image())
    }
}

impl Settings {
    /// Returns the mirror of images, which was checked when the configuration was read.
    pub(crate) fn mirror(&self) -> Option<Mirror> {
        self.image_mirror.as_ref().and_then(|it| it.parse().ok())
    }

    /// Returns the options for machines of the backends.
    pub(crate) fn walls(&self) -> WallOptions {
        WallOptions {
            gvisor: self.gvisor.clone(),
            microvm: self.microvm.clone(),
            suspended_bytes: self.hibernated_size.map(|size| size.0),
            ..WallOptions::default()
        }
    }

    /// The gateway's options, except for files that it reads.
    fn options(&self) -> Options {
        let interpreter = &self.providers.code_interpreter;
        Options {
            listen: self.listen.0,
            advertise: self.advertise.clone(),
            turn: self.turn.clone(),
            responses: self.responses.clone(),
            containers: self.containers.clone(),
            files: self.files.clone(),
            sessions: self.sessions.clone(),
            uploads: self.uploads.clone(),
            skills: self.skills.clone(),
            volumes: self.volumes.clone(),
            runs: self.runs,
            execute: self.execute.clone(),
            remote: self.remote,
            auth: self.auth,
            quotas: self.quotas.clone(),
            requirements: self.requirements.clone(),
            metrics: self.metrics,
            http: self.http.clone(),
            code_interpreter: interpreter.enabled,
            chat_interpreter: interpreter.enabled && interpreter.chat_completions,
            max_cell_timeout: self.limits.max_cell_timeout.0,
            max_network: self.limits.max_network,
            ..Options::default()
        }
    }

    fn check(&self, check: &mut check::Check<'_>) {
        self.providers.check(check);
        self.check_records(check);
        self.check_mirror(check);
        self.check_site(check);
        self.check_kubernetes(check);
        self.connectors.check(&self.mcp_servers, check);
        self.mcp_servers.check(check);
        sections::mcp_requests::check(&self.mcp_requests, check);
        self.limits.check(check);
        self.egress.check(&self.limits, check);
        sections::mcp::check(&self.mcp, check);
        self.tls.check(check);
        self.check_options(check);
    }

    /// Takes over what was written under a key of `providers.code_interpreter.settings` that says
    /// the same as one of ours.
    fn unite(&mut self, check: &mut check::Check<'_>) {
        let tool = &self.providers.code_interpreter.settings;
        let tell = |check: &mut check::Check<'_>, place: usize| {
            let (theirs, ours) = SAME[place];
            if check.has(ours) {
                let message = format!("`{}` has another value; remove one of the two", ours.join("."));
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
        self.unite_template(check);
        let tool = &self.providers.code_interpreter.settings;
        if let Some(time) = tool.execution_timeout
            && std::mem::replace(&mut self.limits.cell_timeout, time) != time
        {
            tell(check, 1);
        }
        if let Some(time) = tool.claim_timeout
            && std::mem::replace(&mut self.pool.acquire_timeout, time.0) != time.0
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
