//! Connections to servers: the name is resolved once, every address of the answer is checked, and
//! the connection goes to one of the checked addresses.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::idle::IdleStream;
use crate::live::CutConnection;
use crate::metered::MeteredStream;
use crate::proxy::ProxyState;
use crate::refusal::EgressRefusal;
use crate::rules::TUNNEL;
use crate::target::{EgressTarget, TargetHost};

/// Maximum number of addresses that are tried.
const MAX_ADDRESSES: usize = 8;

/// A connection to a server, without TLS.
pub(crate) type Socket = MeteredStream<IdleStream<TcpStream>>;

/// Connects to a target for a method.
pub(crate) async fn dial(
    shared: &ProxyState,
    target: &EgressTarget,
    method: &str,
) -> Result<(Socket, IpAddr), EgressRefusal> {
    let limit = shared.timeouts.connect;
    let late = |_| EgressRefusal::timeout(target, "connecting to", limit.as_secs_f64());
    timeout(limit, connect(shared, target, method, limit))
        .await
        .map_err(late)?
}

/// Encrypts a connection, and verifies the server's certificate.
pub(crate) async fn encrypt(
    shared: &ProxyState,
    target: &EgressTarget,
    socket: Socket,
) -> Result<TlsStream<Socket>, EgressRefusal> {
    let connector = shared
        .trust
        .connector()
        .map_err(|error| EgressRefusal::tls(target, &error))?;
    let name = match &target.host {
        TargetHost::Name(name) => ServerName::try_from(name.clone())
            .map_err(|_| EgressRefusal::tls(target, "a certificate cannot contain this name"))?,
        TargetHost::Ip(address) => ServerName::from(*address),
    };
    let limit = shared.timeouts.connect;
    match timeout(limit, connector.connect(name, socket)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(match classify(shared, target, &error) {
            Some(refusal) => refusal,
            None => EgressRefusal::tls(target, &error.to_string()),
        }),
        Err(_) => Err(EgressRefusal::timeout(
            target,
            "the TLS handshake with",
            limit.as_secs_f64(),
        )),
    }
}

/// Returns the refusal for an error that the proxy itself caused: a quota, a timeout, or a change of rules.
pub(crate) fn classify(
    shared: &ProxyState,
    target: &EgressTarget,
    error: &(dyn Error + 'static),
) -> Option<EgressRefusal> {
    let mut next = Some(error);
    while let Some(error) = next {
        let error_of_io = error.downcast_ref::<io::Error>();
        let inner = error_of_io.and_then(io::Error::get_ref);
        if inner.is_some_and(<dyn Error + Send + Sync>::is::<CutConnection>) {
            return Some(EgressRefusal::restricted(target));
        }
        match error_of_io.map(io::Error::kind) {
            Some(io::ErrorKind::QuotaExceeded) => {
                return Some(EgressRefusal::quota_bytes(shared.meter.max_bytes()));
            }
            Some(io::ErrorKind::TimedOut) => {
                let idle = shared.timeouts.idle.as_secs_f64();
                return Some(EgressRefusal::timeout(target, "waiting for", idle));
            }
            _ => next = error.source(),
        }
    }
    None
}

async fn connect(
    shared: &ProxyState,
    target: &EgressTarget,
    method: &str,
    limit: Duration,
) -> Result<(Socket, IpAddr), EgressRefusal> {
    let addresses = addresses(shared, target).await?;
    let rules = shared.rules();
    for address in &addresses {
        if let Err(refusal) = rules.address(target, *address, method) {
            // Only the operator learns the address.
            tracing::warn!(
                session = %shared.session,
                host = %target.host,
                %address,
                "egress refused a private address"
            );
            return Err(refusal);
        }
    }
    // A server that does not answer at one address leaves time for the others.
    let share = limit / u32::try_from(addresses.len()).unwrap_or(1).max(1);
    let mut last = "it has no address".to_owned();
    for address in addresses {
        match timeout(share, TcpStream::connect(SocketAddr::new(address, target.port))).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true).ok();
                let stream = IdleStream::new(stream, shared.timeouts.idle);
                let open = shared.live.enter(target, address, method == TUNNEL)?;
                return Ok((MeteredStream::new(stream, shared.meter.clone(), open), address));
            }
            Ok(Err(error)) => last = error.kind().to_string(),
            Err(_) => last = String::from("it did not answer in time"),
        }
    }
    Err(EgressRefusal::connect(target, &last))
}

async fn addresses(shared: &ProxyState, target: &EgressTarget) -> Result<Vec<IpAddr>, EgressRefusal> {
    let name = match &target.host {
        TargetHost::Ip(address) => return Ok(vec![*address]),
        TargetHost::Name(name) => name,
    };
    let found = shared.resolver.resolve(name).await;
    let mut addresses = found.map_err(|error| EgressRefusal::resolve(target, &error.to_string()))?;
    addresses.truncate(MAX_ADDRESSES);
    if addresses.is_empty() {
        return Err(EgressRefusal::resolve(target, "it has no address"));
    }
    Ok(addresses)
}
