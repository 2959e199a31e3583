//! Addresses of names.

use std::fmt;
use std::io;
use std::net::IpAddr;

use futures_util::future::BoxFuture;

/// Resolves the names of hosts. The proxy checks each address of an answer, and connects to these
/// addresses without another look-up.
pub trait HostResolver: fmt::Debug + Send + Sync {
    /// Returns the addresses of a name.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the system, which also reads `/etc/hosts`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl HostResolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
