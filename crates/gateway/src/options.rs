//! How a gateway is set up. A group of options belongs to the module that obeys it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use cellblock_agent::tools::{DerivationOptions, Tools};
use cellblock_agent::wire::{ApiError, Tool};
use cellblock_interpreter::limits::MAX_CELL_TIME;

use crate::containers::ContainerOptions;
use crate::execute::ExecuteOptions;
use crate::files::FileOptions;
use crate::metrics::MetricsOptions;
use crate::quotas::QuotaOptions;
use crate::remote::RemoteOptions;
use crate::responses::ResponseOptions;
use crate::server::{AuthOptions, ConnectionOptions, HostOptions, StopOptions, TlsOptions};
use crate::sessions::SessionsOptions;

/// How a gateway is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The most bytes of a request's body, but of an upload.
    pub max_body: usize,
    /// The most model calls of a turn.
    pub max_steps: u32,
    /// How responses are answered and kept.
    pub responses: ResponseOptions,
    /// Who may call.
    pub auth: AuthOptions,
    /// How much callers may have and use.
    pub quotas: QuotaOptions,
    /// By which names it is reached, and from which pages.
    pub hosts: HostOptions,
    /// What a connection may take.
    pub connections: ConnectionOptions,
    /// Certificates, where it encrypts.
    pub tls: Option<TlsOptions>,
    /// Who is told what was counted.
    pub metrics: MetricsOptions,
    /// How it stops.
    pub stop: StopOptions,
    /// Sessions.
    pub sessions: SessionsOptions,
    /// The sandbox server.
    pub execute: ExecuteOptions,
    /// Whether others may have sandboxes.
    pub remote: RemoteOptions,
    /// Containers.
    pub containers: ContainerOptions,
    /// Files.
    pub files: FileOptions,
    /// Servers of tools that turns fetch data with.
    pub tools: Tools,
    /// How turns fetch and derive.
    pub derivation: DerivationOptions,
    /// Whether the tool `code_interpreter` is offered. Where it is not, a request that asks for it is refused.
    pub code_interpreter: bool,
    /// Whether each chat completion has it, rather than those whose `tools` name it.
    pub chat_interpreter: bool,
    /// The longest that a request may let code run.
    pub max_cell_time: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            max_body: 16 << 20,
            max_steps: 20,
            responses: ResponseOptions::default(),
            auth: AuthOptions::default(),
            quotas: QuotaOptions::default(),
            hosts: HostOptions::default(),
            connections: ConnectionOptions::default(),
            tls: None,
            metrics: MetricsOptions::default(),
            stop: StopOptions::default(),
            sessions: SessionsOptions::default(),
            execute: ExecuteOptions::default(),
            remote: RemoteOptions::default(),
            containers: ContainerOptions::default(),
            files: FileOptions::default(),
            tools: Tools::default(),
            derivation: DerivationOptions::default(),
            code_interpreter: true,
            chat_interpreter: false,
            max_cell_time: MAX_CELL_TIME,
        }
    }
}

impl Options {
    /// Refuses tools that are not offered here.
    pub(crate) fn refuse_tools(&self, tools: &[Tool]) -> Result<(), ApiError> {
        let hosted = |tool: &Tool| matches!(tool, Tool::CodeInterpreter { .. });
        match tools.iter().position(hosted) {
            Some(place) if !self.code_interpreter => Err(ApiError::invalid(
                format!("tools[{place}].type"),
                "unsupported_tool",
                "the tool `code_interpreter` is switched off here; send the request without it",
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cellblock_agent::wire::Container;

    #[test]
    fn a_tool_that_is_switched_off_is_refused_and_named() {
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
    }
}
