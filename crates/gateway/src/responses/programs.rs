//! Programs that wait for outputs of their calls: what they are, is in the conversation, so that they run
//! again in any gateway that has the key of their fingerprints.

use std::sync::Arc;

use cellblock_agent::turn::{ProgramSeal, ProgramStart};
use cellblock_agent::wire::{ApiError, Item, ResponseRequest, Tool, paused_programs};

use crate::records::whereabouts::Lead;
use crate::state::responses::Seal;
use crate::state::{Caller, Gateway};

/// Seal of the programs of one owner.
struct OwnerSeal {
    gateway: Gateway,
    owner: String,
}

impl OwnerSeal {
    fn key(&self) -> Option<&Seal> {
        self.gateway.responses.seal.get()
    }
}

impl ProgramSeal for OwnerSeal {
    fn seal(&self, call_id: &str, code: &str, start: &ProgramStart) -> Option<String> {
        self.key()?.close_program(&self.owner, call_id, code, start).ok()
    }

    fn open(&self, call_id: &str, code: &str, fingerprint: &str) -> Option<ProgramStart> {
        self.key()?.open_program(&self.owner, call_id, code, fingerprint)
    }
}

/// Returns the seal of the programs of a request.
pub(super) async fn seal(
    gateway: &Gateway,
    owner: &str,
    request: &ResponseRequest,
) -> Result<Arc<dyn ProgramSeal>, ApiError> {
    if request.tools.iter().any(Tool::is_programs) {
        // Made here, because its key comes from the records.
        Seal::of(gateway).await?;
    }
    Ok(Arc::new(OwnerSeal {
        gateway: gateway.clone(),
        owner: owner.to_owned(),
    }))
}

/// Checks that the programs of a conversation that wait can run again, and adds what leads to their
/// containers.
pub(super) async fn leads(
    gateway: &Gateway,
    caller: &Caller,
    request: &ResponseRequest,
    parts: [&[Item]; 2],
    mut leads: Vec<Lead>,
) -> Result<Vec<Lead>, ApiError> {
    // Most conversations have none, and are not copied.
    let is_program = |item: &Item| matches!(item, Item::Program(_));
    if !parts.iter().any(|part| part.iter().any(is_program)) {
        return Ok(leads);
    }
    let conversation = parts.concat();
    let paused = paused_programs(&conversation);
    let mut calls = paused.iter().flat_map(|paused| &paused.calls);
    // The check of calls and their outputs names a call without one better than an error here would.
    let lacks_output = calls.any(|(_, output)| output.is_none());
    let Some(first) = paused.first().filter(|_| !lacks_output) else {
        return Ok(leads);
    };
    let id = &first.program.call_id;
    let invalid = |code, message| Err(ApiError::invalid("input", code, message));
    if !request.tools.iter().any(Tool::is_programs) {
        let message = format!(
            "the program `{id}` waits for outputs of its calls; send them in a request for a response with \
             `tools` that have `programmatic_tool_calling` and the program's functions"
        );
        return invalid("invalid_value", message);
    }
    let begins = conversation
        .iter()
        .position(|item| matches!(item, Item::Program(program) if program.call_id == *id));
    let rest = conversation.iter().skip(begins.unwrap_or_default());
    if rest.clone().any(|item| matches!(item, Item::Message(_))) {
        let message = format!(
            "the program `{id}` waits for outputs of its calls: send only these now, and the rest after the \
             next response"
        );
        return invalid("invalid_value", message);
    }
    let seal = seal(gateway, &caller.owner, request).await?;
    for program in paused.iter().map(|paused| &paused.program) {
        let Some(start) = seal.open(&program.call_id, &program.code, &program.fingerprint) else {
            let message = format!(
                "the `fingerprint` of the program `{}` was not made by this gateway for you, or the program \
                 was changed; send the item as it was",
                program.call_id
            );
            return invalid("invalid_fingerprint", message);
        };
        leads.push(Lead::Container(start.container));
    }
    Ok(leads)
}
