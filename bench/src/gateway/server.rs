//! `cellblock serve` as a process of its own, whose memory is nobody else's.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use cellblock_image::Home;
use reqwest::Client;

/// Maximum time of its start.
const PATIENCE: Duration = Duration::from_mins(1);

/// Parts of a home that are only read.
const IMAGES: [&str; 4] = ["images", "refs", "cache", "layers"];

/// A gateway before a provider. It ends with this value.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    folder: PathBuf,
}

impl ServerProcess {
    /// Starts one with the images of a home, and records of its own.
    pub(crate) async fn start(provider: SocketAddr, client: &Client) -> Result<Self> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
        let address = free.local_addr().context("find a free port")?;
        drop(free);
        let program = std::env::current_exe().context("find this program")?;
        let program = program.with_file_name("cellblock");
        let folder = std::env::temp_dir().join(format!("cellblock-bench-{}", std::process::id()));
        fs::create_dir_all(&folder).context("make the gateway's folder")?;
        let config = folder.join("cellblock.yaml");
        let text = format!(
            "listen: {address}\nproviders:\n  \
             script: {{type: chat, base_url: 'http://{provider}/v1', models: ['script-*']}}\n"
        );
        fs::write(&config, text).context("write the gateway's configuration")?;
        let shared = Home::find()?;
        for part in IMAGES {
            symlink(shared.root().join(part), folder.join(part)).context("share the images")?;
        }
        let child = Command::new(&program)
            .args(["serve", "--config"])
            .arg(&config)
            .env("CELLBLOCK_HOME", &folder)
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("start `{}`; build it with the same profile", program.display()))?;
        let mut server = Self {
            child,
            address,
            folder,
        };
        server.until_ready(client).await?;
        Ok(server)
    }

    async fn until_ready(&mut self, client: &Client) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let address = format!("http://{}/readyz", self.address);
        while !matches!(client.get(&address).send().await, Ok(answer) if answer.status().is_success()) {
            if let Some(status) = self.child.try_wait().context("look after the gateway")? {
                bail!("the gateway ended with {status}");
            }
            ensure!(Instant::now() < deadline, "the gateway does not begin");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
