//! State that dialects share: the caller, what it may use, and how its sessions are made.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use cellblock_interpreter::artifact::ArtifactId;
use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::egress::{EgressPolicy, EgressRestriction, HeaderRule};
use cellblock_interpreter::hosting::uploads::{DeclaredSize, MaxUpload, Upload, UploadError, UploadRoom};
use cellblock_interpreter::hosting::{
    HostingError, HostingLimits, Meter, MeterDenial, Owner, Permit, ResidentGuard, VolumeShelf,
};
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_interpreter::session::{SessionOptions, SetupSnippet};
use cellblock_interpreter::skill::SessionSkill;
use cellblock_interpreter::volume::SessionVolume;
use cellblock_interpreter::{Error, Interpreter, mint};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::door::{Doorkeeper, NoEntry};
use crate::session::{DialectSession, DialectSessions, SessionReservation};

/// Time between two looks whether the key of an open connection is revoked.
const REVOKED: Duration = Duration::from_secs(2);

/// State that dialects share. Clones share it.
#[derive(Clone, Debug)]
pub struct DialectHost(Arc<DialectTerms>);

/// Terms that the program around gives to dialects.
#[derive(Debug)]
pub struct DialectTerms {
    /// Makes the sandboxes.
    pub interpreter: Interpreter,
    /// Says who calls.
    pub doorkeeper: Arc<dyn Doorkeeper>,
    /// Says how much a caller may have and run.
    pub meter: Arc<dyn Meter>,
    /// Widest network policy of a session.
    pub max_network: NetworkPolicy,
    /// Hosts that code reaches with the network policy `egress`.
    pub egress: Option<EgressPolicy>,
    /// Web origins whose pages may call addresses of the dialects' own.
    pub origins: Vec<String>,
    /// Check of code before it runs.
    pub guard: Guard,
    /// Code that prepares each session.
    pub setup: Vec<SetupSnippet>,
    /// Packages of each session, in addition to those of the image.
    pub requirements: Vec<String>,
    /// Maximum size of a body that is not an upload.
    pub max_body: usize,
    /// Maximum size of an upload.
    pub max_upload: u64,
    /// Room in which uploads are received.
    pub uploads: UploadRoom,
    /// Volumes of callers, in which a dialect keeps files of theirs; `None` if the server keeps nothing.
    pub volumes: Option<Arc<dyn VolumeShelf>>,
    /// Longest timeout of a cell or a command that a request can set.
    pub max_cell_timeout: Duration,
    /// Folder for certificates that outlive the server.
    pub authorities: PathBuf,
    /// Tasks that continue without a client and are waited for at the end.
    pub tasks: TaskTracker,
    /// Prefix of the ids of sandboxes, by which another server finds this one, if there may be others.
    pub mark: Option<String>,
    /// Canceled when the server begins to stop.
    pub stopping: CancellationToken,
    /// Canceled when what runs has to end.
    pub ending: CancellationToken,
}

impl std::ops::Deref for DialectHost {
    type Target = DialectTerms;

    fn deref(&self) -> &DialectTerms {
        &self.0
    }
}

/// Properties that a dialect requires of a new session.
#[derive(Clone, Debug, Default)]
pub struct SessionWish {
    /// Its id, unique in the dialect.
    pub id: String,
    /// Idle timeout.
    pub idle: Duration,
    /// The network that it is to have; the caller's and the server's may be narrower.
    pub network: NetworkPolicy,
    /// Limits that are narrower than the server's; those by default.
    pub limits: Option<Limits>,
    /// Hosts of the server's list that it gives up.
    pub restriction: EgressRestriction,
    /// Headers that its requests get.
    pub headers: Vec<HeaderRule>,
    /// Whether the restriction and the headers can be replaced.
    pub replaceable: bool,
    /// Sets of names that are bound before the first cell.
    pub prelude: Vec<String>,
    /// Code of the dialect that prepares the session, before that of the server.
    pub setup: Vec<SetupSnippet>,
    /// Skills that code finds in `/skills`.
    pub skills: Vec<SessionSkill>,
    /// Archive whose files it begins with.
    pub archive: Option<ArtifactId>,
    /// Volume that it writes. If there is no session, it is free again.
    pub volume: Option<SessionVolume>,
}

/// Reason that a session cannot be made or used. Each dialect has its own form for it.
#[derive(Debug, thiserror::Error)]
pub enum DialectError {
    /// The caller is not let in; status 401, 403 or 503.
    #[error(transparent)]
    NoEntry(#[from] NoEntry),
    /// A quota is used up; status 429.
    #[error(transparent)]
    Denied(#[from] MeterDenial),
    /// There are too many sessions, or it has ended; status 429 or 404.
    #[error(transparent)]
    Hosting(#[from] HostingError),
    /// An upload could not be received; status 400, 408, 413, 429 or 500.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// The sandbox failed; status 502.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl DialectHost {
    /// A host of these terms.
    pub fn new(terms: DialectTerms) -> Self {
        Self(Arc::new(terms))
    }

    /// Returns the owner that a request's secret belongs to.
    pub async fn owner(
        &self,
        secret: Option<&str>,
        path: &str,
        peer: Option<SocketAddr>,
    ) -> Result<Owner, NoEntry> {
        let owner = self.doorkeeper.owner(secret, path, peer).await?;
        self.at_home(owner.name()).await?;
        Ok(owner)
    }

    /// Lets a request through that opens an owner's sandbox without its key.
    pub(crate) async fn enter(&self, owner: &str) -> Result<(), NoEntry> {
        if self.doorkeeper.admits(owner).await? {
            return Ok(());
        }
        let message = "the API key that made this sandbox was revoked or has expired";
        Err(NoEntry::WrongKey(message.to_owned()))
    }

    /// Completes when an owner is not let in any more, for connections that present a key after
    /// they are open.
    pub(crate) async fn revoked(&self, owner: &Owner) {
        loop {
            tokio::time::sleep(REVOKED).await;
            // Whether it is revoked cannot be found out while the records are unavailable.
            if let Ok(false) = self.doorkeeper.admits(owner.name()).await {
                return;
            }
        }
    }

    /// Ends a request of a name whose sessions are in another server.
    pub(crate) async fn at_home(&self, name: &str) -> Result<(), NoEntry> {
        self.doorkeeper.at_home(name).await
    }

    /// Returns a new id, which names this server if there may be others.
    pub(crate) fn mint(&self, prefix: &str) -> String {
        mint(&format!("{prefix}{}", self.mark.as_deref().unwrap_or_default()))
    }

    /// Asks to run a cell or a command; what is given is held while it runs.
    pub async fn cell(&self, owner: &Owner) -> Result<Permit, MeterDenial> {
        self.meter.cell(owner).await
    }

    /// Begins the upload of a request if the quota and the room of its owner have room for it.
    pub(crate) async fn begin_upload(
        &self,
        owner: &Owner,
        headers: &HeaderMap,
    ) -> Result<Upload, UploadError> {
        let max = MaxUpload {
            bytes: self.max_upload.min(self.interpreter.limits().file_bytes),
            setting: "sessions.max_upload",
        };
        let size = DeclaredSize::of(headers);
        let allowance = self.meter.upload(owner, size.at_least()).await?;
        self.uploads.begin(owner, allowance, size, max)
    }

    /// Returns a registry of a dialect's sessions.
    pub fn sessions<T: Send + Sync + 'static>(&self, limits: HostingLimits) -> DialectSessions<T> {
        DialectSessions::new(limits, &self.tasks, self.stopping.clone(), self.ending.clone())
    }

    /// Returns the widest network that sessions of an owner may have.
    pub(crate) async fn network(&self, owner: &Owner) -> Result<NetworkPolicy, MeterDenial> {
        self.meter.network(owner, self.max_network).await
    }

    /// Reserves a place for a session, if its owner may have one more.
    pub(crate) async fn reserve<'a, T: Send + Sync + 'static>(
        &self,
        sessions: &'a DialectSessions<T>,
        owner: &'a Owner,
        id: &'a str,
    ) -> Result<SessionReservation<'a, T>, DialectError> {
        Ok(SessionReservation {
            place: sessions.reserve(owner.name(), id)?,
            permit: self.meter.session(owner).await?,
        })
    }

    /// Returns the code that prepares a session: the dialect's, then the server's.
    pub(crate) fn setup_after(&self, own: Vec<SetupSnippet>) -> Vec<SetupSnippet> {
        own.into_iter().chain(self.setup.iter().cloned()).collect()
    }

    /// Makes a session and holds it. Its sandbox is made by the first call that needs it.
    pub async fn open<T: Send + Sync + 'static>(
        &self,
        sessions: &DialectSessions<T>,
        owner: &Owner,
        wish: SessionWish,
        kept: T,
    ) -> Result<ResidentGuard<DialectSession<T>>, DialectError> {
        let keeper = wish.volume.as_ref().and_then(|volume| volume.keeper.clone());
        let opened = self.begin(sessions, owner, wish, kept).await;
        if let (Err(_), Some(keeper)) = (&opened, keeper) {
            keeper.release(true).await;
        }
        opened
    }

    async fn begin<T: Send + Sync + 'static>(
        &self,
        sessions: &DialectSessions<T>,
        owner: &Owner,
        wish: SessionWish,
        kept: T,
    ) -> Result<ResidentGuard<DialectSession<T>>, DialectError> {
        let place = self.reserve(sessions, owner, &wish.id).await?;
        let network = wish.network.min(self.network(owner).await?);
        let own = self.interpreter.limits();
        let limits = Limits {
            network,
            ..wish.limits.unwrap_or_else(|| own.clone())
        };
        let session = self.interpreter.session(SessionOptions {
            // With the interpreter's own limits, its sandbox may come from the pool.
            limits: (limits != *own).then_some(limits),
            prelude: wish.prelude,
            idle: wish.idle,
            id: Some(wish.id.clone()),
            guard: self.guard,
            setup: self.setup_after(wish.setup),
            requirements: self.requirements.clone(),
            skills: wish.skills,
            archive: wish.archive,
            volume: wish.volume,
            egress: self.egress.clone().map(|policy| EgressPolicy {
                restriction: wish.restriction,
                headers: wish.headers,
                replaceable: wish.replaceable,
                ..policy
            }),
            ..self.meter.granted(owner)
        });
        Ok(place.fill(session, wish.idle, kept)?)
    }
}
