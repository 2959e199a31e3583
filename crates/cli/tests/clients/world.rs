//! A gateway with a model behind it.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::wait::block_until;
use cellblock_testkit::{Cli, RunningCli};
use parking_lot::Mutex;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::process::Model;

/// Quotas that a person would never use up, and tests do.
const QUOTAS: [&str; 3] = [
    "sandboxes=unlimited",
    "concurrent_cells=unlimited",
    "cells_per_minute=unlimited",
];
/// Parts of a home that all tests share.
const SHARED_HOME: [&str; 4] = ["images", "refs", "cache", "layers"];

/// The one that tests share as long as any of them runs.
static SHARED: Mutex<Weak<World>> = Mutex::new(Weak::new());

/// A gateway with a model behind it. Both end when it is dropped.
#[derive(Debug)]
pub(crate) struct World {
    server: Mutex<RunningCli>,
    id: u32,
    pub(crate) address: SocketAddr,
    key: String,
    model: Model,
    _folder: TempDir,
}

impl World {
    /// The gateway that the suites share.
    pub(crate) fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock();
        if let Some(world) = shared.upgrade() {
            return world;
        }
        // Code that was not interrupted goes on for longer than any client waits. The suites have
        // one key, and leave their containers to time.
        let more = "limits: {cell_timeout: 300s}\ncontainers: {max_per_key: 512}";
        let world = Arc::new(Self::start(more).unwrap());
        *shared = Arc::downgrade(&world);
        world
    }

    /// Starts both; `more` is put into the gateway's configuration.
    pub(crate) fn start(more: &str) -> Result<Self> {
        let model = Model::start()?;
        let folder = TempDir::new()?;
        let address = free_address()?;
        let config = folder.path().join("cellblock.yaml");
        let (base, tools) = (&model.base, &model.tools);
        std::fs::write(
            &config,
            format!(
                "listen: {address}\n\
                 providers:\n  \
                 chat: {{type: chat, base_url: '{base}', models: [mock-chat]}}\n  \
                 responses: {{type: responses, base_url: '{base}', models: [mock-responses, gpt-5-mock]}}\n\
                 mcp_servers: {{market: {{url: '{tools}', offer: on_request}}}}\n\
                 mcp_requests: {{allowed_urls: ['{tools}']}}\n\
                 {more}\n"
            ),
        )?;
        let home = home_in(folder.path())?;
        let command = |arguments: &[&str]| {
            Cli::new(arguments.iter().copied())
                .env("CELLBLOCK_HOME", &home)
                .env("CELLBLOCK_FROZEN", "off")
                .env("CELLBLOCK_LOG", "warn")
                .limit(Duration::from_mins(20))
        };
        let create = ["key", "create", "clients"];
        let unlimited = QUOTAS.iter().flat_map(|quota| ["--quota", quota]);
        let created = command(&create.into_iter().chain(unlimited).collect::<Vec<_>>()).run()?;
        ensure!(created.status.success(), "no key was made: {}", created.stderr);
        let server = command(&["serve", "--config", &config.to_string_lossy()]).start()?;
        let world = Self {
            id: server.id(),
            server: Mutex::new(server),
            address,
            key: created.stdout.trim().to_owned(),
            model,
            _folder: folder,
        };
        block_until("the gateway begins", || world.is_ready());
        Ok(world)
    }

    /// Returns the environment variables with which clients find it.
    pub(crate) fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("CELLBLOCK_URL", format!("http://{}/v1", self.address)),
            ("CELLBLOCK_KEY", self.key.clone()),
            ("CELLBLOCK_TOOLS", self.model.tools.clone()),
        ]
    }

    /// Its process.
    pub(crate) const fn id(&self) -> u32 {
        self.id
    }

    /// Opens a stream of a response, and gives the connection before anything is read of it.
    pub(crate) fn stream(&self, model: &str, said: &str) -> Result<TcpStream> {
        let body = serde_json::json!({"model": model, "input": said, "stream": true}).to_string();
        let mut connection = TcpStream::connect(self.address)?;
        write!(
            connection,
            "POST /v1/responses HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            self.key,
            body.len()
        )?;
        Ok(connection)
    }

    /// Tells it to end, and waits until it has ended well.
    pub(crate) fn stop(self) -> Result<()> {
        let server = self.server.into_inner();
        server.signal(Signal::TERM)?;
        let ended = server.finish()?;
        ensure!(
            ended.code() == 0,
            "it ended with {}: {}",
            ended.code(),
            ended.stderr
        );
        Ok(())
    }

    fn is_ready(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut connection = TcpStream::connect(self.address)?;
            connection.set_read_timeout(Some(Duration::from_secs(5)))?;
            write!(
                connection,
                "GET /readyz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
                self.address
            )?;
            let mut answer = String::new();
            connection.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
    }
}

/// A home with the images that all tests share, and keys and records of its own.
fn home_in(folder: &Path) -> Result<PathBuf> {
    let (home, shared) = (folder.join("home"), cellblock_testkit::home()?);
    std::fs::create_dir(&home)?;
    for part in SHARED_HOME {
        // The first test makes the image, and with it these.
        std::fs::create_dir_all(shared.join(part))?;
        symlink(shared.join(part).canonicalize()?, home.join(part))?;
    }
    Ok(home)
}

/// An address that nobody listens on.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
    listener.local_addr().context("find a free port")
}
