//! The HTTP(S) proxy through which code in a sandbox reaches the hosts on an allow-list, and nothing else.
//!
//! ```text
//!  code inside ── stream ──▶ EgressProxy::serve ── checked address ──▶ server
//!                              │
//!                              ├─ GET http://host/…   checked, forwarded
//!                              ├─ CONNECT host:443    checked, then bytes are copied
//!                              └─ CONNECT host:443    of a rule with `methods`, or with a secret:
//!                                                     TLS ends here, each request is checked and
//!                                                     forwarded over verified TLS
//! ```
//!
//! [`inbound`] is the other direction: what passes between a client and a program that listens in a sandbox.
//!
//! The crate knows no sandboxes. Its caller hands it one stream for each connection that code opens,
//! and sets `HTTP_PROXY`, `HTTPS_PROXY` and, with [`EgressProxy::ca_pem`], `SSL_CERT_FILE` inside.
//!
//! ```
//! # use cellblock_egress::{EgressPolicy, EgressProxy};
//! # use std::sync::Arc;
//! # async fn example(stream: tokio::io::DuplexStream) -> Result<(), Box<dyn std::error::Error>> {
//! let policy = EgressPolicy::from_rules(["api.example.com", "*.files.example.com", "127.0.0.1:8000"])?;
//! let sink = Arc::new(|record: &cellblock_egress::EgressRecord| println!("{record:?}"));
//! let proxy = EgressProxy::new(policy, "session", Some(sink))?;
//! proxy.serve(stream).await;
//! # Ok(())
//! # }
//! ```
//!
//! The proxy guarantees:
//!
//! - It connects only to targets that a rule allows. It resolves names itself, checks every address of
//!   the answer, and connects to a checked address without resolving again. An address that is not one
//!   of the internet is refused unless a rule names that IP address and the port.
//! - A restriction of one session ([`EgressRestriction`]) only takes targets away from what rules
//!   allow. It holds for every address that a name resolves to, and ends connections that it no longer
//!   allows when it is replaced ([`EgressProxy::replace`]).
//! - It refuses requests that programs could read differently: with both `Content-Length` and
//!   `Transfer-Encoding`, bare line feeds, folded headers, a `Host` header that differs from the URL.
//!   It writes each forwarded request anew, without the headers of a single connection.
//! - A secret is in requests to its hosts only, and in no log, error or response of the proxy. The
//!   proxy does not look for it in what servers send: a server that repeats the headers of requests
//!   in its responses discloses the secret to code.
//! - A placeholder ([`DomainSecret`]) is replaced in the headers of requests to its host only: not in
//!   paths and bodies, and not in tunnels and WebSockets. Everywhere else it is a text that opens nothing.
//! - It does not follow redirects. Code that follows one sends a new request, which is checked.
//!
//! The proxy does not look into tunnels. Code can speak any protocol in one, and where many names share
//! a server, as those of a content delivery network do, it can ask that server for another name. A rule
//! with `methods` prevents both.

mod after;
mod authority;
mod connection;
mod dial;
mod entry;
mod exchange;
mod front;
mod head;
mod headers;
mod idle;
pub mod inbound;
mod live;
mod local_authority;
mod meter;
mod metered;
mod options;
mod placeholders;
mod policy;
mod proxy;
mod record;
mod refusal;
mod resolver;
mod rules;
mod session_headers;
mod strict;
mod target;
mod trust;
mod upstream;

pub use authority::AuthorityError;
pub use headers::remove_hop_by_hop;
pub use local_authority::{LocalAuthority, LocalAuthorityError, LocalCertificate};
pub use meter::EgressUsage;
pub use options::{EgressOptions, EgressTimeouts};
pub use policy::{
    AddressBlock, AllowRule, Destination, DestinationError, DomainSecret, EgressPolicy, EgressQuotas,
    EgressRestriction, EgressSecret, HeaderRule, HostPattern, PolicyError, RuleError, SecretRule,
};
pub use proxy::{EgressError, EgressProxy};
pub use record::{EgressDecision, EgressRecord, EgressSink};
pub use resolver::{HostResolver, SystemResolver};
pub use target::HostError;
