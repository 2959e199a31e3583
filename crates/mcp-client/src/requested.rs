//! Servers that requests name, if an operator allows them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use cellblock_agent::{ToolServer, ToolServerAddress, ToolServerError, ToolServers};
use cellblock_interpreter::connector::{Connector, Redaction};
use parking_lot::{Mutex, MutexGuard};

use super::UrlPattern;
use super::connector::ServerConnector;
use super::http::{Address, parse};
use super::options::{RequestedServerOptions, ServerOptions};
use super::server::ForeignServer;
use super::{Transport, words};

/// Maximum number of servers that are kept connected.
const MOST_KEPT: usize = 64;
/// Time for which an unused server is kept.
const KEPT: Duration = Duration::from_mins(10);

/// Provides servers at URLs that an operator allows. A server is kept only for callers with the
/// same headers.
#[derive(Debug)]
pub struct RequestedServers {
    allowed: Vec<UrlPattern>,
    options: ServerOptions,
    kept: Arc<Mutex<Shelf>>,
}

/// The known servers. A key contains credentials of its caller, so it is never shown.
#[derive(Default)]
struct Shelf(HashMap<Key, ServerEntry>);

#[derive(PartialEq, Eq, Hash)]
struct Key {
    label: String,
    url: String,
    headers: Vec<(String, String)>,
}

struct ServerEntry {
    server: Arc<ForeignServer>,
    used: Instant,
}

impl RequestedServers {
    /// Allows the servers at the URLs that the options allow.
    pub fn new(options: &RequestedServerOptions) -> Self {
        Self {
            allowed: options.patterns(),
            options: options.of_server(),
            kept: Arc::default(),
        }
    }

    fn find(&self, address: ToolServerAddress) -> Result<Arc<ForeignServer>, ToolServerError> {
        let label = words::told(&address.label, 100);
        let refused =
            |why: &dyn fmt::Display| ToolServerError::new(format!("the server `{label}` is not used: {why}"));
        let url = parse(&address.url).map_err(|error| refused(&error))?;
        let pattern = self
            .allowed
            .iter()
            .find(|pattern| pattern.allows(&url))
            .ok_or_else(|| {
                refused(
                    &"the operator does not allow its URL; use another server, or ask the operator to \
                      allow it",
                )
            })?;
        let mut headers = address.headers;
        let at =
            Address::new(url.as_str(), &headers, self.options.allow_http).map_err(|error| refused(&error))?;
        headers.sort();
        let key = Key {
            label: address.label,
            url: url.into(),
            headers,
        };
        let mut kept = lock(&self.kept);
        kept.sweep();
        if let Some(known) = kept.0.get_mut(&key) {
            known.used = Instant::now();
            return Ok(Arc::clone(&known.server));
        }
        kept.make_room();
        let transport = Transport::Http(at.within(pattern.clone()));
        let server = Arc::new(ForeignServer::new(label, transport, self.options.clone()));
        let first = kept.0.is_empty();
        kept.0.insert(
            key,
            ServerEntry {
                server: Arc::clone(&server),
                used: Instant::now(),
            },
        );
        if first && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(sweep(Arc::downgrade(&self.kept)));
        }
        Ok(server)
    }
}

/// Removes unused servers as long as there are any.
async fn sweep(kept: Weak<Mutex<Shelf>>) {
    loop {
        tokio::time::sleep(KEPT / 10).await;
        let Some(kept) = kept.upgrade() else { return };
        let mut kept = lock(&kept);
        kept.sweep();
        if kept.0.is_empty() {
            return;
        }
    }
}

fn lock(kept: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    kept.lock()
}

impl Shelf {
    fn sweep(&mut self) {
        self.0.retain(|_, kept| kept.used.elapsed() < KEPT);
    }

    /// Removes the least recently used server. Its current users keep it.
    fn make_room(&mut self) {
        while self.0.len() >= MOST_KEPT {
            let Some(oldest) = self.0.values().map(|kept| kept.used).min() else {
                return;
            };
            let mut gone = false;
            self.0
                .retain(|_, kept| gone || kept.used != oldest || std::mem::replace(&mut gone, true));
        }
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Shelf")
            .field("kept", &self.0.len())
            .finish()
    }
}

impl ToolServers for RequestedServers {
    fn at(&self, address: ToolServerAddress) -> Result<Arc<dyn ToolServer>, ToolServerError> {
        self.find(address).map(|server| server as Arc<dyn ToolServer>)
    }

    fn connector(&self, address: ToolServerAddress) -> Result<Arc<dyn Connector>, ToolServerError> {
        let headers = address.headers.clone();
        // First, because long secrets take a while to prepare for.
        let server = self.find(address)?;
        let redaction = Redaction::new(headers.iter().flat_map(|(_, value)| secrets(value)));
        Ok(Arc::new(ServerConnector::new(server, redaction)))
    }
}

/// Returns the parts of a header's value to remove: all of it, and what follows the name of a scheme.
fn secrets(value: &str) -> impl Iterator<Item = &str> {
    let credentials = value.split_once(' ').map(|(_, credentials)| credentials);
    std::iter::once(value).chain(credentials)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(allowed: &[&str]) -> RequestedServers {
        RequestedServers::new(&RequestedServerOptions {
            allowed_urls: allowed.iter().copied().map(str::to_owned).collect(),
            ..RequestedServerOptions::default()
        })
    }

    fn address(label: &str, url: &str, key: &str) -> ToolServerAddress {
        ToolServerAddress {
            label: label.to_owned(),
            url: url.to_owned(),
            headers: vec![("Authorization".to_owned(), key.to_owned())],
        }
    }

    #[test]
    fn a_disallowed_server_is_reported_without_its_url_or_headers() {
        let allowed = servers(&["https://mcp.example.com/mcp"]);
        assert!(
            allowed
                .at(address("a", "https://mcp.example.com/mcp", "k"))
                .is_ok()
        );
        let told = |address| allowed.at(address).unwrap_err().to_string();
        let refused = "the server `a b` is not used: the operator does not allow its URL; use another \
                       server, or ask the operator to allow it";
        assert_eq!(
            told(address("a\nb", "https://evil.example/mcp?key=hunter2", "hunter2")),
            refused
        );
        assert_eq!(
            servers(&[])
                .at(address("a b", "https://mcp.example.com/mcp", "k"))
                .unwrap_err()
                .to_string(),
            refused
        );
        assert_eq!(
            told(address("a", "https://u:hunter2@mcp.example.com/mcp", "k")),
            "the server `a` is not used: read the server's URL: it must not contain a user or a password; \
             use a header"
        );
        let mut own = address("a", "https://mcp.example.com/mcp", "k");
        own.headers = vec![("Host".to_owned(), "hunter2".to_owned())];
        assert_eq!(
            told(own),
            "the server `a` is not used: read the server's headers: `Host` is set automatically; remove it"
        );
        assert!(!format!("{allowed:?}").contains("hunter2"));
    }

    #[test]
    fn functions_of_code_do_not_repeat_the_callers_credentials() {
        let allowed = servers(&["https://mcp.example.com/mcp"]);
        let address = |url| address("a", url, "Bearer hunter2hunter2");
        let connector = allowed.connector(address("https://mcp.example.com/mcp")).unwrap();
        assert_eq!(connector.name(), "a");
        for said in ["hunter2hunter2", "Bearer hunter2hunter2", "a hunter2hunter2 b"] {
            let shown = connector.redaction().text(said);
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        allowed
            .connector(address("https://evil.example/mcp"))
            .unwrap_err();
    }

    #[test]
    fn a_server_is_kept_only_for_the_same_headers() {
        let allowed = servers(&["https://mcp.example.com/"]);
        let at = |label, url, key| allowed.find(address(label, url, key)).unwrap();
        let one = at("a", "https://mcp.example.com/mcp", "k");
        assert!(Arc::ptr_eq(
            &one,
            &at("a", "https://MCP.example.com:443/mcp", "k")
        ));
        assert!(!Arc::ptr_eq(
            &one,
            &at("a", "https://mcp.example.com/mcp", "other")
        ));
        assert!(!Arc::ptr_eq(&one, &at("a", "https://mcp.example.com/other", "k")));
    }

    #[test]
    fn the_number_of_kept_servers_is_limited() {
        let allowed = servers(&["https://mcp.example.com/"]);
        let first = allowed
            .find(address("a", "https://mcp.example.com/0", "k"))
            .unwrap();
        for number in 1..=MOST_KEPT {
            allowed
                .at(address("a", &format!("https://mcp.example.com/{number}"), "k"))
                .unwrap();
        }
        assert_eq!(lock(&allowed.kept).0.len(), MOST_KEPT);
        assert_eq!(Arc::strong_count(&first), 1);
    }
}
