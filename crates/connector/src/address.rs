//! Addresses that a connector may connect to.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};

pub use cellblock_settings::is_public;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Resolves names to public addresses only. The client connects to exactly these, so that an answer
/// that changes after the check has no effect.
#[derive(Debug)]
pub(crate) struct PublicOnly;

/// A name has no public address.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{name}` has the private address {address}, which is not connected to; if that is intended, set \
     `allow_private: true`"
)]
pub(crate) struct PrivateAddress {
    name: String,
    address: IpAddr,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let public = resolved(name.as_str(), 0, false).await?;
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Returns the addresses of a name to connect to; without the permission for private ones, the public ones.
pub(crate) async fn resolved(
    name: &str,
    port: u16,
    allow_private: bool,
) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    let found = tokio::net::lookup_host((name, port)).await?;
    let (public, private): (Vec<SocketAddr>, Vec<_>) =
        found.partition(|address| allow_private || is_public(address.ip()));
    match private.first() {
        Some(address) if public.is_empty() => Err(Box::new(PrivateAddress {
            name: name.to_owned(),
            address: address.ip(),
        })),
        _ => Ok(public),
    }
}
