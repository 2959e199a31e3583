//! `cellblock session host`: the process that `session start` leaves behind.

use std::fs::File;
use std::time::Duration;

use cellblock_artifact::Store;
use cellblock_image::Home;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::cell::Rescue;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::toolset::ToolsetTerms;
use cellblock_interpreter::workbench::Profile as Asked;
use tokio::sync::broadcast;

use crate::commands::run::without_namespaces;
use crate::error::{self, Error, Result};
use crate::exit_code::ExitCode;
use crate::logging;
use crate::sanitize;
use crate::session::host::detach::{Inherited, detach};
use crate::session::host::{listen, serve};
use crate::session::place::{HeldLock, Places, SessionPlace};
use crate::session::plan::{SessionPlan, SessionProfile};
use crate::session::spawn::{HostReport, report};
use crate::session::toolbox::{OwnToolset, Toolbox as _};
use crate::session::wire::{self, HostAnswer};
use crate::session_error::{SessionError, Told};
use crate::session_id::SessionId;
use crate::threads;

/// The session ends when its host says so; the sandbox is not to end before.
const WITH_THE_HOST: Duration = Duration::from_hours(24 * 365);
/// How long those who asked for the end may take to hear of it.
const FAREWELL: Duration = Duration::from_secs(1);
/// Events that may wait for a listener; one that is slower misses the oldest.
const EVENTS: usize = 1024;
/// How long background tasks may hold up the end of the process.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// Serves the session to its end.
pub(crate) fn run(id: &SessionId) -> ExitCode {
    let inherited = match detach() {
        Ok(inherited) => inherited,
        Err(error) => return fail(&error),
    };
    logging::start();
    let hosted = threads::runtime().and_then(|runtime| {
        let hosted = runtime.block_on(host(id, inherited));
        runtime.shutdown_timeout(SHUTDOWN);
        hosted
    });
    match hosted {
        Ok(()) => ExitCode::Success,
        Err(error) => fail(&error),
    }
}

fn fail(error: &Error) -> ExitCode {
    error::tell(error);
    error.exit_code()
}

async fn host(id: &SessionId, inherited: Inherited) -> Result<()> {
    let home = Home::find()?;
    let place = Places::of(&home)?.place(id);
    if !place.is_lock(&inherited.lock) {
        return Err(SessionError::NotStarted.into());
    }
    let held = HeldLock::inherited(inherited.lock);
    held.sign(rustix::process::getpid())
        .map_err(Error::process("sign the session's lock"))?;
    let ended = serve_until_the_end(&home, &place, inherited.report).await;
    // Also after a failure: who starts the next session finds nothing to sweep.
    place.remove()?;
    for mut stream in ended? {
        // Whoever has left does not wait for it.
        let _ = tokio::time::timeout(FAREWELL, wire::tell(&mut stream, &HostAnswer::Stopped)).await;
    }
    drop(held);
    Ok(())
}

async fn serve_until_the_end(
    home: &Home,
    place: &SessionPlace,
    line: File,
) -> Result<Vec<tokio::net::UnixStream>> {
    let ready = async {
        let plan = place.plan()?;
        let (toolbox, notes) = open(home, &plan).await?;
        let listener = listen(place).map_err(Error::process("open the session's socket"))?;
        Ok((plan, toolbox, notes, listener))
    };
    match ready.await {
        Ok((plan, toolbox, notes, listener)) => {
            report(line, &HostReport::Ready { notes })?;
            serve(listener, toolbox, plan).await
        }
        Err(error) => {
            let failure = Told::new(&error);
            report(line, &HostReport::Failed { failure })?;
            Err(error)
        }
    }
}

/// Opens the toolset of a plan; also returns notes for the user.
async fn open(home: &Home, plan: &SessionPlan) -> Result<(OwnToolset, Vec<String>)> {
    let store = Store::local(home.root().join("artifacts")).map_err(|source| Error::Store {
        action: "open the store of artifacts",
        source,
    })?;
    let mut limits = Limits::default();
    if let Some(bytes) = plan.memory_bytes {
        limits.memory_bytes = bytes;
    }
    let interpreter = Interpreter::builder()
        .image(cellblock_image::ImageStore::new(home.clone()).resolve(&plan.image)?)
        .limits(limits)
        .pool(0)
        .preload(Vec::new())
        .demands(plan.demands())
        .store(store)
        .build()
        .await?;
    interpreter.warmed().await?;
    let mut notes: Vec<_> = without_namespaces(&interpreter.report()).into_iter().collect();
    let session = interpreter.session(SessionOptions {
        pooled: false,
        rescue: Rescue::Off,
        idle: WITH_THE_HOST,
        ..SessionOptions::default()
    });
    let terms = ToolsetTerms {
        output_dir: Some(plan.out.clone()),
        profile: match plan.profile {
            SessionProfile::Default => Asked::Default,
            SessionProfile::Polars => Asked::Polars,
        },
        ..ToolsetTerms::default()
    };
    let toolbox = OwnToolset {
        toolset: (plan.toolset.open)(&interpreter, session.clone(), &terms).await?,
        session,
        events: broadcast::channel(EVENTS).0,
        _interpreter: interpreter,
    };
    for dataset in &plan.datasets {
        let added = toolbox.add_dataset(dataset).await?;
        notes.extend(added.notes.iter().map(|note| sanitize::line(note)));
    }
    Ok((toolbox, notes))
}
