//! The host's side of frozen templates: whether one is used, and starting what makes one.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cellblock_guest::launcher::FREEZER_NAME;
use cellblock_guest::launcher::control::{FrozenOrder, Launch};
pub use cellblock_guest::launcher::frozen::FrozenState;
use cellblock_guest::launcher::frozen::{self, FrozenPlace};
use cellblock_jail::fds;

use super::{ProcessConfig, ids, launchers};
use crate::error::{DuringIo as _, Result, SandboxErrorKind};

/// Variable that turns frozen templates off.
const VARIABLE: &str = "CELLBLOCK_FROZEN";

/// Configuration of an image's frozen template.
#[derive(Clone, Debug)]
pub struct FrozenConfig {
    /// Directory for its files, which must belong to this image alone.
    pub directory: PathBuf,
    /// Modules that it imports, also if a template that is not frozen imports others.
    pub modules: Vec<String>,
}

/// Lets a launch use the frozen template, or starts to make one for later launches.
pub(super) fn prepare(config: &ProcessConfig, launch: &mut Launch) {
    let (state, order) = look(config, launch);
    match (state, order) {
        (FrozenState::Ready, Some((_, place))) => launch.frozen = Some(FrozenOrder::Thaw(place)),
        (FrozenState::Refused(reason), _) => tracing::debug!(reason, "templates are not frozen"),
        (state, Some((whole, place))) => {
            if let FrozenState::Damaged(reason) = state {
                tracing::warn!(reason, "the frozen template is not used; it will be made again");
            }
            let started = start(config.launcher.as_deref(), whole, place, true);
            if let Err(error) = started.and_then(reap) {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "cannot freeze a template"
                );
            }
        }
        _ => {}
    }
}

/// Waits in the background for a launcher that freezes: a server outlives it, and would keep its zombie.
/// Not a task, because a runtime waits for its blocking tasks before it ends.
fn reap(mut child: Child) -> Result<()> {
    std::thread::Builder::new()
        .name("freezer".to_owned())
        .spawn(move || child.wait())
        .map(drop)
        .during("start the thread that waits for the launcher that freezes")
}

/// Returns the state of the frozen template.
pub(super) fn state(config: &ProcessConfig) -> FrozenState {
    look(config, &launchers::describe(config, ids::preview())).0
}

/// Makes the frozen template, unless there is one or another process makes it; returns its state.
pub(super) async fn make(config: &ProcessConfig) -> Result<FrozenState> {
    let (state, order) = look(config, &launchers::describe(config, ids::preview()));
    let (FrozenState::Missing | FrozenState::Damaged(_), Some((whole, place))) = (&state, order) else {
        return Ok(state);
    };
    let mut child = start(config.launcher.as_deref(), whole, place.clone(), false)?;
    let ended = tokio::task::spawn_blocking(move || child.wait()).await;
    if let Ok(ended) = ended {
        ended.during("wait for the launcher that freezes")?;
    }
    Ok(place.state())
}

/// Looks at the frozen template of a launch. Returns its state, and the place with the launch that
/// makes one.
fn look(config: &ProcessConfig, launch: &Launch) -> (FrozenState, Option<(Launch, FrozenPlace)>) {
    if std::env::var_os(VARIABLE).is_some_and(|it| it == "off") {
        return (FrozenState::Refused(format!("`{VARIABLE}` is `off`")), None);
    }
    let Some(frozen) = &config.frozen else {
        let reason = "the modules to import are not those of the image";
        return (FrozenState::Refused(reason.to_owned()), None);
    };
    let whole = Launch {
        preload: frozen.modules.clone(),
        ..launch.clone()
    };
    match frozen::place(&frozen.directory, &whole) {
        Ok(place) => (place.state(), Some((whole, place))),
        Err(reason) => (FrozenState::Refused(reason), None),
    }
}

/// Starts a launcher that freezes a template, and `yields` to everything else on the machine. It outlives
/// this process, and ends by itself.
fn start(executable: Option<&Path>, launch: Launch, place: FrozenPlace, yields: bool) -> Result<Child> {
    // The ids of the other launcher are its own.
    let (ids, held) = ids::choose()?;
    let launch = Launch {
        ids,
        frozen: Some(FrozenOrder::Freeze { place, yields }),
        ..launch
    };
    let executable = match executable {
        Some(path) => path,
        None if cellblock_guest::can_become_launcher() => Path::new("/proc/self/exe"),
        None => return Err(SandboxErrorKind::NoLauncher.into()),
    };
    let (ours, theirs) = fds::packet_pair().map_err(super::internal)?;
    let child = Command::new(executable)
        .arg0(FREEZER_NAME)
        .env_clear()
        .stdin(theirs)
        // Reserves the ids as long as it runs.
        .stdout(held.map_or_else(Stdio::null, Stdio::from))
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| SandboxErrorKind::spawn("start the launcher that freezes", error))?;
    fds::send(&ours, &launch, &[]).map_err(super::internal)?;
    Ok(child)
}
