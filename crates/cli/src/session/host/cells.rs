//! Answers of a host about the cells and checkpoints of its session.

use std::time::Duration;

use cellblock_interpreter::render::{self, Detail};
use cellblock_interpreter::{Cell, Execution, Session};

use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::render::outcome;
use crate::session::wire::{HostAnswer, RanSessionCell, SessionAsk};

/// Room for the text of an output.
const TOKENS: usize = 4000;

/// Does it.
pub(super) async fn answer(session: &Session, ask: SessionAsk) -> Result<HostAnswer> {
    Ok(match ask {
        SessionAsk::Run { code, timeout } => {
            let ran = Box::new(ran(&session.execute(cell(code, timeout)).await?));
            HostAnswer::Ran { ran }
        }
        SessionAsk::Try { code, timeout } => {
            let tried = session.try_run(cell(code, timeout)).await?;
            HostAnswer::Tried {
                ran: Box::new(ran(&tried.execution)),
                changes: Box::new(tried.changes),
                undecided: tried.undecided,
            }
        }
        SessionAsk::DecideTry { keep } => HostAnswer::DecidedTry {
            decided: session.decide_try(keep).await?,
        },
        SessionAsk::Checkpoint { name } => HostAnswer::Checkpoint {
            kept: Box::new(session.checkpoint(name).await?),
        },
        SessionAsk::Checkpoints => HostAnswer::Checkpoints {
            checkpoints: session.checkpoints().await?,
        },
        SessionAsk::RollBack { checkpoint } => HostAnswer::RolledBack {
            back: Box::new(session.roll_back(checkpoint).await?),
        },
        SessionAsk::Hibernate => HostAnswer::Hibernated {
            lost: session.hibernate().await?,
        },
        // Needs more than the session.
        SessionAsk::Fork { .. } => return Err(Error::Refused("fork a session elsewhere".to_owned())),
        SessionAsk::DropCheckpoint { checkpoint } => {
            session.drop_checkpoint(checkpoint).await?;
            HostAnswer::Checkpoints {
                checkpoints: session.checkpoints().await?,
            }
        }
    })
}

fn cell(code: String, timeout: Option<Duration>) -> Cell {
    let cell = Cell::new(code);
    match timeout {
        Some(timeout) => cell.with_timeout(timeout),
        None => cell,
    }
}

fn ran(execution: &Execution) -> RanSessionCell {
    let outputs = execution.outputs.iter();
    // The command that shows them takes every control character for one of the sandbox.
    let mut notes = outcome::omissions(execution);
    notes.extend(outcome::ending(execution));
    for note in &mut notes {
        *note = anstream::adapter::strip_str(note).to_string();
    }
    RanSessionCell {
        stdout: execution.stdout.text.clone(),
        stderr: execution.stderr.text.clone(),
        outputs: outputs
            .map(|output| render::text(output, Detail::Full, TOKENS))
            .collect(),
        notes,
        code: ExitCode::of_outcome(&execution.outcome),
    }
}
