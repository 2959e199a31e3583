//! `cellblock session run`, `checkpoint`, `checkpoints`, `rollback` and `drop`: cells of a session,
//! and going back in it.

use std::io::Read as _;

use cellblock_interpreter::session::checkpoints::Checkpoint;
use serde_json::json;

use crate::args::checkpoint::{CellArgs, CheckpointArgs, ForkArgs, KeepArgs};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::render::json::print;
use crate::render::table::counted;
use crate::render::{FAINT, STRONG, Screen, outcome, styled};
use crate::sanitize;
use crate::session::client::unexpected;
use crate::session::wire::{HostAnswer, HostCommand, RanSessionCell, SessionAsk};
use crate::session_id::SessionId;
use cellblock_settings::Size;

/// Maximum number of bytes of code from stdin.
const MAX_CODE: u64 = 8 << 20;

pub(super) async fn run(args: &CellArgs) -> Result<ExitCode> {
    let code = code(args)?;
    let timeout = args.timeout;
    let ran = match ask(&args.session, SessionAsk::Run { code, timeout }).await? {
        HostAnswer::Ran { ran } => ran,
        other => return Err(unexpected(&other)),
    };
    show(&mut Screen::new(), &ran);
    Ok(ran.code)
}

/// Returns the code to run, which may be on stdin.
pub(super) fn code(args: &CellArgs) -> Result<String> {
    if args.code != "-" {
        return Ok(args.code.clone());
    }
    let mut code = String::new();
    let read = std::io::stdin().lock().take(MAX_CODE).read_to_string(&mut code);
    read.map_err(Error::process("read the code from stdin"))?;
    Ok(code)
}

/// Shows how a cell ended.
pub(super) fn show(screen: &mut Screen, ran: &RanSessionCell) {
    screen.sandbox_stdout(ran.stdout.as_bytes());
    screen.sandbox_stderr(ran.stderr.as_bytes());
    screen.end_cell();
    for output in &ran.outputs {
        screen.show(sanitize::text(output).trim_end());
    }
    for note in &ran.notes {
        screen.tell(sanitize::text(note).trim_end());
    }
}

pub(super) async fn checkpoint(args: &KeepArgs) -> Result<()> {
    let name = args.name.clone();
    let (checkpoint, evicted) = match ask(&args.session, SessionAsk::Checkpoint { name }).await? {
        HostAnswer::Checkpoint { kept } => (kept.checkpoint, kept.evicted),
        other => return Err(unexpected(&other)),
    };
    let mut screen = Screen::new();
    if let Some(evicted) = evicted {
        let note = format!("dropped the oldest checkpoint, {}", named(&evicted));
        screen.tell(&outcome::note(&sanitize::line(&note)));
    }
    screen.show(&sanitize::line(&checkpoint.id));
    Ok(())
}

pub(super) async fn list(session: &SessionId, as_json: bool) -> Result<()> {
    let checkpoints = match ask(session, SessionAsk::Checkpoints).await? {
        HostAnswer::Checkpoints { checkpoints } => checkpoints,
        other => return Err(unexpected(&other)),
    };
    if as_json {
        print(&json!({ "checkpoints": checkpoints }));
        return Ok(());
    }
    let lines: Vec<_> = checkpoints.iter().map(line).collect();
    let text = if lines.is_empty() {
        "no checkpoint; `cellblock session checkpoint` makes one".to_owned()
    } else {
        lines.join("\n")
    };
    Screen::new().show(&text);
    Ok(())
}

pub(super) async fn roll_back(args: &CheckpointArgs) -> Result<()> {
    let checkpoint = args.checkpoint.clone();
    match ask(&args.session, SessionAsk::RollBack { checkpoint }).await? {
        HostAnswer::RolledBack { back } => {
            let note = format!(
                "variables and files are as they were at {}",
                named(&back.checkpoint)
            );
            Screen::new().tell(&outcome::note(&sanitize::line(&note)));
            Ok(())
        }
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn drop_checkpoint(args: &CheckpointArgs) -> Result<()> {
    let checkpoint = args.checkpoint.clone();
    match ask(&args.session, SessionAsk::DropCheckpoint { checkpoint }).await? {
        HostAnswer::Checkpoints { .. } => Ok(()),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn fork(args: &ForkArgs) -> Result<()> {
    let (count, reseed) = (args.count, !args.same_random);
    match ask(&args.session, SessionAsk::Fork { count, reseed }).await? {
        HostAnswer::Forked { ids } => {
            Screen::new().show(&sanitize::text(&ids.join("\n")));
            Ok(())
        }
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn hibernate(session: &SessionId) -> Result<()> {
    match ask(session, SessionAsk::Hibernate).await? {
        HostAnswer::Hibernated { lost } => {
            let told = match (lost.lost_variables, lost.lost_checkpoints) {
                (false, 0) if lost.kept_bytes.is_some() => "variables and files are kept on disk",
                (false, 0) => "files are kept",
                (true, 0) => "files are kept; all variables are gone",
                _ => "files are kept; all variables and checkpoints are gone",
            };
            Screen::new().tell(&outcome::note(told));
            Ok(())
        }
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn ask(session: &SessionId, what: SessionAsk) -> Result<HostAnswer> {
    super::ask_once(session, &HostCommand::Session { what }).await
}

fn named(checkpoint: &Checkpoint) -> String {
    match &checkpoint.name {
        Some(name) => format!("{} ({name})", checkpoint.id),
        None => checkpoint.id.clone(),
    }
}

fn line(it: &Checkpoint) -> String {
    let parent = it.parent.as_ref().map(|parent| format!(", from {parent}"));
    let about = format!(
        "after cell {}{}, {}, about {}",
        it.cell,
        parent.unwrap_or_default(),
        counted(it.files, "file"),
        Size(it.bytes)
    );
    let name = sanitize::line(&named(it));
    format!(
        "{}  {}",
        styled(STRONG, &name),
        styled(FAINT, &sanitize::line(&about))
    )
}
