//! Options of a gateway. Each group of options is a section of the configuration; see [`cellblock_settings`].

mod advertise;
mod cells;
mod containers;
mod http;
mod keys;
mod responses;
mod runs;
mod sessions;
mod skills;
mod uploads;
mod volumes;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::tools::{Tools, TurnOptions};
use cellblock_agent::wire::{ApiError, Tool};
use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::egress::EgressPolicy;
use cellblock_interpreter::image::layer::RequirementOptions;
use cellblock_interpreter::limits::{MAX_CELL_TIMEOUT, NetworkPolicy};

pub use advertise::{AdvertisedUrl, AdvertisedUrlError};
pub use cells::CellOptions;
pub use containers::{ContainerOptions, StickyKey};
pub use http::{HttpServerOptions, MetricsOptions, TlsOptions};
pub use keys::{AuthOptions, QuotaOptions, RemoteOptions};
pub use responses::{FileOptions, ModelListOptions, ResponseOptions};
pub use runs::RunOptions;
pub use sessions::{ExecuteOptions, SessionsOptions};
pub use skills::SkillOptions;
pub use uploads::UploadOptions;
pub use volumes::VolumeOptions;

/// Default time for which a lease holds, by the clock of the database.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// Options of a gateway.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Address at which other gateways reach this one. Gateways that share records forward requests to it.
    pub advertise: Option<AdvertisedUrl>,
    /// Time after which the other gateways consider one that shares its records as ended if it is silent; all
    /// of them have the same.
    pub lease: Duration,
    /// Limits and rules of a turn.
    pub turn: TurnOptions,
    /// Stored and background responses.
    pub responses: ResponseOptions,
    /// Containers.
    pub containers: ContainerOptions,
    /// Uploaded files.
    pub files: FileOptions,
    /// Sessions of the REST API.
    pub sessions: SessionsOptions,
    /// Uploads that are being received.
    pub uploads: UploadOptions,
    /// Skills.
    pub skills: SkillOptions,
    /// Volumes.
    pub volumes: VolumeOptions,
    /// Records of runs.
    pub runs: RunOptions,
    /// The sandbox server.
    pub execute: ExecuteOptions,
    /// Sandboxes for other Cellblocks.
    pub remote: RemoteOptions,
    /// Authentication.
    pub auth: AuthOptions,
    /// Default quotas of a key.
    pub quotas: QuotaOptions,
    /// Packages that code may require.
    pub requirements: RequirementOptions,
    /// Certificates, if connections are encrypted.
    pub tls: Option<TlsOptions>,
    /// Access to the metrics.
    pub metrics: MetricsOptions,
    /// Requests over HTTP.
    pub http: HttpServerOptions,
    /// Tool servers that turns fetch data from.
    pub tools: Tools,
    /// Code in cells.
    pub cells: CellOptions,
    /// Connectors that code can call in sessions with the toolset `notebook` and in containers.
    pub connectors: Vec<Arc<dyn Connector>>,
    /// Whether the tool `code_interpreter` is offered. If not, requests that use it are rejected.
    pub code_interpreter: bool,
    /// Whether every chat completion has the tool, even if its `tools` do not list it.
    pub chat_interpreter: bool,
    /// Maximum cell timeout that a request can set.
    pub max_cell_timeout: Duration,
    /// Widest network policy that a request can set.
    pub max_network: NetworkPolicy,
    /// Hosts that code reaches with the network policy `egress`.
    pub egress: Option<EgressPolicy>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            advertise: None,
            lease: LEASE,
            turn: TurnOptions::default(),
            responses: ResponseOptions::default(),
            containers: ContainerOptions::default(),
            files: FileOptions::default(),
            sessions: SessionsOptions::default(),
            uploads: UploadOptions::default(),
            skills: SkillOptions::default(),
            volumes: VolumeOptions::default(),
            runs: RunOptions::default(),
            execute: ExecuteOptions::default(),
            remote: RemoteOptions::default(),
            auth: AuthOptions::default(),
            quotas: QuotaOptions::default(),
            requirements: RequirementOptions::default(),
            tls: None,
            metrics: MetricsOptions::default(),
            http: HttpServerOptions::default(),
            tools: Tools::default(),
            cells: CellOptions::default(),
            connectors: Vec::new(),
            code_interpreter: true,
            chat_interpreter: false,
            max_cell_timeout: MAX_CELL_TIMEOUT,
            max_network: NetworkPolicy::None,
            egress: None,
        }
    }
}

impl Options {
    /// Refuses tools that are not offered here.
    pub(crate) fn refuse_tools(&self, tools: &[Tool]) -> Result<(), ApiError> {
        let refuse = |place: usize, message: &str| {
            let path = format!("tools[{place}].type");
            Err(ApiError::invalid(path, "unsupported_tool", message))
        };
        if let Some(place) = tools.iter().position(Tool::is_interpreter)
            && !self.code_interpreter
        {
            let message = "the tool `code_interpreter` is switched off here; send the request without it";
            return refuse(place, message);
        }
        let programs = tools.iter().position(Tool::is_programs);
        if let Some(place) = programs.filter(|_| !self.code_interpreter) {
            let message = "`programmatic_tool_calling` is not supported here: code is switched off; send the \
                           request without it, and let the model call the functions (`direct`)";
            return refuse(place, message);
        }
        if let Some(place) = programs.filter(|_| self.cells.guard != Guard::Off) {
            let message = "`programmatic_tool_calling` is not supported here: code is checked before it runs, \
                           and JavaScript cannot be checked; use `code_interpreter`, or let the model call the \
                           functions (`direct`)";
            return refuse(place, message);
        }
        // Clients look for the first words, and then offer a function in its place.
        match tools.iter().position(Tool::is_hosted_shell) {
            Some(place) if !self.code_interpreter => refuse(
                place,
                "Tool 'shell' is not supported in containers here: code is switched off; use the \
                 environment `local`",
            ),
            Some(place) if self.cells.guard != Guard::Off => refuse(
                place,
                "Tool 'shell' is not supported in containers here: code is checked before it runs, and \
                 commands cannot be checked; use `code_interpreter`, or the environment `local`",
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cellblock_agent::wire::Container;

    #[test]
    fn a_disabled_tool_is_rejected_by_name() {
        let container = Container::Id("cntr_1".to_owned());
        let tools = [Tool::CodeInterpreter { container }];
        let on = Options::default();
        assert_eq!(on.refuse_tools(&tools), Ok(()));
        let off = Options {
            code_interpreter: false,
            ..on
        };
        assert_eq!(off.refuse_tools(&[]), Ok(()));
        let refused = off.refuse_tools(&tools).unwrap_err();
        assert_eq!(refused.param.as_deref(), Some("tools[0].type"));
        assert_eq!(refused.status(), 400);
        let programs = [Tool::ProgrammaticToolCalling];
        let guarded = Options {
            cells: CellOptions {
                guard: Guard::Strict,
                ..CellOptions::default()
            },
            ..Options::default()
        };
        for (options, reason) in [(&off, "switched off"), (&guarded, "cannot be checked")] {
            let refused = options.refuse_tools(&programs).unwrap_err();
            assert!(refused.message.contains(reason), "{refused}");
        }
    }
}
