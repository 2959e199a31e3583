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
    /// The most bytes of a request's body, but of an upload.
    pub(crate) max_body: Bytes,
    /// Names by which the server is reached beside `localhost` and its address. Beyond loopback any name is answered, unless some are listed.
    pub(crate) hosts: Vec<String>,
    /// Pages that may ask it, each as an origin such as `https://app.example.com`.
    pub(crate) origins: Vec<String>,
    /// The most connections at once; others wait.
    pub(crate) max_connections: usize,
    /// How long a request's head may take to come.
    pub(crate) header_timeout: Time,
    /// How long a request's body may pause.
    pub(crate) body_timeout: Time,
    /// How long what runs may go on after the server was told to stop. The same as `--grace`, which counts more.
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
