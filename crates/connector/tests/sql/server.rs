//! Servers with tables, and a role that only reads.

use std::path::Path;

use cellblock_connector::SqlConnector;
use cellblock_testkit::{DatabaseServer, as_ordinary_user, wait};
use mysql_async::prelude::Queryable as _;
use serde_json::Value;

use crate::answers::connector;

/// The password of the role that only reads.
pub(crate) const PASSWORD: &str = "s3cr3t p@ss/word";
/// The same in a URL.
pub(crate) const ENCODED: &str = "s3cr3t%20p%40ss%2Fword";

/// Starts Postgres, and runs statements in its database.
pub(crate) async fn start_postgres(statements: &str) -> DatabaseServer {
    let server = DatabaseServer::postgres().await;
    let admin = server.admin().await.unwrap();
    admin.batch_execute(statements).await.unwrap();
    let reader = format!(
        "create role reader login password '{PASSWORD}'; grant select on all tables in schema public to \
         reader; grant usage on all sequences in schema public to reader;"
    );
    admin.batch_execute(&reader).await.unwrap();
    server
}

pub(crate) fn postgres_url(server: &DatabaseServer) -> String {
    format!("postgres://reader:{ENCODED}@127.0.0.1:{}/postgres", server.port)
}

pub(crate) fn over_postgres(server: &DatabaseServer, more: &Value) -> SqlConnector {
    connector(&postgres_url(server), server.folder.path(), more)
}

/// Starts MariaDB with an account `root` that has all rights, and runs statements in the database `test`.
pub(crate) async fn start_mariadb(statements: &[&str]) -> DatabaseServer {
    let prepare = |folder: &Path| {
        let mut command = as_ordinary_user("mariadb-install-db");
        command
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ])
            .arg(format!("--datadir={}", folder.join("data").display()))
            // Servers that start at the same time take each other's temporary tables in one folder.
            .arg(format!("--tmpdir={}", folder.display()));
        command
    };
    let serve = |folder: &Path, certificate: &str, port: u16| {
        let mut command = as_ordinary_user("mariadbd");
        command
            .args([
                "--no-defaults",
                "--bind-address=127.0.0.1",
                "--skip-log-bin",
                "--innodb-flush-method=nosync",
            ])
            .arg(format!("--port={port}"))
            .arg(format!("--datadir={}", folder.join("data").display()))
            .arg(format!("--tmpdir={}", folder.display()))
            .arg(format!("--socket={}", folder.join("socket").display()))
            .arg(format!("--ssl-cert={certificate}"))
            .arg(format!("--ssl-key={certificate}"))
            .arg(format!("--pid-file={}", folder.join("pid").display()));
        command
    };
    let server = DatabaseServer::start(prepare, serve);
    let mut root = wait::until_ok(async || mariadb_root(&server, None).await).await;
    root.query_drop("create database test").await.unwrap();
    let mut root = mariadb_root(&server, Some("test")).await.unwrap();
    for statement in statements {
        root.query_drop(*statement).await.unwrap();
    }
    for statement in [
        format!("create user reader@'%' identified by '{PASSWORD}'"),
        "grant select, insert, create, execute on test.* to reader@'%'".to_owned(),
    ] {
        root.query_drop(statement).await.unwrap();
    }
    server
}

pub(crate) async fn mariadb_root(
    server: &DatabaseServer,
    database: Option<&str>,
) -> mysql_async::Result<mysql_async::Conn> {
    let socket = server.folder.path().join("socket");
    let opts = mysql_async::OptsBuilder::default()
        .socket(socket.to_str())
        .user(Some("root"))
        .db_name(database);
    mysql_async::Conn::new(opts).await
}

pub(crate) fn mariadb_url(server: &DatabaseServer) -> String {
    format!("mysql://reader:{ENCODED}@127.0.0.1:{}/test", server.port)
}

pub(crate) fn over_mariadb(server: &DatabaseServer, more: &Value) -> SqlConnector {
    connector(&mariadb_url(server), server.folder.path(), more)
}
