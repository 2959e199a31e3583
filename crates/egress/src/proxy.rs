//! The proxy of one sandbox.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::authority::{AuthorityError, CertificateAuthority};
use crate::connection;
use crate::entry::RequestEntry;
use crate::front::Front;
use crate::idle::IdleStream;
use crate::live::LiveRules;
use crate::meter::{EgressUsage, SessionMeter};
use crate::options::{EgressOptions, EgressTimeouts};
use crate::policy::{EgressPolicy, EgressRestriction, HeaderRule, PolicyError};
use crate::record::EgressSink;
use crate::refusal::{EgressRefusal, MARK};
use crate::resolver::HostResolver;
use crate::rules::Rules;
use crate::trust::Trust;

/// Time for which a client may be idle longer than a server: the error of the server can be reported.
const GRACE: Duration = Duration::from_secs(10);
/// Time in which a client can read that there are too many connections.
const BUSY: Duration = Duration::from_secs(1);

/// The proxy of one session. Clones share its state.
#[derive(Clone, Debug)]
pub struct EgressProxy {
    shared: Arc<ProxyState>,
}

/// The reason why a proxy cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// The policy is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The certificate authority could not be created.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// State that all connections of a proxy use.
pub(crate) struct ProxyState {
    pub(crate) session: Arc<str>,
    pub(crate) live: LiveRules,
    pub(crate) meter: Arc<SessionMeter>,
    pub(crate) sink: Option<EgressSink>,
    pub(crate) authority: Option<Arc<CertificateAuthority>>,
    pub(crate) resolver: Arc<dyn HostResolver>,
    pub(crate) trust: Arc<Trust>,
    pub(crate) timeouts: EgressTimeouts,
    connections: Semaphore,
    max_connections: usize,
}

impl EgressProxy {
    /// Creates the proxy of a session. The label is in each record; the sink receives all records.
    pub fn new(
        policy: EgressPolicy,
        session: impl Into<Arc<str>>,
        sink: Option<EgressSink>,
    ) -> Result<Self, EgressError> {
        Self::with_options(policy, session, sink, EgressOptions::default())
    }

    /// Returns what code needs to verify servers through the proxy: the system's certificates, and
    /// that of [`ca_pem`](Self::ca_pem) if there is one.
    pub fn bundle_pem(&self) -> String {
        let mut bundle = crate::trust::system_pem().to_owned();
        bundle.extend(self.ca_pem());
        bundle
    }

    /// Creates the proxy of a session with other timeouts, roots or names.
    pub fn with_options(
        policy: EgressPolicy,
        session: impl Into<Arc<str>>,
        sink: Option<EgressSink>,
        options: EgressOptions,
    ) -> Result<Self, EgressError> {
        let session = session.into();
        let meter = Arc::new(SessionMeter::new(policy.quotas));
        let rules = Rules::new(policy)?;
        let authority = if rules.intercept() {
            Some(Arc::new(CertificateAuthority::new(&session)?))
        } else {
            None
        };
        let shared = ProxyState {
            session,
            live: LiveRules::new(Arc::new(rules)),
            meter,
            sink,
            authority,
            resolver: options.resolver,
            trust: Arc::new(Trust::new(options.roots)),
            timeouts: options.timeouts,
            connections: Semaphore::new(options.max_connections),
            max_connections: options.max_connections,
        };
        let shared = Arc::new(shared);
        Ok(Self { shared })
    }

    /// Creates the proxy of a session that begins with the memory of this one: with the same rules,
    /// placeholders and certificates, and with separate quotas.
    #[must_use]
    pub fn branch(&self, session: impl Into<Arc<str>>, sink: Option<EgressSink>) -> Self {
        let own = &*self.shared;
        let shared = ProxyState {
            session: session.into(),
            live: LiveRules::new(own.rules()),
            meter: Arc::new(SessionMeter::new(own.meter.quotas())),
            sink,
            authority: own.authority.clone(),
            resolver: Arc::clone(&own.resolver),
            trust: Arc::clone(&own.trust),
            timeouts: own.timeouts,
            connections: Semaphore::new(own.max_connections),
            max_connections: own.max_connections,
        };
        let shared = Arc::new(shared);
        Self { shared }
    }

    /// Replaces the destinations that the session gives up, and its headers, from the next request on.
    /// Connections to servers that the new rules do not allow end at once: tunnels and WebSockets, and
    /// responses that are still being sent. So do tunnels to hosts that have headers now, which
    /// have to be decrypted. A policy that is not `replaceable` may lack the certificates for that.
    ///
    /// # Errors
    ///
    /// A header is invalid. The rules are as before then.
    pub fn replace(
        &self,
        restriction: EgressRestriction,
        headers: Vec<HeaderRule>,
    ) -> Result<(), PolicyError> {
        self.shared.live.replace(restriction, headers)
    }

    /// Serves a connection that code opened to the proxy, until it ends. Dropping the future closes
    /// the connection, and the connection to the server.
    pub async fn serve<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let shared = &self.shared;
        let Ok(_permit) = shared.connections.try_acquire() else {
            return self.refuse(stream).await;
        };
        let stream = IdleStream::new(stream, shared.timeouts.idle + GRACE);
        if let Some(after) = connection::serve(shared, Front::Proxy, stream).await {
            after.serve(shared).await;
        }
    }

    /// Returns the certificate of the proxy's authority as PEM, if the policy has methods or secrets,
    /// or is replaceable. Code must trust it. Its key exists only in the memory of this proxy and its
    /// branches.
    pub fn ca_pem(&self) -> Option<String> {
        self.shared.authority.as_ref().map(|authority| authority.pem())
    }

    /// Returns the environment variables of code that have placeholders of secrets. They stay the same
    /// as long as the proxy exists.
    pub fn variables(&self) -> BTreeMap<String, String> {
        self.shared.rules().placeholders.variables()
    }

    /// Returns what the session has used.
    pub fn usage(&self) -> EgressUsage {
        self.shared.meter.usage()
    }

    async fn refuse<S: AsyncWrite + Unpin>(&self, mut stream: S) {
        let refusal = EgressRefusal::connections(self.shared.max_connections);
        let mut entry = RequestEntry::new(&self.shared, "");
        entry.refuse(&refusal);
        let text = format!("{}\n", refusal.text());
        let response = format!(
            "HTTP/1.1 {} {}\r\n{MARK}: {}\r\ncontent-type: text/plain; charset=utf-8\r\n\
             content-length: {}\r\n\
             connection: close\r\n\r\n{text}",
            refusal.status.as_u16(),
            refusal.phrase(),
            refusal.mark(),
            text.len(),
        );
        let answer = async {
            stream.write_all(response.as_bytes()).await?;
            stream.shutdown().await
        };
        // The client may be gone.
        let _ = timeout(BUSY, answer).await;
    }
}

impl ProxyState {
    /// Returns the rules that hold now.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.live.current()
    }
}

impl fmt::Debug for ProxyState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ProxyState")
            .field("session", &self.session)
            .field("rules", &self.live)
            .finish_non_exhaustive()
    }
}
