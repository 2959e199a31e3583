//! The gateway as it is measured: `cellblock serve` beside the provider behind it, in turns.

use std::time::Duration;

use anyhow::{Result, ensure};
use reqwest::Client;
use tokio::sync::OnceCell;

use crate::programs::SUM;
use client::RequestTarget;
use provider::ModelScript;
use server::ServerProcess;

mod client;
pub(crate) mod load;
mod provider;
mod server;
pub(crate) mod streams;

/// In the names of series of the provider that is asked directly.
const DIRECT: &str = "provider";

/// A gateway, its provider, and a client of both. They are started when they are first needed.
pub(crate) type Gateways = OnceCell<Pair>;

/// A gateway, and its provider.
#[derive(Debug)]
pub(crate) struct Pair {
    client: Client,
    server: ServerProcess,
    provider: RequestTarget,
    gateway: RequestTarget,
}

async fn pair(gateways: &Gateways) -> Result<&Pair> {
    gateways.get_or_try_init(Pair::start).await
}

impl Pair {
    async fn start() -> Result<Self> {
        // A client is built with cryptography or not at all; an error means that there is
        // some already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let provider = provider::start().await?;
        let client = Client::builder().tcp_nodelay(true).build()?;
        let server = ServerProcess::start(provider, &client).await?;
        let pair = Self {
            gateway: RequestTarget::gateway(server.address),
            provider: RequestTarget::provider(provider),
            client,
            server,
        };
        // The first request of each opens connections, and the first code makes a template.
        let text = ModelScript::text(1, Duration::ZERO);
        pair.provider.read(&pair.client, text).await?;
        pair.gateway.read(&pair.client, text).await?;
        pair.run(SUM).await?;
        Ok(pair)
    }

    /// Sends a request whose model runs code, and deletes its container, as a client does that is
    /// done with it. Returns the duration without that.
    async fn run(&self, code: &'static str) -> Result<Duration> {
        let read = self.gateway.read(&self.client, ModelScript::code(code)).await?;
        self.gateway.forget(&self.client, &read).await?;
        ensure!(read.ran, "its code was not run");
        Ok(read.total)
    }
}
