//! The gateway beside the provider behind it, which the same client asks directly.

mod client;
mod crowd;
mod load;
mod provider;
mod server;
mod single;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use reqwest::Client;
use tokio::sync::OnceCell;

use client::RequestTarget;
use provider::{ModelScript, ProbeCode};
use server::ServerProcess;

pub(crate) use crowd::{Crowd, StalledClients};
pub(crate) use load::{Load, OneShots};
pub(crate) use single::{Analyses, Burst, DeltaStream, RequestSubject};

/// In the names of series of the provider that is asked directly.
const DIRECT: &str = "provider";

/// A gateway, its provider, and a client of both. They are started when they are first needed.
#[derive(Debug, Default)]
pub(crate) struct Gateways(OnceCell<Pair>);

/// A gateway, and its provider.
#[derive(Debug)]
struct Pair {
    client: Client,
    server: ServerProcess,
    provider: RequestTarget,
    gateway: RequestTarget,
}

impl Pair {
    /// Returns the metrics of the gateway.
    async fn metrics(&self) -> Result<String> {
        let address = format!("http://{}/metrics", self.server.address);
        let answer = self.client.get(address).send().await?.error_for_status()?;
        Ok(answer.text().await?)
    }
}

impl Gateways {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    async fn pair(&self) -> Result<&Pair> {
        self.0
            .get_or_try_init(|| async {
                // A client is built with cryptography or not at all; an error means that there is
                // some already.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let provider = provider::start().await?;
                let client = Client::builder().tcp_nodelay(true).build()?;
                let server = ServerProcess::start(provider, &client).await?;
                let pair = Pair {
                    gateway: RequestTarget::Gateway(server.address),
                    provider: RequestTarget::Provider(provider),
                    client,
                    server,
                };
                // The first request of each opens connections, and the first code makes a template.
                let text = ModelScript::text(1, Duration::ZERO);
                pair.provider.read(&pair.client, text).await?;
                pair.gateway.read(&pair.client, text).await?;
                let code = ModelScript::code(ProbeCode::Sum);
                let ran = pair.gateway.read(&pair.client, code).await?;
                pair.gateway.forget(&pair.client, &ran).await?;
                Ok(pair)
            })
            .await
    }
}
