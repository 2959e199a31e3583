//! A connection to Postgres with a transaction that only reads. If it is dropped, the server
//! cancels its statement.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::NoTls;
use tokio_postgres::{CancelToken, Client, Config, Error, SimpleQueryMessage};

use super::failed;
use super::wire::{Tls, WireLimiter};
use crate::sql::dial::{ServerEndpoint, unreachable};
use crate::sql::target::{Encryption, ServerAddress, ServerTarget};
use crate::sql::tls::roots;

/// Maximum wait for a connection to end, and for a cancellation.
const ENDING: Duration = Duration::from_secs(5);

/// Roles with one of these rights reach more than data, which a transaction does not prevent.
const RIGHTS: &str = "select r.rolname from pg_catalog.pg_roles r where r.rolname in (current_user, \
                      session_user) and (r.rolsuper or r.rolreplication or exists (select from \
                      pg_catalog.pg_roles p where p.rolname in ('pg_execute_server_program', \
                      'pg_read_server_files', 'pg_write_server_files') and pg_catalog.pg_has_role(r.oid, \
                      p.oid, 'member'))) limit 1";

/// A connection with an open transaction.
pub(super) struct Session {
    pub(super) client: Client,
    /// Whether rows of a statement may still come.
    pub(super) streams: AtomicBool,
    driver: Driver,
}

/// The task that moves the bytes of a connection. If it is dropped before the connection has ended,
/// the server cancels the statement.
struct Driver {
    task: Option<JoinHandle<Option<Error>>>,
    cancel: CancelToken,
    reached: ServerEndpoint,
    tls: Option<Tls>,
}

impl Session {
    /// Connects, and begins a transaction that ends at `until`. No message of the server may be
    /// larger than so many bytes, and some.
    pub(super) async fn open(
        server: &ServerTarget,
        max_message: u64,
        until: Instant,
    ) -> Result<Self, ConnectorError> {
        let tls = match &server.place {
            ServerAddress::Host {
                host,
                encryption: Encryption::Verified(file),
                ..
            } => Some(tls(host, file.as_deref())?),
            _ => None,
        };
        let (wire, reached) = server.place.dial().await?;
        let mut config = Config::new();
        config.user(&server.user).application_name("cellblock");
        if let Some(password) = &server.password {
            config.password(password);
        }
        if let Some(database) = &server.database {
            config.dbname(database);
        }
        let max_message = max_message.saturating_add(1 << 20);
        let (client, task) = if let Some(tls) = tls.clone() {
            config.ssl_mode(SslMode::Require);
            let tls = tls.bounded(max_message);
            let connected = config.connect_raw(WireLimiter::raw(wire), tls).await;
            let (client, connection) = connected.map_err(|error| failed(&error, ""))?;
            (client, tokio::spawn(moved(connection)))
        } else {
            config.ssl_mode(SslMode::Disable);
            let connected = config
                .connect_raw(WireLimiter::new(wire, max_message), NoTls)
                .await;
            let (client, connection) = connected.map_err(|error| failed(&error, ""))?;
            (client, tokio::spawn(moved(connection)))
        };
        let driver = Driver {
            task: Some(task),
            cancel: client.cancel_token(),
            reached,
            tls,
        };
        let session = Self {
            client,
            streams: AtomicBool::new(false),
            driver,
        };
        session.begin(until).await?;
        Ok(session)
    }

    /// Begins a transaction in the place of the last.
    pub(super) async fn begin_again(&self, until: Instant) -> Result<(), ConnectorError> {
        let ended = self.client.batch_execute("rollback").await;
        ended.map_err(|error| failed(&error, ""))?;
        self.begin(until).await
    }

    async fn begin(&self, until: Instant) -> Result<(), ConnectorError> {
        let left = until.saturating_duration_since(Instant::now()).as_millis().max(1);
        // One message, because each is a journey. The server ends what is too slow, even if this
        // host is gone.
        let sql = format!(
            "set session characteristics as transaction read only; begin read only; \
             set local statement_timeout = {left}; set local idle_in_transaction_session_timeout = {left}; \
             set local datestyle = 'ISO, YMD'; {RIGHTS}"
        );
        let answers = self.client.simple_query(&sql).await;
        let answers = answers.map_err(|error| failed(&error, ""))?;
        let privileged = answers.iter().find_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        match privileged {
            None => Ok(()),
            Some(role) => {
                let text = format!(
                    "the role `{role}` is a superuser, or can replicate or reach files or programs of the \
                     server, which a transaction that only reads does not prevent; the operator must name \
                     a role in the URL that can only read tables"
                );
                Err(ConnectorError::new(ConnectorErrorKind::Unauthorized, text))
            }
        }
    }

    /// Returns why the connection broke, if it did.
    pub(super) async fn broken(&mut self) -> Option<Error> {
        if !self.client.is_closed() {
            return None;
        }
        let task = self.driver.task.take()?;
        tokio::time::timeout(ENDING, task).await.ok()?.ok()?
    }

    /// Ends the connection in order, so that the server logs no error.
    pub(super) async fn close(self) {
        let Self {
            client, mut driver, ..
        } = self;
        drop(client);
        if let Some(task) = &mut driver.task
            && tokio::time::timeout(ENDING, task).await.is_ok()
        {
            driver.task = None;
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let Some(task) = self.task.take() else { return };
        task.abort();
        let (cancel, reached, tls) = (self.cancel.clone(), self.reached.clone(), self.tls.clone());
        let canceled = async move {
            let wire = WireLimiter::raw(reached.dial().await?);
            let sent = match tls {
                Some(tls) => cancel.cancel_query_raw(wire, tls).await,
                None => cancel.cancel_query_raw(wire, NoTls).await,
            };
            sent.map_err(std::io::Error::other)
        };
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            match tokio::time::timeout(ENDING, canceled).await {
                Ok(Ok(())) => {}
                failed => tracing::debug!(?failed, "a statement could not be canceled"),
            }
        });
    }
}

/// Moves the bytes of a connection until it ends, and returns why.
async fn moved(connection: impl Future<Output = Result<(), Error>>) -> Option<Error> {
    connection.await.err()
}

fn tls(host: &str, file: Option<&std::path::Path>) -> Result<Tls, ConnectorError> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(roots(file)?);
    let config = ClientConfig::builder()
        .with_root_certificates(store)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| unreachable(&error))?;
    Ok(Tls::new(Arc::new(config), name))
}
