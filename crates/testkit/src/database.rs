//! Servers of databases, each a child process in a folder of its own.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Weak};

use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::{ORDINARY_UID, as_ordinary_user, postgres_program, wait};

/// Rules for connections of the superuser `admin` without a password: over the Unix socket only.
const ACCESS: &str = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";

/// The server that tests of this process share, as long as one of them uses it.
static SHARED: Mutex<Weak<DatabaseServer>> = Mutex::const_new(Weak::new());

/// A server. Dropping it ends it and removes its folder.
#[derive(Debug)]
pub struct DatabaseServer {
    /// Its folder, which belongs to the user as whom it runs. The certificate of `localhost` that
    /// it presents is `tls.pem`.
    pub folder: TempDir,
    /// Its port on 127.0.0.1, and the one in the name of a Postgres server's Unix socket.
    pub port: u16,
    command: Command,
    process: Child,
}

#[expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking"
)]
impl DatabaseServer {
    /// Makes a folder for the server's data and starts it. The first program writes the data, the
    /// second serves it; both get the folder, the path of a certificate with its key, and a port.
    pub fn start(
        prepare: impl FnOnce(&Path) -> Command,
        serve: impl FnOnce(&Path, &str, u16) -> Command,
    ) -> Self {
        let folder = folder();
        run(&mut prepare(folder.path()));
        let certificate = certificate(folder.path());
        let port = free_port();
        let mut command = serve(folder.path(), &certificate, port);
        let log = fs::File::create(folder.path().join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn().unwrap();
        Self {
            folder,
            port,
            command,
            process,
        }
    }

    /// Starts Postgres with a superuser `admin`, who needs no password over the Unix socket; other
    /// users need one and TCP.
    pub async fn postgres() -> Self {
        let prepare = |folder: &Path| {
            let mut command = as_ordinary_user(postgres_program("initdb"));
            command
                .args(["--username", "admin", "--auth", "trust", "--no-sync"])
                .args(["--encoding", "UTF8", "--locale", "C.UTF-8", "-D"])
                .arg(folder.join("data"));
            command
        };
        let serve = |folder: &Path, certificate: &str, port: u16| {
            let data = folder.join("data");
            fs::write(data.join("pg_hba.conf"), ACCESS).unwrap();
            let mut settings = fs::read_to_string(data.join("postgresql.conf")).unwrap();
            write!(
                settings,
                "\nssl = on\nssl_cert_file = '{certificate}'\nssl_key_file = '{certificate}'\n"
            )
            .unwrap();
            fs::write(data.join("postgresql.conf"), settings).unwrap();
            let mut command = as_ordinary_user(postgres_program("postgres"));
            command
                .args(["-F", "-h", "127.0.0.1", "-p", &port.to_string(), "-k"])
                .arg(folder)
                .arg("-D")
                .arg(data);
            command
        };
        let server = Self::start(prepare, serve);
        wait::until_ok(async || server.admin().await).await;
        server
    }

    /// Returns a Postgres server that other tests of this process use at the same time, each in
    /// databases of its own.
    pub async fn shared_postgres() -> Arc<Self> {
        let mut shared = SHARED.lock().await;
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(Self::postgres().await);
        *shared = Arc::downgrade(&server);
        server
    }

    /// Connects to Postgres as its superuser.
    pub async fn admin(&self) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
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

    /// Creates a database of Postgres, and returns its URL over the Unix socket, as the superuser.
    pub async fn create_database(&self, name: &str) -> String {
        let admin = self.admin().await.unwrap();
        let sql = format!("create database \"{name}\"");
        admin.batch_execute(&sql).await.unwrap();
        let folder = self.folder.path().display();
        format!("postgres:///{name}?user=admin&host={folder}&port={}", self.port)
    }

    /// Kills the server with SIGKILL. Its processes end on their own.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts Postgres over the same data, on the same port, after it was killed.
    pub async fn restart_postgres(&mut self) {
        self.process = self.command.spawn().unwrap();
        wait::until_ok(async || {
            // It refuses to start while processes of the one before are ending.
            if self.process.try_wait().unwrap().is_some() {
                self.process = self.command.spawn().unwrap();
            }
            self.admin().await
        })
        .await;
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        // Both servers have children or threads alone, which end with them.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output();
    #[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A folder of the user as whom the server runs.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn folder() -> TempDir {
    let mut builder = tempfile::Builder::new();
    // The path of a Unix socket is short.
    let folder = builder.prefix("cb-db").tempdir_in("/tmp").unwrap();
    belongs_to_server(folder.path());
    folder
}

/// Writes a certificate for `localhost` with its key, which only the server's user can read.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn certificate(folder: &Path) -> String {
    let path = folder.join("tls.pem");
    let pem = include_bytes!("../../gateway/src/server/tests/first.pem");
    fs::write(&path, pem).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    belongs_to_server(&path);
    path.to_str().unwrap().to_owned()
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn belongs_to_server(path: &Path) {
    if rustix::process::geteuid().is_root() {
        chown(path, Some(ORDINARY_UID), Some(ORDINARY_UID)).unwrap();
    }
}
