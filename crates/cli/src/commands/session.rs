//! `cellblock session`: sessions that outlive the command.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cellblock_image::{Home, POLARS_IMAGE};
use cellblock_settings::clock;
use rustix::process::{Signal, kill_process};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::image;
use crate::args::session::{DatasetArg, SessionCommand, StartArgs, StopArgs};
use crate::cancel::Cancel;
use crate::env_vars;
use crate::error::{self, Error, Result};
use crate::exit_code::ExitCode;
use crate::progress::Display;
use crate::render::json::print;
use crate::render::{FAINT, STRONG, Screen, outcome, styled};
use crate::sanitize;
use crate::session::client::{self, HostExchange, silent, unexpected};
use crate::session::place::{Places, SessionPlace};
use crate::session::plan::{SessionDataset, SessionPlan, SessionProfile};
use crate::session::spawn;
use crate::session::wire::{AddedDataset, Description, HostAnswer, HostCommand};
use crate::session_error::{HostKind, SessionError};
use crate::session_id::SessionId;

mod attach;
mod cells;
pub(crate) mod host;
mod process;
mod tries;

/// Directory for files, unless another one is named.
const OUT: &str = "cellblock-out";
/// Maximum time in which a host ends after it was asked to; it gives up on its clients and its
/// sandbox before that.
const ENDING: Duration = Duration::from_secs(20);
/// Maximum wait for the end of a killed process.
const DYING: Duration = Duration::from_secs(10);
/// Interval between two checks of whether it has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// Does it, prints, and says how it ended.
pub(crate) async fn run(command: SessionCommand) -> ExitCode {
    let done = match command {
        SessionCommand::Start(args) => start(&args).await,
        SessionCommand::List { json } => list(json).await,
        SessionCommand::Stop(args) => stop(&args).await,
        SessionCommand::AddDataset {
            session,
            dataset,
            as_csv,
        } => add_dataset(&session, &dataset, as_csv).await,
        SessionCommand::Prompt { session } => prompt(&session).await,
        SessionCommand::Run(args) => return error::ended(cells::run(&args).await),
        SessionCommand::Checkpoint(args) => cells::checkpoint(&args).await,
        SessionCommand::Checkpoints { session, json } => cells::list(&session, json).await,
        SessionCommand::Rollback(args) => cells::roll_back(&args).await,
        SessionCommand::RemoveCheckpoint(args) => cells::drop_checkpoint(&args).await,
        SessionCommand::Try(args) => return error::ended(tries::run(&args).await),
        SessionCommand::Keep { session } => tries::decide(&session, true).await,
        SessionCommand::Discard { session } => tries::decide(&session, false).await,
        SessionCommand::Hibernate { session } => cells::hibernate(&session).await,
        SessionCommand::Fork(args) => cells::fork(&args).await,
        SessionCommand::Exec(args) => return error::ended(process::exec(&args).await),
        SessionCommand::Attach(args) => return error::ended(attach::attach(&args).await),
        SessionCommand::Ps { session, json } => process::list(&session, json).await,
        SessionCommand::Output(args) => process::output(&args).await,
        SessionCommand::Input(args) => process::input(&args).await,
        SessionCommand::Signal { process, signal } => process::signal(&process, &signal).await,
        SessionCommand::Wait { process, timeout } => {
            return error::ended(process::wait(&process, timeout).await);
        }
        // Begins before there is a runtime.
        SessionCommand::Host { .. } => Err(SessionError::NotStarted {
            kind: HostKind::Session,
        }
        .into()),
    };
    error::end(done)
}

async fn start(args: &StartArgs) -> Result<()> {
    let datasets: Vec<_> = args
        .datasets
        .iter()
        .map(|it| dataset(it, args.as_csv))
        .collect::<Result<_>>()?;
    let home = Home::find()?;
    let places = Places::of(&home)?;
    // Sweeps what hosts that are gone have left.
    places.live()?;
    let mut cancel = Cancel::listen()?;
    let backend = cancel.unless(args.wall.backend()).await?;
    let display = Display::on_stderr();
    let name = args.image.clone().unwrap_or_else(|| match args.profile {
        SessionProfile::Default => env_vars::default_image(),
        SessionProfile::Polars => POLARS_IMAGE.to_owned(),
    });
    // Held until the host has opened it as well, so that nobody removes it in between.
    let image = cancel.unless(image::ready(&home, &name, None, &display)).await?;
    let (place, held) = places.create()?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => Path::new(OUT).join(format!("session_{}", place.id())),
    };
    let plan = SessionPlan {
        toolset: args.toolset,
        profile: args.profile,
        image: image.id().to_owned(),
        image_name: name,
        memory_bytes: args.memory.map(|it| it.0),
        requirements: args.requirements.clone(),
        datasets,
        out: absolute(&out)?,
        idle: args.idle_timeout,
        on_idle: args.on_idle,
        demands: args.policy.demands().0,
        backend,
        network: args.network.network,
        egress: args
            .network
            .egress()?
            .map(|policy| policy.allow)
            .unwrap_or_default(),
        emulation: args.wall.emulation,
        started: clock::unix_seconds(),
    };
    place.set_plan(&plan)?;
    display.wait_for("starting the session");
    let notes = spawn::started(&home, &place, &held, &mut cancel).await;
    display.clear();
    let mut screen = Screen::new();
    for note in notes? {
        screen.tell(&outcome::note(&note));
    }
    screen.show(place.id().as_str());
    Ok(())
}

async fn list(json: bool) -> Result<()> {
    let places = Places::of(&Home::find()?)?;
    let mut sessions = Vec::new();
    for place in places.live()? {
        let described = client::describe(&place).await;
        // One that has ended since is none; one that does not answer is shown with what is known without it.
        if described.is_ok() || place.is_live()? == Some(true) {
            sessions.push((place.id().clone(), described.ok()));
        }
    }
    if json {
        let sessions: Vec<_> = sessions.iter().map(|(id, it)| report(id, it.as_ref())).collect();
        print(&json!({ "sessions": sessions }));
        return Ok(());
    }
    let lines: Vec<_> = sessions.iter().map(|(id, it)| line(id, it.as_ref())).collect();
    let text = if lines.is_empty() {
        "no session is running; `cellblock session start` starts one".to_owned()
    } else {
        lines.join("\n")
    };
    Screen::new().show(&text);
    Ok(())
}

fn report(id: &SessionId, description: Option<&Description>) -> serde_json::Value {
    let Some(it) = description else {
        return json!({ "id": id, "state": "silent" });
    };
    let datasets: Vec<_> = it.plan.datasets.iter().map(|it| &it.name).collect();
    json!({
        "id": id,
        "state": if it.running > 0 { "busy" } else { "idle" },
        "process": it.process,
        "toolset": it.plan.toolset,
        "profile": it.plan.profile,
        "image": it.plan.image_name,
        "image_id": it.plan.image,
        "datasets": datasets,
        "out": it.plan.out,
        "started": it.plan.started,
        "calls": it.calls,
        "idle_seconds": (it.idle_seconds * 1e3).round() / 1e3,
        "idle_limit_seconds": it.plan.idle.as_secs_f64(),
    })
}

fn line(id: &SessionId, description: Option<&Description>) -> String {
    let id = styled(STRONG, id.as_str());
    let Some(it) = description else {
        return format!("{id}  does not answer");
    };
    let doing = if it.running > 0 {
        "working".to_owned()
    } else {
        let left = it.plan.idle.as_secs_f64() - it.idle_seconds;
        format!(
            "idle for {:.0} s, ends in {:.0} s",
            it.idle_seconds,
            left.max(0.0)
        )
    };
    let calls = match it.calls {
        1 => "1 call".to_owned(),
        count => format!("{count} calls"),
    };
    let about = format!("image {}, {calls}, {doing}", sanitize::line(&it.plan.image_name));
    format!("{id}  {}", styled(FAINT, &about))
}

async fn stop(args: &StopArgs) -> Result<()> {
    let places = Places::of(&Home::find()?)?;
    let chosen = match &args.session {
        Some(id) => vec![places.open(id)?],
        None => places.live()?,
    };
    let mut screen = Screen::new();
    if chosen.is_empty() {
        screen.show("no session is running");
    }
    let mut failed = None;
    for place in chosen {
        match end(&place).await {
            Ok(()) => screen.show(&format!("stopped {}", place.id())),
            // The others are stopped all the same.
            Err(error) if args.all => failed = Some(error),
            Err(error) => return Err(error),
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Ends a host: by asking, and where nobody listens by force.
pub(super) async fn end(place: &SessionPlace) -> Result<()> {
    let asked = async {
        match HostExchange::ask(place, &HostCommand::Stop)
            .await?
            .answer()
            .await?
        {
            HostAnswer::Stopped => Ok(()),
            other => Err(unexpected(&other)),
        }
    };
    let polite = timeout(ENDING, asked)
        .await
        .unwrap_or_else(|_| Err(silent(place)));
    if polite.is_ok() && gone(place, DYING).await? {
        return Ok(());
    }
    // Its lock is held, so the process that has signed it lives.
    if let (Some(true), Some(process)) = (place.is_live()?, place.host()) {
        kill_process(process, Signal::KILL)
            .map_err(|errno| Error::process("kill the session's host")(errno.into()))?;
        gone(place, DYING).await?;
    }
    match place.is_live()? {
        Some(true) => Err(polite.err().unwrap_or_else(|| silent(place))),
        Some(false) => place.sweep(),
        None => Ok(()),
    }
}

/// Waits until the host is gone.
async fn gone(place: &SessionPlace, patience: Duration) -> Result<bool> {
    let deadline = Instant::now() + patience;
    while place.is_live()? == Some(true) {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        sleep(PAUSE).await;
    }
    Ok(true)
}

async fn add_dataset(id: &SessionId, given: &DatasetArg, as_csv: bool) -> Result<()> {
    let ask = HostCommand::AddDataset {
        dataset: dataset(given, as_csv)?,
    };
    let AddedDataset { path, notes } = match ask_once(id, &ask).await? {
        HostAnswer::AddedDataset { added } => added,
        other => return Err(unexpected(&other)),
    };
    let mut screen = Screen::new();
    for note in notes {
        screen.tell(&outcome::note(&sanitize::line(&note)));
    }
    screen.show(&sanitize::line(&path));
    Ok(())
}

async fn prompt(id: &SessionId) -> Result<()> {
    match ask_once(id, &HostCommand::Prompt).await? {
        HostAnswer::Prompt { text } => {
            Screen::new().show(&sanitize::text(&text));
            Ok(())
        }
        other => Err(unexpected(&other)),
    }
}

async fn ask_once(id: &SessionId, ask: &HostCommand) -> Result<HostAnswer> {
    let place = Places::of(&Home::find()?)?.open(id)?;
    let mut asked = HostExchange::ask(&place, ask).await?;
    Cancel::listen()?.unless(asked.answer()).await
}

/// Returns a dataset as it is sent to the host: its file exists, and its path is absolute.
fn dataset(given: &DatasetArg, as_csv: bool) -> Result<SessionDataset> {
    let opened = File::open(&given.path).and_then(|file| file.metadata());
    let found = opened.map_err(Error::user_file("read", &given.path))?;
    if !found.is_file() {
        return Err(Error::Refused(format!(
            "`{}` is not a file, which a dataset has to be",
            given.path.display()
        )));
    }
    let extension = given
        .path
        .extension()
        .and_then(|it| it.to_str())
        .unwrap_or_default();
    let tables = ["parquet", "pq", "arrow", "feather", "ipc"];
    Ok(SessionDataset {
        name: given.name.clone(),
        path: absolute(&given.path)?,
        as_csv: as_csv && tables.contains(&extension.to_ascii_lowercase().as_str()),
    })
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(Error::user_file("make absolute", path))
}
