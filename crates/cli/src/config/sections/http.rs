//! Requests over HTTP.

use cellblock_gateway::Options;
use cellblock_gateway::server::{ConnectionOptions, HostOptions, StopOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use crate::config::units::{Bytes, Time};

/// Requests over HTTP.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Http {
    /// Maximum size of a request body; uploads have their own limit.
    pub(crate) max_body: Bytes,
    /// Accepted host names, in addition to `localhost` and the server's address. Beyond loopback
    /// all names are accepted unless some are listed.
    pub(crate) hosts: Vec<String>,
    /// Web origins that may call the server, such as `https://app.example.com`.
    pub(crate) origins: Vec<String>,
    /// Maximum number of concurrent connections; others wait.
    pub(crate) max_connections: usize,
    /// Maximum time until a request's head is complete.
    pub(crate) header_timeout: Time,
    /// Maximum pause while a request's body is sent.
    pub(crate) body_timeout: Time,
    /// Time that running requests have to finish after the server is asked to stop. `--grace` takes
    /// precedence.
    pub(crate) grace: Time,
}

impl Default for Http {
    fn default() -> Self {
        let (hosts, connections) = (HostOptions::default(), ConnectionOptions::default());
        Self {
            max_body: Bytes(16 << 20),
            hosts: hosts.names,
            origins: hosts.origins,
            max_connections: connections.most,
            header_timeout: Time(connections.header_timeout),
            body_timeout: Time(connections.body_timeout),
            grace: Time(StopOptions::default().grace),
        }
    }
}

impl Http {
    pub(in crate::config) fn apply(&self, options: &mut Options) {
        options.max_body = usize::try_from(self.max_body.0).unwrap_or(usize::MAX);
        options.hosts = HostOptions {
            names: self.hosts.clone(),
            origins: self.origins.clone(),
        };
        options.connections = ConnectionOptions {
            most: self.max_connections,
            header_timeout: self.header_timeout.0,
            body_timeout: self.body_timeout.0,
        };
        options.stop = StopOptions { grace: self.grace.0 };
    }

    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        if self.max_body.0 < 1024 {
            check.wrong(
                &["http", "max_body"],
                "no request is so small; write 1KiB or more",
            );
        }
        if self.max_connections == 0 {
            check.wrong(
                &["http", "max_connections"],
                "0 connections are none; write 1 or more",
            );
        }
        check.positive(&["http", "header_timeout"], self.header_timeout);
        check.positive(&["http", "body_timeout"], self.body_timeout);
    }
}
