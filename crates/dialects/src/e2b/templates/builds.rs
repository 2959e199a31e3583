//! Builds of this server: those that wait for their files, those that run, and the last ones that ended.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use cellblock_interpreter::hosting::uploads::SpooledUpload;
use cellblock_interpreter::hosting::{HostingLimits, Owner};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::super::error::{Answer, Problem};
use super::super::options::BuildOptions;
use super::super::secret::Token;
use super::super::state::E2b;
use super::log::{BuildLog, LogLevel};
use crate::host::DialectHost;
use crate::session::DialectSessions;
use crate::uuid::uuid;

/// Maximum number of builds of a key that have not ended.
const MAX_OPEN: usize = 8;
/// Maximum number of builds of a key that are remembered.
const MAX_KNOWN: usize = 16;
/// Time for which a build waits for its start, and for which one that has ended is remembered.
const KEPT: Duration = Duration::from_hours(1);
/// Maximum number of uploads of a build.
const MAX_FILES: usize = 256;
/// Prefix of the tokens of uploads.
pub(super) const UPLOAD: &str = "u";

/// All builds of this server.
#[derive(Debug)]
pub(in super::super) struct TemplateBuilds {
    all: Mutex<Vec<Arc<TemplateBuild>>>,
    /// Places for builds that run.
    pub(super) seats: Semaphore,
    /// One template at a time is saved.
    pub(super) saving: tokio::sync::Mutex<()>,
    /// Sandboxes of builds.
    pub(super) sessions: DialectSessions<()>,
}

/// A build.
#[derive(Debug)]
pub(super) struct TemplateBuild {
    pub(super) id: String,
    pub(super) owner: Owner,
    /// Template that it is a build of.
    pub(super) name: String,
    pub(super) tags: Vec<String>,
    state: Mutex<BuildState>,
    files: Mutex<HashMap<String, BuildFile>>,
}

#[derive(Debug)]
struct BuildState {
    status: BuildStatus,
    /// Whether a client has started it.
    is_started: bool,
    reason: Option<BuildReason>,
    log: BuildLog,
    /// Time of the last change of the status.
    since: Instant,
}

/// Status of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BuildStatus {
    Waiting,
    Building,
    Ready,
    Error,
}

/// Reason that a build failed, and the step that did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct BuildReason {
    pub(super) message: String,
    pub(super) step: String,
}

/// Files of a step that copies.
#[derive(Debug)]
struct BuildFile {
    token: Token,
    content: Option<SpooledUpload>,
}

/// State of a build that clients see.
#[derive(Debug)]
pub(super) struct BuildView {
    pub(super) status: BuildStatus,
    pub(super) reason: Option<BuildReason>,
    pub(super) entries: Vec<super::log::LogEntry>,
}

impl TemplateBuilds {
    pub(in super::super) fn new(host: &DialectHost, options: Option<&BuildOptions>) -> Self {
        let seats = options.map_or(0, |it| it.max_concurrent);
        Self {
            all: Mutex::default(),
            seats: Semaphore::new(seats.clamp(1, Semaphore::MAX_PERMITS)),
            saving: tokio::sync::Mutex::default(),
            sessions: host.sessions(HostingLimits::default()),
        }
    }

    /// Finds a build of a key.
    pub(super) fn find(&self, owner: &Owner, name: &str, id: &str) -> Option<Arc<TemplateBuild>> {
        let all = self.all.lock();
        let found = all
            .iter()
            .find(|it| it.owner == *owner && it.name == name && it.id == id);
        found.cloned()
    }

    /// Finds the last build of a template that a client has not started.
    pub(super) fn waiting(&self, owner: &Owner, name: &str) -> Option<Arc<TemplateBuild>> {
        let all = self.all.lock();
        let mut own = all.iter().rev();
        own.find(|it| it.owner == *owner && it.name == name && !it.state.lock().is_started)
            .cloned()
    }

    /// Finds the build and the files that a token is for.
    pub(super) fn upload(&self, token: &str) -> Option<(Arc<TemplateBuild>, String)> {
        let all = self.all.lock();
        all.iter().find_map(|build| {
            let files = build.files.lock();
            let (hash, _) = files.iter().find(|(_, file)| file.token.is(token))?;
            Some((Arc::clone(build), hash.clone()))
        })
    }
}

impl E2b {
    /// Makes a build, which waits for its files and its start.
    pub(super) fn begin_build(
        &self,
        owner: &Owner,
        name: String,
        tags: Vec<String>,
    ) -> Answer<Arc<TemplateBuild>> {
        let build = Arc::new(TemplateBuild {
            id: uuid(),
            owner: owner.clone(),
            name,
            tags,
            state: Mutex::new(BuildState {
                status: BuildStatus::Waiting,
                is_started: false,
                reason: None,
                log: BuildLog::default(),
                since: Instant::now(),
            }),
            files: Mutex::default(),
        });
        let mut all = self.builds.all.lock();
        let own = || all.iter().filter(|it| it.owner == *owner);
        if own().filter(|it| !it.has_ended()).count() >= MAX_OPEN {
            return Err(Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!(
                    "build a template: the key has {MAX_OPEN} builds that have not ended, which is the \
                     limit; wait until one has. One that was never started ends after {} s",
                    KEPT.as_secs()
                ),
            ));
        }
        if own().count() >= MAX_KNOWN {
            let oldest = all.iter().position(|it| it.owner == *owner && it.has_ended());
            oldest.map(|index| all.remove(index));
        }
        all.push(Arc::clone(&build));
        drop(all);
        let (e2b, expiring) = (self.clone(), Arc::downgrade(&build));
        self.host.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = e2b.host.stopping.cancelled() => return,
                    () = tokio::time::sleep(KEPT) => {}
                }
                let Some(build) = expiring.upgrade() else { return };
                if build.is_over() {
                    e2b.builds.all.lock().retain(|it| !Arc::ptr_eq(it, &build));
                    return;
                }
            }
        });
        Ok(build)
    }
}

impl TemplateBuild {
    /// Returns the token with which a client uploads files, unless they are there.
    pub(super) fn request_upload(&self, hash: &str, token: String) -> Answer<Option<String>> {
        let mut files = self.files.lock();
        if files.len() >= MAX_FILES && !files.contains_key(hash) {
            return Err(Problem::invalid(format!(
                "the build has {MAX_FILES} uploads, which is the limit; copy folders instead of files"
            )));
        }
        let file = files.entry(hash.to_owned()).or_insert_with(|| BuildFile {
            token: Token::known(token),
            content: None,
        });
        Ok(file.content.is_none().then(|| file.token.text().to_owned()))
    }

    /// Takes the files of a step.
    pub(super) fn put(&self, hash: &str, content: SpooledUpload) -> Answer<()> {
        let is_started = self.state.lock().is_started;
        let mut files = self.files.lock();
        match files.get_mut(hash).filter(|_| !is_started) {
            Some(file) => {
                file.content = Some(content);
                Ok(())
            }
            None => Err(Problem::new(
                StatusCode::CONFLICT,
                "the build has started; upload its files before that",
            )),
        }
    }

    /// Returns whether the files of a step are there.
    pub(super) fn has(&self, hash: &str) -> bool {
        self.files.lock().get(hash).is_some_and(|it| it.content.is_some())
    }

    /// Opens the files of a step. Several steps may copy the same ones, one after another.
    pub(super) fn open(&self, hash: &str) -> Answer<File> {
        let failed = |error: std::io::Error| Problem::internal("read an upload", &error);
        let files = self.files.lock();
        let content = files.get(hash).and_then(|it| it.content.as_ref());
        let content = content.ok_or_else(|| Problem::invalid("its files were not uploaded"))?;
        let mut file = content.content.try_clone().map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(file)
    }

    /// Rejects a build that was started before.
    pub(super) fn check_unstarted(&self) -> Answer<()> {
        unstarted(self.state.lock().is_started)
    }

    /// Starts it, which only one request can.
    pub(super) fn start(&self) -> Answer<()> {
        let was_started = std::mem::replace(&mut self.state.lock().is_started, true);
        unstarted(was_started)
    }

    pub(super) fn run(&self) {
        self.change(BuildStatus::Building, None);
    }

    /// Notes how it ended, and drops its files.
    pub(super) fn end(&self, failed: Option<BuildReason>) {
        self.files.lock().clear();
        let status = if failed.is_some() {
            BuildStatus::Error
        } else {
            BuildStatus::Ready
        };
        self.change(status, failed);
    }

    fn change(&self, status: BuildStatus, reason: Option<BuildReason>) {
        let mut state = self.state.lock();
        state.status = status;
        state.reason = reason;
        state.since = Instant::now();
    }

    pub(super) fn log(&self, level: LogLevel, step: &str, line: &str) {
        self.state.lock().log.push(level, step, line);
    }

    /// Returns what clients see, with entries of the log from an offset on.
    pub(super) fn view(&self, offset: usize, limit: usize) -> BuildView {
        let state = self.state.lock();
        BuildView {
            status: state.status,
            reason: state.reason.clone(),
            entries: state.log.part(offset, limit),
        }
    }

    fn has_ended(&self) -> bool {
        matches!(self.state.lock().status, BuildStatus::Ready | BuildStatus::Error)
    }

    /// Whether it has ended, or was not started, for as long as it is kept.
    fn is_over(&self) -> bool {
        let state = self.state.lock();
        let rests = !state.is_started || matches!(state.status, BuildStatus::Ready | BuildStatus::Error);
        rests && state.since.elapsed() >= KEPT
    }
}

fn unstarted(is_started: bool) -> Answer<()> {
    if is_started {
        let message = "the build was started before; request another one";
        return Err(Problem::new(StatusCode::CONFLICT, message));
    }
    Ok(())
}

/// Returns a time in milliseconds since 1970 as answers show it.
pub(super) fn time_of(unix_ms: u64) -> String {
    super::super::control::iso(SystemTime::UNIX_EPOCH + Duration::from_millis(unix_ms.min(1 << 52)))
}
