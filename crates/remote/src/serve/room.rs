//! The resources of one connection: a sandbox, its kernel, and a file that is being uploaded.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::NamedTempFile;
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::super::mux::{Mux, StreamReceiver};
use super::super::refusal::RemoteRefusal;
use super::super::wire::{GUEST, RemoteAnswer, RemoteRequest};
use super::pump::{Orders, Pump};
use super::{Host, StreamOrders, guest};
use cellblock_protocol::ToKernel;
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Kernel, Sandbox};
use cellblock_sandbox::channel::write_frame;
use cellblock_sandbox::error::{Blame, Retry};

type RequestAnswer = Result<RemoteAnswer, RemoteRefusal>;

pub(super) struct Room {
    mux: Arc<Mux>,
    host: Arc<dyn Host>,
    signalled: StreamOrders,
    sandbox: Option<Box<dyn Sandbox>>,
    /// A kernel that came with the sandbox and was not requested yet.
    ready: Option<Kernel>,
    pump: Option<Pump>,
    relay: Option<JoinHandle<()>>,
    upload: Option<FileUpload>,
    /// Files that are mounted in the sandbox.
    shown: Vec<NamedTempFile>,
    limits: Limits,
    /// Whether the server is the machine of this client alone.
    is_machine: bool,
    suspended: bool,
}

/// A file that the client uploads.
struct FileUpload {
    stream: StreamReceiver,
    bytes: u64,
    file: NamedTempFile,
}

impl Room {
    pub(super) fn new(mux: Arc<Mux>, host: Arc<dyn Host>, signalled: StreamOrders, is_machine: bool) -> Self {
        let limits = host.most().clone();
        Self {
            mux,
            host,
            signalled,
            sandbox: None,
            ready: None,
            pump: None,
            relay: None,
            upload: None,
            shown: Vec::new(),
            limits,
            is_machine,
            suspended: false,
        }
    }

    /// Continues over another connection.
    pub(super) fn continued(mut self, mux: Arc<Mux>, host: Arc<dyn Host>, signalled: StreamOrders) -> Self {
        (self.mux, self.host, self.signalled) = (mux, host, signalled);
        self
    }

    /// Whether its connection is to be closed, so that the machine can be written to disk.
    pub(super) const fn is_suspended(&self) -> bool {
        self.suspended
    }

    pub(super) fn kill(&self) {
        if let Some(sandbox) = &self.sandbox {
            sandbox.kill();
        }
    }

    /// Executes a request. A kill reaches the sandbox immediately.
    pub(super) async fn serve(&mut self, ask: RemoteRequest, killed: &Notify) -> RequestAnswer {
        match ask {
            RemoteRequest::Create { limits } => self.create(limits).await,
            RemoteRequest::Destroy {} => {
                self.close().await;
                Ok(RemoteAnswer::Done {})
            }
            RemoteRequest::StartKernel { stream } => {
                let ready = self.ready.take().filter(|kernel| kernel.end.borrow().is_none());
                self.pump = None;
                let kernel = match (ready, self.sandbox()?) {
                    (Some(kernel), _) => kernel,
                    (None, sandbox) => unless_killed(sandbox, sandbox.start_kernel(), killed).await?,
                };
                Ok(self.carry(kernel, stream))
            }
            RemoteRequest::Rescue { stream, pid } => {
                let ended = match self.pump.take() {
                    Some(pump) => pump.stop().await,
                    None => None,
                };
                let ended = ended.ok_or_else(|| RemoteRefusal::request("there was no kernel"))?;
                let sandbox = self.sandbox()?;
                let kernel = unless_killed(sandbox, sandbox.rescue(ended, pid, &[]), killed).await?;
                Ok(self.carry(kernel, stream))
            }
            RemoteRequest::Suspend {} => self.suspend().await,
            RemoteRequest::Resume {} => self.resume().await,
            RemoteRequest::Upload { stream, bytes } => self.expect(stream, bytes),
            RemoteRequest::Mount { name } => self.mount(&name).await,
            RemoteRequest::Install { layer } => self.install(&layer).await,
            RemoteRequest::Usage {} => {
                // Callers that need to know that an interrupt has been sent use this request.
                self.interrupted().await;
                let sandbox = self.sandbox()?;
                let usage = unless_killed(sandbox, sandbox.usage(), killed).await?;
                Ok(RemoteAnswer::Usage { usage })
            }
            RemoteRequest::Warm {} => Ok(RemoteAnswer::Warm {
                failed_modules: self.host.warmed().await?,
            }),
            RemoteRequest::Describe {} => {
                let manifest = serde_json::to_value(self.host.manifest())
                    .map_err(|error| internal(format!("write the manifest: {error}")))?;
                Ok(RemoteAnswer::Image { manifest })
            }
            RemoteRequest::Audit {} => Ok(RemoteAnswer::Audit {
                report: self.host.audit().await?,
            }),
            RemoteRequest::Layer { requirements } => Ok(RemoteAnswer::Layer {
                id: self.host.layer(&requirements).await?,
            }),
        }
    }

    /// Completes when the kernel has received the ordered interrupts.
    async fn interrupted(&self) {
        let orders: Vec<_> = {
            let signalled = self.signalled.lock();
            signalled.values().cloned().collect()
        };
        for orders in orders {
            orders.settled().await;
        }
    }

    fn sandbox(&self) -> Result<&dyn Sandbox, RemoteRefusal> {
        self.sandbox
            .as_deref()
            .ok_or_else(|| RemoteRefusal::request("there is no sandbox"))
    }

    async fn create(&mut self, limits: Limits) -> RequestAnswer {
        if self.sandbox.is_some() {
            return Err(RemoteRefusal::request("a connection can have only one sandbox"));
        }
        if let Some(above) = limits.above(self.host.most()) {
            return Err(RemoteRefusal::request(format!(
                "the requested limits exceed the maximum: {above}"
            )));
        }
        let mut lease = self.host.lease(&limits).await?;
        if self.is_machine {
            // Nothing is lost if it cannot be sent: the kernel's end shows later.
            let _ = write_frame(&mut lease.kernel.writer, &ToKernel::Restored {}, &[]).await;
        }
        let id = lease.sandbox.id().to_owned();
        let sandbox = self.sandbox.insert(lease.sandbox);
        self.ready = Some(lease.kernel);
        self.limits = limits;
        self.relay = Some(relay(sandbox.as_ref(), &self.mux).await?);
        Ok(RemoteAnswer::Sandbox { id })
    }

    async fn suspend(&mut self) -> RequestAnswer {
        if !self.is_machine {
            return Err(RemoteRefusal::request("this server cannot suspend a sandbox"));
        }
        let kernel = match self.pump.take() {
            Some(pump) => pump.stop().await,
            None => self.ready.take(),
        };
        let kernel = kernel.filter(|kernel| kernel.end.borrow().is_none());
        self.ready = Some(kernel.ok_or_else(|| RemoteRefusal::request("there is no kernel"))?);
        if let Some(relay) = self.relay.take() {
            relay.abort();
        }
        self.upload = None;
        self.suspended = true;
        Ok(RemoteAnswer::Done {})
    }

    async fn resume(&mut self) -> RequestAnswer {
        if !std::mem::take(&mut self.suspended) {
            return Err(RemoteRefusal::request("no sandbox was suspended"));
        }
        let sandbox = self.sandbox()?;
        let id = sandbox.id().to_owned();
        self.relay = Some(relay(sandbox, &self.mux).await?);
        Ok(RemoteAnswer::Sandbox { id })
    }

    fn carry(&mut self, kernel: Kernel, stream: u32) -> RemoteAnswer {
        let pid = kernel.pid;
        let (sending, receiving) = self.mux.open(stream);
        let orders = Arc::new(Orders::default());
        let mut signalled = self.signalled.lock();
        // Orders for earlier kernels have no recipient any more.
        signalled.clear();
        signalled.insert(stream, Arc::clone(&orders));
        drop(signalled);
        self.pump = Some(Pump::start(kernel, sending, receiving, orders));
        RemoteAnswer::Kernel { pid }
    }

    fn expect(&mut self, stream: u32, bytes: u64) -> RequestAnswer {
        self.sandbox()?;
        let folder = self
            .host
            .spool()
            .ok_or_else(|| RemoteRefusal::request("this server does not support mounts"))?;
        let held: u64 = self
            .shown
            .iter()
            .filter_map(|file| file.as_file().metadata().ok())
            .map(|metadata| metadata.len())
            .sum();
        let limit = self.limits.data_bytes;
        if held.saturating_add(bytes) > limit {
            return Err(RemoteRefusal::request(format!(
                "datasets would have {} bytes, the limit is {limit}; raise `data_bytes`",
                held.saturating_add(bytes)
            )));
        }
        let made = empty(&folder);
        let file = made.map_err(|error| internal(format!("make a file for a dataset: {error}")))?;
        let (_, receiving) = self.mux.open(stream);
        self.upload = Some(FileUpload {
            stream: receiving,
            bytes,
            file,
        });
        Ok(RemoteAnswer::Done {})
    }

    /// Returns the announced file once it has arrived.
    async fn uploaded(&mut self) -> Result<FileUpload, RemoteRefusal> {
        let Some(mut upload) = self.upload.take() else {
            return Err(RemoteRefusal::request("no file was sent"));
        };
        let written = upload.receive().await;
        written.map_err(|error| match error {
            ReceiveError::Length { actual } => RemoteRefusal::request(format!(
                "a file of {} bytes was announced, but {actual} bytes arrived",
                upload.bytes
            )),
            ReceiveError::Io(error) => internal(format!("keep a dataset: {error}")),
        })?;
        Ok(upload)
    }

    async fn install(&mut self, layer: &str) -> RequestAnswer {
        let layers = self.host.layers();
        let layers = layers.ok_or_else(|| RemoteRefusal::request("this server installs layers itself"))?;
        if !cellblock_image::layer::is_layer(layer) {
            return Err(RemoteRefusal::request("this is not the id of a layer"));
        }
        let upload = self.uploaded().await?;
        let target = layers.join(layer);
        let unpacked = tokio::task::spawn_blocking(move || unpack(upload.file.reopen()?, &target)).await;
        let unpacked = unpacked.unwrap_or_else(|error| Err(error.into()));
        unpacked.map_err(|error| internal(format!("unpack a layer: {error}")))?;
        Ok(RemoteAnswer::Done {})
    }

    async fn mount(&mut self, name: &str) -> RequestAnswer {
        let upload = self.uploaded().await?;
        let sandbox = self.sandbox()?;
        let (file, path) = (upload.file.as_file(), upload.file.path());
        sandbox.mount_data(name, file, path).await?;
        self.shown.push(upload.file);
        Ok(RemoteAnswer::Done {})
    }

    /// Releases everything.
    pub(super) async fn close(&mut self) {
        self.pump = None;
        self.ready = None;
        self.upload = None;
        if let Some(relay) = self.relay.take() {
            relay.abort();
        }
        if let Some(sandbox) = self.sandbox.take() {
            let id = sandbox.id().to_owned();
            if let Err(error) = sandbox.destroy().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "could not end the sandbox of a connection"
                );
            }
            self.host.returned(&id);
        }
        self.shown.clear();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(relay) = &self.relay {
            relay.abort();
        }
        if let Some(sandbox) = &self.sandbox {
            self.host.returned(sandbox.id());
        }
    }
}

/// Starts relaying the client's requests to the guest.
async fn relay(sandbox: &dyn Sandbox, mux: &Arc<Mux>) -> Result<JoinHandle<()>, RemoteRefusal> {
    let relay = sandbox.guest().relay().await?;
    let (sending, receiving) = mux.open(GUEST);
    let mux = Arc::clone(mux);
    Ok(tokio::spawn(async move {
        if let Err(error) = guest::pass(relay, sending, receiving).await {
            mux.fail(cellblock_sandbox::jail::error::chain(&error));
        }
    }))
}

enum ReceiveError {
    Length { actual: u64 },
    Io(std::io::Error),
}

impl From<std::io::Error> for ReceiveError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl FileUpload {
    /// Writes the received bytes to the file.
    async fn receive(&mut self) -> Result<(), ReceiveError> {
        let mut file = tokio::fs::File::from_std(self.file.as_file().try_clone()?);
        let mut actual = 0;
        while actual < self.bytes {
            let Some(bytes) = self.stream.next().await else {
                break;
            };
            actual += bytes.len() as u64;
            if actual > self.bytes {
                break;
            }
            file.write_all(&bytes).await?;
            self.stream.done(bytes.len()).await;
        }
        file.flush().await?;
        if actual == self.bytes {
            Ok(())
        } else {
            Err(ReceiveError::Length { actual })
        }
    }
}

/// Unpacks an archive as a directory that appears as a whole.
fn unpack(archive: std::fs::File, target: &Path) -> std::io::Result<()> {
    if target.is_dir() {
        return Ok(());
    }
    let staging = target.with_extension("partial");
    tar::Archive::new(archive).unpack(&staging)?;
    std::fs::rename(staging, target)
}

/// Creates a file that is readable by every user who can see it, under a meaningless name.
fn empty(folder: &PathBuf) -> std::io::Result<NamedTempFile> {
    let file = tempfile::Builder::new()
        .prefix("")
        .rand_bytes(16)
        .tempfile_in(folder)?;
    file.as_file()
        .set_permissions(std::fs::Permissions::from_mode(0o444))?;
    Ok(file)
}

/// Waits for an operation of a sandbox; a kill reaches the sandbox meanwhile.
async fn unless_killed<T>(
    sandbox: &dyn Sandbox,
    done: impl Future<Output = cellblock_sandbox::Result<T>>,
    killed: &Notify,
) -> Result<T, RemoteRefusal> {
    tokio::pin!(done);
    loop {
        tokio::select! {
            done = &mut done => return done.map_err(RemoteRefusal::from),
            () = killed.notified() => sandbox.kill(),
        }
    }
}

fn internal(reason: String) -> RemoteRefusal {
    RemoteRefusal::new(Blame::Internal, Retry::Never, reason)
}
