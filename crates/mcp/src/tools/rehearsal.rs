//! Cells whose code can make calls that need approval: they are rehearsed, and a person is asked.

use cellblock_interpreter::session::checkpoints::rehearsals::Rehearsal;
use cellblock_interpreter::text::counted;
use cellblock_interpreter::toolset::python;
use cellblock_interpreter::{Cell, Execution};
use serde_json::Value;

use super::Call;
use crate::answer::{self, CallAnswer};
use crate::asking::{ApprovalDecision, ClientAsker};
use crate::refusal::Refusal;
use crate::sessions::Use;
use crate::shared::McpShared;

/// Returns whether a call's code has to be rehearsed, and its client can be asked. Code of other
/// clients runs, and its calls that need approval fail.
pub(super) async fn is_due(call: &Call, used: &Use) -> Result<bool, Refusal> {
    Ok(call.asker.can_ask() && used.session.needs_rehearsal().await?)
}

/// Rehearses code, asks for approval, and runs it.
pub(super) async fn run(
    server: &McpShared,
    call: &mut Call,
    used: &Use,
    arguments: Value,
) -> Result<CallAnswer, Refusal> {
    let code = python::read(arguments, server.options.max_cell_timeout)?;
    let rehearsal = rehearse(server, call, used, code.clone()).await?;
    if !rehearsal.can_be_approved() {
        let kept = rehearsal.kept;
        let mut answer = told(server, used, &rehearsal.execution);
        if !kept {
            answer.text(rehearsal.note());
        }
        return Ok(answer);
    }
    let decision = tokio::select! {
        decision = call.asker.ask(question(&rehearsal)) => decision,
        () = call.stop.cancelled() => return Err(Refusal::cancelled()),
    };
    call.asker = ClientAsker::Nobody;
    let why = match decision {
        ApprovalDecision::Approved => {
            let approved = Cell {
                approved: Some(rehearsal.writes),
                ..code
            };
            let _permit = call.permit(server).await?;
            let work = used.session.execute(approved);
            let execution = used.until(call.stop.cancelled(), work).await?;
            return Ok(told(server, used, &execution));
        }
        ApprovalDecision::Denied(None) => "the user denied the calls that it would make".to_owned(),
        ApprovalDecision::Denied(Some(reason)) => {
            format!("the user denied the calls that it would make, for this reason: {reason}")
        }
        ApprovalDecision::Unanswered => {
            "the user was asked to approve the calls that it would make, and did not answer".to_owned()
        }
    };
    Err(Refusal::new(format!(
        "the code was not run, and nothing was written: {why}"
    )))
}

async fn rehearse(server: &McpShared, call: &Call, used: &Use, code: Cell) -> Result<Rehearsal, Refusal> {
    // Others may run code while a person decides.
    let _permit = call.permit(server).await?;
    let work = used.session.rehearse(code);
    Ok(used.until(call.stop.cancelled(), work).await?)
}

fn told(server: &McpShared, used: &Use, execution: &Execution) -> CallAnswer {
    used.count_cell();
    answer::told(used, execution, server.options.max_tokens)
}

fn question(rehearsal: &Rehearsal) -> String {
    format!(
        "Code of the model wants to make {} that {} something outside of its sandbox. It was rehearsed, \
         and nothing has been written yet. If you approve, the code runs and can make these calls and no \
         others:\n{}",
        counted(rehearsal.writes.len(), "call"),
        if rehearsal.writes.len() == 1 {
            "changes"
        } else {
            "change"
        },
        rehearsal.list()
    )
}
