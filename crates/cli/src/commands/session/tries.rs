//! `cellblock session try`, `keep` and `discard`: cells whose effects count only once they are kept.

use cellblock_interpreter::session::checkpoints::tries::TryChanges;

use super::cells::{ask, code, show};
use crate::args::checkpoint::CellArgs;
use crate::error::Result;
use crate::exit_code::ExitCode;
use crate::render::table::plural;
use crate::render::{Screen, outcome};
use crate::sanitize;
use crate::session::client::unexpected;
use crate::session::wire::{HostAnswer, SessionAsk};
use crate::session_id::SessionId;

pub(super) async fn run(args: &CellArgs) -> Result<ExitCode> {
    let code = code(args)?;
    let timeout = args.timeout;
    let (ran, changes, undecided) = match ask(&args.session, SessionAsk::Try { code, timeout }).await? {
        HostAnswer::Tried {
            ran,
            changes,
            undecided,
        } => (ran, changes, undecided),
        other => return Err(unexpected(&other)),
    };
    let mut screen = Screen::new();
    show(&mut screen, &ran);
    if undecided {
        for line in lines(&changes) {
            screen.tell(&sanitize::line(&line));
        }
        let next = format!(
            "decide with `cellblock session keep {0}` or `cellblock session discard {0}`",
            args.session
        );
        screen.tell(&outcome::note(&sanitize::line(&next)));
    }
    Ok(ran.code)
}

pub(super) async fn decide(session: &SessionId, keep: bool) -> Result<()> {
    let decided = match ask(session, SessionAsk::DecideTry { keep }).await? {
        HostAnswer::DecidedTry { decided } => decided,
        other => return Err(unexpected(&other)),
    };
    let note = if decided.kept {
        format!("the try of cell {} is kept", decided.cell)
    } else {
        format!(
            "variables and files are as they were before cell {}",
            decided.cell
        )
    };
    Screen::new().tell(&outcome::note(&sanitize::line(&note)));
    Ok(())
}

/// Returns a line for each change.
fn lines(changes: &TryChanges) -> Vec<String> {
    let variables = changes.variables.iter();
    let variables = variables.map(|it| format!("{} variable {}", it.change.name(), it.name));
    let files = changes.files.iter();
    let files = files.map(|it| format!("{} {}", it.change.name(), it.path));
    let omitted = (changes.files_omitted > 0).then(|| {
        format!(
            "and {} more {}",
            changes.files_omitted,
            plural(changes.files_omitted, "file")
        )
    });
    variables.chain(files).chain(omitted).collect()
}
