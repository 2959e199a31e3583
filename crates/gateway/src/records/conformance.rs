//! Records in each kind of database: a test of records runs over all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cellblock_testkit::DatabaseServer;

use super::{PostgresUrl, Records};

/// Tests that begin in this process.
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// Makes a test of a function over records: one in each database.
///
/// ```ignore
/// over_each_database! {
///     async fn a_sentence(records: Records) { … }
/// }
/// ```
macro_rules! over_each_database {
    ($(async fn $name:ident($records:ident: Records) $body:block)+) => {$(
        async fn $name($records: $crate::records::Records) $body

        mod $name {
            #[tokio::test]
            async fn in_sqlite() {
                super::$name($crate::records::Records::in_memory().unwrap()).await;
            }

            #[tokio::test]
            async fn in_postgres() {
                cellblock_testkit::require!(Postgres);
                let database = $crate::records::conformance::PostgresDatabase::create().await;
                super::$name(database.records().await).await;
            }
        }
    )+};
}
pub(crate) use over_each_database;

/// A database of a server that tests share.
pub(crate) struct PostgresDatabase {
    pub(crate) url: PostgresUrl,
    _server: Arc<DatabaseServer>,
}

impl PostgresDatabase {
    /// Creates an empty database.
    pub(crate) async fn create() -> Self {
        let server = DatabaseServer::shared_postgres().await;
        let name = format!("records{}", BEGUN.fetch_add(1, Ordering::Relaxed));
        let url = server.create_database(&name).await;
        Self {
            url: PostgresUrl::new(&url, "/".as_ref()).unwrap(),
            _server: server,
        }
    }

    /// Opens the records in it.
    pub(crate) async fn records(&self) -> Records {
        Records::connect(&self.url).await.unwrap()
    }
}
