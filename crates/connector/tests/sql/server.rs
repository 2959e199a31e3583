//! Servers of databases, started in a folder of their own and ended by their process.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use cellblock_testkit::{ORDINARY_UID, as_ordinary_user, postgres_program, wait};
use mysql_async::prelude::Queryable as _;
use tempfile::TempDir;

/// The password of the role that only reads.
pub(crate) const PASSWORD: &str = "s3cr3t p@ss/word";
/// The same in a URL.
pub(crate) const ENCODED: &str = "s3cr3t%20p%40ss%2Fword";

/// A server that runs.
pub(crate) struct DatabaseServer {
    pub(crate) folder: TempDir,
    pub(crate) port: u16,
    process: Child,
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        // Both servers have children or threads alone, which end with them.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// A folder of the user as whom the server runs.
fn folder() -> TempDir {
    let folder = tempfile::Builder::new()
        .prefix("cb-db")
        .tempdir_in("/tmp")
        .unwrap();
    if rustix::process::geteuid().is_root() {
        chown(folder.path(), Some(ORDINARY_UID), Some(ORDINARY_UID)).unwrap();
    }
    folder
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}

/// Writes a certificate for `localhost` with its key, which only the server's user can read.
fn certificate(folder: &Path) -> String {
    let path = folder.join("tls.pem");
    fs::write(
        &path,
        include_bytes!("../../../gateway/src/server/tests/first.pem"),
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&path, Some(ORDINARY_UID), Some(ORDINARY_UID)).unwrap();
    }
    path.to_str().unwrap().to_owned()
}

impl DatabaseServer {
    /// Starts Postgres with a superuser `admin`, who needs no password over the Unix socket, and runs statements.
    pub(crate) async fn postgres(statements: &str) -> Self {
        let folder = folder();
        let data = folder.path().join("data");
        run(as_ordinary_user(postgres_program("initdb"))
            .args([
                "--username",
                "admin",
                "--auth",
                "trust",
                "--no-sync",
                "--encoding",
                "UTF8",
                "--locale",
                "C.UTF-8",
                "-D",
            ])
            .arg(&data));
        fs::write(
            data.join("pg_hba.conf"),
            "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n",
        )
        .unwrap();
        let certificate = certificate(folder.path());
        let mut settings = fs::OpenOptions::new()
            .append(true)
            .open(data.join("postgresql.conf"))
            .unwrap();
        writeln!(
            settings,
            "ssl = on\nssl_cert_file = '{certificate}'\nssl_key_file = '{certificate}'"
        )
        .unwrap();
        let port = free_port();
        let process = as_ordinary_user(postgres_program("postgres"))
            .args(["-F", "-h", "127.0.0.1"])
            .args(["-p", &port.to_string(), "-k"])
            .arg(folder.path())
            .arg("-D")
            .arg(&data)
            .stderr(fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let server = Self {
            folder,
            port,
            process,
        };
        let admin = wait::until_ok(async || server.admin().await).await;
        admin.batch_execute(statements).await.unwrap();
        let reader = format!(
            "create role reader login password '{PASSWORD}'; grant select on all tables in schema public to reader; \
             grant usage on all sequences in schema public to reader;"
        );
        admin.batch_execute(&reader).await.unwrap();
        server
    }

    /// Connects to Postgres as its superuser.
    pub(crate) async fn admin(&self) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
        let mut config = tokio_postgres::Config::new();
        config
            .host_path(self.folder.path())
            .port(self.port)
            .user("admin")
            .dbname("postgres");
        let (client, connection) = config.connect(tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    pub(crate) fn postgres_url(&self) -> String {
        format!("postgres://reader:{ENCODED}@127.0.0.1:{}/postgres", self.port)
    }

    /// Starts MariaDB with an account `admin` that has all rights, and runs statements in the database `test`.
    pub(crate) async fn mariadb(statements: &[&str]) -> Self {
        let folder = folder();
        let data = folder.path().join("data");
        run(as_ordinary_user("mariadb-install-db")
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ])
            .arg(format!("--datadir={}", data.display()))
            // Servers that start at the same time take each other's temporary tables in one folder.
            .arg(format!("--tmpdir={}", folder.path().display())));
        let certificate = certificate(folder.path());
        let port = free_port();
        let process = as_ordinary_user("mariadbd")
            .args([
                "--no-defaults",
                "--bind-address=127.0.0.1",
                "--skip-log-bin",
                "--innodb-flush-method=nosync",
            ])
            .arg(format!("--port={port}"))
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--tmpdir={}", folder.path().display()))
            .arg(format!("--socket={}", folder.path().join("socket").display()))
            .arg(format!("--ssl-cert={certificate}"))
            .arg(format!("--ssl-key={certificate}"))
            .arg(format!("--pid-file={}", folder.path().join("pid").display()))
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let server = Self {
            folder,
            port,
            process,
        };
        let mut root = wait::until_ok(async || server.mariadb_root(None).await).await;
        root.query_drop("create database test").await.unwrap();
        let mut root = server.mariadb_root(Some("test")).await.unwrap();
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
        &self,
        database: Option<&str>,
    ) -> mysql_async::Result<mysql_async::Conn> {
        let socket = self.folder.path().join("socket");
        let opts = mysql_async::OptsBuilder::default()
            .socket(socket.to_str())
            .user(Some("root"))
            .db_name(database);
        mysql_async::Conn::new(opts).await
    }

    pub(crate) fn mariadb_url(&self) -> String {
        format!("mysql://reader:{ENCODED}@127.0.0.1:{}/test", self.port)
    }
}
