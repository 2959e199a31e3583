//! A sandbox of another machine.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::error::is_lost;
use super::kernel::kernel;
use super::link::{Link, unexpected};
use super::local::LocalConfig;
use super::mux::{StreamReceiver, StreamSender};
use super::wire::{GUEST, PART, RemoteAnswer, RemoteRequest, ToServer};
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{BoxFuture, Kernel, Sandbox, SandboxBranches, Suspension, Usage};
use cellblock_sandbox::error::DuringIo;
use cellblock_sandbox::guest::Guest;
use cellblock_sandbox::{Error, Result};

/// Maximum time for a server to create or end a sandbox, or to start a kernel.
pub(super) const LIFE_LIMIT: Duration = Duration::from_secs(90);
/// The stream of a sandbox's first kernel.
const FIRST_KERNEL: u32 = GUEST + 1;
/// Maximum time for a server to report the usage.
const USAGE_LIMIT: Duration = Duration::from_secs(30);
/// Maximum time to transfer a dataset.
const MOUNT_LIMIT: Duration = Duration::from_mins(10);

/// A sandbox that lives as long as its connection.
#[derive(Debug)]
pub(super) struct RemoteSandbox {
    pub(super) id: String,
    pub(super) link: Arc<Link>,
    guest: Guest,
    /// Way in which its machine was reached, if it is one of this computer.
    pub(super) local: Option<LocalConfig>,
    /// Number of the last stream; 0 is the guest's.
    last: AtomicU32,
    /// The kernel that was requested together with the sandbox, until somebody wants one.
    first: Mutex<Option<Result<Kernel>>>,
}

impl RemoteSandbox {
    /// Requests a sandbox on a separate connection. `id` is its local name.
    pub(super) async fn create(
        link: Link,
        id: String,
        limits: &Limits,
        local: Option<LocalConfig>,
    ) -> Result<Self> {
        let ask = RemoteRequest::Create {
            limits: limits.clone(),
        };
        Self::take(link, id, ask, local).await
    }

    /// Takes over the sandbox of a connection that was suspended.
    pub(super) async fn resume(link: Link, id: String, local: LocalConfig) -> Result<Self> {
        Self::take(link, id, RemoteRequest::Resume {}, Some(local)).await
    }

    async fn take(link: Link, id: String, ask: RemoteRequest, local: Option<LocalConfig>) -> Result<Self> {
        let link = Arc::new(link);
        let (sending, receiving) = link.open(GUEST);
        // In one round trip: the server answers one request after the other, and refuses a kernel
        // without a sandbox.
        let stream = FIRST_KERNEL;
        let asked = RemoteRequest::StartKernel { stream };
        let kernel = start(&link, stream, asked, "start a kernel", 2 * LIFE_LIMIT);
        let (made, kernel) = tokio::try_join!(
            biased;
            link.ask(ask, "make a sandbox", LIFE_LIMIT),
            // Its failure is the caller's who wants the kernel.
            kernel.map(Ok),
        )?;
        let RemoteAnswer::Sandbox { id: there } = made else {
            return Err(unexpected());
        };
        tracing::debug!(
            sandbox = id,
            there = super::refusal::told(&there),
            "made a sandbox"
        );
        let (ours, theirs) = UnixStream::pair().during("make a channel")?;
        tokio::spawn(join(theirs, sending, receiving));
        Ok(Self {
            id,
            link,
            guest: Guest::new(ours)?,
            local,
            last: AtomicU32::new(FIRST_KERNEL),
            first: Mutex::new(Some(kernel)),
        })
    }

    fn stream(&self) -> u32 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    async fn kernel(&self, rescued: Option<u32>) -> Result<Kernel> {
        let first = { self.first.lock().take() };
        if let (None, Some(first)) = (rescued, first) {
            return first;
        }
        let stream = self.stream();
        let (ask, action) = match rescued {
            None => (RemoteRequest::StartKernel { stream }, "start a kernel"),
            Some(pid) => (RemoteRequest::Rescue { stream, pid }, "let a standby take over"),
        };
        start(&self.link, stream, ask, action, LIFE_LIMIT).await
    }

    /// Sends a file, about which `ask` then says what to do with it.
    async fn upload(&self, file: &File, ask: RemoteRequest, action: &'static str) -> Result<()> {
        let bytes = file.metadata().during("look at a file")?.len();
        let stream = self.stream();
        let (sending, _receiving) = self.link.open(stream);
        let announced = RemoteRequest::Upload { stream, bytes };
        self.link.ask(announced, "take a file", USAGE_LIMIT).await?;
        let sent = async {
            let mut part = vec![0; PART];
            let mut offset = 0;
            while offset < bytes {
                let wanted = PART.min(usize::try_from(bytes - offset).unwrap_or(PART));
                let read = file
                    .read_at(&mut part[..wanted], offset)
                    .during("read a dataset")?;
                if read == 0 {
                    break;
                }
                sending.send(&part[..read]).await?;
                offset += read as u64;
            }
            // A file that has shrunk meanwhile ends early, which the peer rejects.
            sending.end().await;
            Ok::<_, Error>(())
        };
        let mounted = self.link.ask(ask, action, MOUNT_LIMIT);
        tokio::pin!(sent, mounted);
        tokio::select! {
            sent = &mut sent => sent?,
            // It was rejected before all of it had arrived.
            answer = &mut mounted => return answer.map(drop),
        }
        mounted.await.map(drop)
    }
}

/// Asks for a kernel, which communicates over a stream.
async fn start(
    link: &Arc<Link>,
    stream: u32,
    ask: RemoteRequest,
    action: &'static str,
    limit: Duration,
) -> Result<Kernel> {
    let halves = link.open(stream);
    match link.ask(ask, action, limit).await? {
        RemoteAnswer::Kernel { pid } => kernel(link, stream, halves, pid),
        _ => Err(unexpected()),
    }
}

/// Returns a directory as a tar archive.
fn packed(directory: &Path) -> std::io::Result<File> {
    let mut archive = tar::Builder::new(tempfile::tempfile()?);
    archive.follow_symlinks(false);
    archive.append_dir_all("", directory)?;
    archive.into_inner()
}

impl Sandbox for RemoteSandbox {
    fn id(&self) -> &str {
        &self.id
    }

    fn guest(&self) -> &Guest {
        &self.guest
    }

    fn start_kernel(&self) -> BoxFuture<'_, Result<Kernel>> {
        Box::pin(self.kernel(None))
    }

    fn rescue<'a>(&'a self, ended: Kernel, pid: u32, _kept: &'a [u32]) -> BoxFuture<'a, Result<Kernel>> {
        // Unread output is dropped with its pipes.
        drop(ended);
        Box::pin(self.kernel(Some(pid)))
    }

    fn mount_data<'a>(&'a self, name: &'a str, file: &'a File, _path: &'a Path) -> BoxFuture<'a, Result<()>> {
        let ask = RemoteRequest::Mount {
            name: name.to_owned(),
        };
        Box::pin(self.upload(file, ask, "mount a dataset"))
    }

    fn show_layer<'a>(&'a self, id: &'a str, directory: &'a Path) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if !self.local.as_ref().is_some_and(|local| local.sends_layers) {
                return Ok(());
            }
            let source = directory.to_owned();
            let packed = tokio::task::spawn_blocking(move || packed(&source)).await;
            let packed = packed.unwrap_or_else(|error| Err(error.into()));
            let archive = packed.during("pack a layer")?;
            let ask = RemoteRequest::Install { layer: id.to_owned() };
            self.upload(&archive, ask, "install a layer").await
        })
    }

    fn suspend(self: Box<Self>, kernel: Kernel) -> BoxFuture<'static, Result<Suspension>> {
        Box::pin(super::suspend::suspend(self, kernel))
    }

    fn branch(self: Box<Self>, kernel: Kernel, count: usize) -> BoxFuture<'static, Result<SandboxBranches>> {
        Box::pin(super::suspend::branch(self, kernel, count))
    }

    fn usage(&self) -> BoxFuture<'_, Result<Usage>> {
        Box::pin(async {
            match self
                .link
                .ask(RemoteRequest::Usage {}, "tell what is used", USAGE_LIMIT)
                .await?
            {
                RemoteAnswer::Usage { usage } => Ok(usage),
                _ => Err(unexpected()),
            }
        })
    }

    fn lost(&self) -> Option<Error> {
        self.link.lost()
    }

    fn kill(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            self.link.close();
            return;
        };
        let link = Arc::clone(&self.link);
        runtime.spawn(async move {
            let _ = link.tell(&ToServer::KillAll {}).await;
        });
    }

    fn destroy(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let asked = self
                .link
                .ask(RemoteRequest::Destroy {}, "end a sandbox", LIFE_LIMIT)
                .await;
            match asked {
                // When the connection ends, the server ends everything that it holds for it.
                Err(error) if is_lost(&error) => Ok(()),
                ended => ended.map(drop),
            }
        })
    }
}

impl Drop for RemoteSandbox {
    fn drop(&mut self) {
        // Tasks that transport bytes also hold the connection.
        self.link.close();
    }
}

/// Transports bytes between a socket and a stream until one of the two ends.
async fn join(socket: UnixStream, sending: StreamSender, mut receiving: StreamReceiver) {
    let (mut read, mut write) = socket.into_split();
    let out = async {
        let mut buffer = vec![0; PART];
        while let Ok(length @ 1..) = read.read(&mut buffer).await {
            if sending.send(&buffer[..length]).await.is_err() {
                break;
            }
        }
    };
    let back = async {
        while let Some(bytes) = receiving.next().await {
            if write.write_all(&bytes).await.is_err() {
                break;
            }
            receiving.done(bytes.len()).await;
        }
    };
    tokio::select! {
        () = out => {}
        () = back => {}
    }
}
