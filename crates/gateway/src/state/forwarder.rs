//! The client that sends requests to other gateways.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::Client;
use reqwest::redirect::Policy;

/// Maximum time in which a gateway accepts a connection.
const CONNECT: Duration = Duration::from_secs(2);

/// Sends requests to other gateways. Nothing is set up before the first one.
#[derive(Debug, Default)]
pub(crate) struct Forwarder(OnceLock<Client>);

impl Forwarder {
    /// Returns the client, whose connections are kept.
    pub(crate) fn client(&self) -> reqwest::Result<&Client> {
        if let Some(client) = self.0.get() {
            return Ok(client);
        }
        // An error means that a provider of cryptography is there already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A proxy of the environment leads out, and not to a neighbor.
        let client = Client::builder()
            .connect_timeout(CONNECT)
            .http1_only()
            .no_proxy()
            .redirect(Policy::none())
            .tcp_nodelay(true)
            .build()?;
        Ok(self.0.get_or_init(|| client))
    }
}
