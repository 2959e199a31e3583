//! Records in a Postgres database, which several gateways share.

mod url;
mod value;

use std::borrow::Cow;
use std::cell::Cell;
use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType, Timeouts,
};
use tokio::runtime::Handle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::url::RootsError;
use super::{Database, DatabaseConnection, DatabaseError, DatabaseResult, DatabaseValue, WAIT};
use crate::records::RecordsError;

pub(in crate::records) use tokio_postgres::row::RowIndex as PostgresIndex;
pub(in crate::records) use tokio_postgres::{Error as PostgresError, Row as PostgresRow};
pub use url::PostgresUrl;
pub use value::FromPostgres;

/// Maximum number of connections of a gateway. A server has 100 by default, which all gateways share.
pub(in crate::records) const CONNECTIONS: usize = 8;
/// Maximum time of a statement: the server ends it earlier, if it is alive.
const PATIENCE: Duration = Duration::from_secs(30);

/// The connections of this process.
#[derive(Clone)]
pub(in crate::records) struct PostgresPool {
    pool: Pool,
    place: String,
}

impl PostgresUrl {
    /// Makes a pool, and connects to nothing yet. Work will wait so long for a connection while all
    /// are in use.
    pub(in crate::records) fn pool(&self, wait: Duration) -> Result<PostgresPool, RootsError> {
        let how = ManagerConfig {
            // Statements say whether a connection is broken, and one that its server has closed is
            // not used again.
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = match self.tls()? {
            Some(tls) => Manager::from_config(self.config.clone(), MakeRustlsConnect::new(tls), how),
            None => Manager::from_config(self.config.clone(), NoTls, how),
        };
        let timeouts = Timeouts {
            wait: Some(wait),
            create: Some(WAIT),
            recycle: Some(WAIT),
        };
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .build();
        #[expect(
            clippy::expect_used,
            reason = "the runtime is named, which is all that can be missing"
        )]
        let pool = pool.expect("a pool with a runtime");
        Ok(PostgresPool {
            pool,
            place: self.to_string(),
        })
    }
}

impl PostgresPool {
    /// Returns the location of the database.
    pub(in crate::records) fn place(&self) -> &str {
        &self.place
    }

    /// Takes a connection that is free, or connects.
    pub(in crate::records) async fn connection(&self) -> Result<Database, RecordsError> {
        let client = self.pool.get().await;
        let client = client.map_err(|error| self.unconnected(error))?;
        Ok(Database(DatabaseConnection::Postgres(PostgresSession {
            client: Some(client),
            runtime: Handle::current(),
            broken: Cell::new(false),
        })))
    }

    /// Returns the error of work without a connection.
    fn unconnected(&self, error: PoolError) -> RecordsError {
        let problem = match error {
            PoolError::Backend(error) => return RecordsError::unavailable(&self.place, error),
            PoolError::Timeout(TimeoutType::Wait) => {
                format!(
                    "all {CONNECTIONS} connections of this gateway are in use; Postgres may be overloaded"
                )
            }
            _ => "Postgres does not accept a connection in time; see that it runs and can be reached"
                .to_owned(),
        };
        RecordsError::Unavailable {
            place: self.place.clone(),
            problem,
            source: None,
        }
    }
}

impl fmt::Debug for PostgresPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresPool")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// A connection, used by a thread that may block. It goes back to the pool, unless it is broken.
pub(super) struct PostgresSession {
    /// Always there until the session is dropped.
    client: Option<Object>,
    runtime: Handle,
    broken: Cell<bool>,
}

impl PostgresSession {
    pub(super) fn execute(&self, sql: &str, values: &[DatabaseValue<'_>]) -> DatabaseResult<u64> {
        self.run(sql, values, async |client, sql, kinds, values| {
            let statement = client.prepare_typed_cached(sql, kinds).await?;
            client.execute(&statement, values).await
        })
    }

    pub(super) fn query(&self, sql: &str, values: &[DatabaseValue<'_>]) -> DatabaseResult<Vec<Row>> {
        self.run(sql, values, async |client, sql, kinds, values| {
            let statement = client.prepare_typed_cached(sql, kinds).await?;
            client.query(&statement, values).await
        })
    }

    pub(super) fn batch(&self, sql: &str) -> DatabaseResult<()> {
        self.wait(async |client| client.batch_execute(sql).await)
    }

    /// Rolls back the transaction that is open; if that fails, the connection is closed, which does it, too.
    pub(super) fn roll_back(&self) {
        // A runtime that is ending panics when it has to wait, and a second panic would end the process.
        if std::thread::panicking() || self.batch("ROLLBACK").is_err() {
            self.broken.set(true);
        }
    }

    fn run<T>(
        &self,
        sql: &str,
        values: &[DatabaseValue<'_>],
        work: impl AsyncFnOnce(&Object, &str, &[Type], &[&(dyn ToSql + Sync)]) -> Result<T, Error>,
    ) -> DatabaseResult<T> {
        if values.iter().any(has_nul) {
            return Err(DatabaseError::Nul);
        }
        let sql = numbered(sql);
        let kinds: Vec<_> = values.iter().map(DatabaseValue::kind).collect();
        let values: Vec<_> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        self.wait(async |client| work(client, &sql, &kinds, &values).await)
    }

    fn wait<T>(&self, work: impl AsyncFnOnce(&Object) -> Result<T, Error>) -> DatabaseResult<T> {
        let client = self.client.as_ref().filter(|_| !self.broken.get());
        let client = client.ok_or(DatabaseError::Broken)?;
        let done = async { tokio::time::timeout(PATIENCE, work(client)).await };
        match self.runtime.block_on(done) {
            Ok(Ok(done)) => Ok(done),
            // If that has closed the connection, the pool does not give it to anybody else.
            Ok(Err(error)) => Err(error.into()),
            Err(_) => {
                self.broken.set(true);
                Err(DatabaseError::Silent(PATIENCE.as_secs()))
            }
        }
    }
}

impl Drop for PostgresSession {
    fn drop(&mut self) {
        let client = self.client.take();
        if self.broken.get() {
            // Taken out of the pool and dropped, which closes the connection.
            drop(client.map(Object::take));
        }
    }
}

impl fmt::Debug for PostgresSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSession").finish_non_exhaustive()
    }
}

/// Whether the connection has ended, or the server is starting or stopping, has no room, only reads
/// for now, or has ended a transaction for another one.
pub(in crate::records) fn is_lost(error: &Error) -> bool {
    let Some(code) = error.code() else {
        return error.is_closed()
            || error
                .source()
                .is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
    };
    *code == SqlState::READ_ONLY_SQL_TRANSACTION
        || ["08", "40", "53", "57", "58"].contains(&&code.code()[..2])
}

/// Whether the disk of the database is full.
pub(in crate::records) fn is_full(error: &Error) -> bool {
    error.code() == Some(&SqlState::DISK_FULL)
}

/// Returns a hint for the operator about an error, if there is one.
pub(in crate::records) fn problem(error: &Error) -> Option<&'static str> {
    Some(match error.code() {
        Some(&(SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION)) => {
            "Postgres rejects the user, the password or the encryption; correct the URL, or `pg_hba.conf`"
        }
        Some(&SqlState::INVALID_CATALOG_NAME) => "create the database, or correct its name in the URL",
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            "the user needs the right to create and change tables: make it the owner of the database"
        }
        Some(&SqlState::TOO_MANY_CONNECTIONS) => {
            "Postgres has no connection left; raise `max_connections`, or run fewer gateways"
        }
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => {
            "Postgres only reads; name the primary server in the URL, or add \
             `target_session_attrs=read-write`"
        }
        Some(&(SqlState::CANNOT_CONNECT_NOW | SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN)) => {
            "Postgres is starting or stopping"
        }
        None if error.to_string().contains("TLS") => {
            "see that Postgres has TLS and a certificate for this host, signed by an authority that this \
             machine or `sslrootcert` knows"
        }
        _ => return None,
    })
}

fn has_nul(value: &DatabaseValue<'_>) -> bool {
    matches!(value, DatabaseValue::Text(Some(text)) if text.contains('\0'))
}

/// Writes the placeholders of a statement as Postgres does.
fn numbered(sql: &str) -> Cow<'_, str> {
    if sql.contains('?') {
        sql.replace('?', "$").into()
    } else {
        sql.into()
    }
}
