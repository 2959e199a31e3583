//! Prompts: for each toolset the section that tells a model how to work with it.

use cellblock_interpreter::connector::{CATALOG_TOKENS, catalog};
use cellblock_interpreter::skill::announced;
use cellblock_interpreter::toolset::{ToolsetKind, python};
use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

use crate::refusal::Refusal;
use crate::sessions::Use;
use crate::shared::McpShared;
use crate::tools::arguments::{EARLIER, SESSION};
use cellblock_interpreter::hosting::Owner;

const INTERPRETER: &str = "## Python (run_python)\n\n\
                           - `run_python` runs a cell of Python in an isolated sandbox without network. \
                           The value of a trailing expression is shown, as in a notebook; so are figures \
                           that are open at the end. Print only what you need to read.\n\
                           - The first answer tells a session's handle. Pass it as `session_id` in all \
                           later calls: variables and files stay there. Without it every call begins \
                           anew.\n\
                           - Put data into the session with `upload_file` (it is found below /workspace), \
                           or work with the datasets in /tmp/data. The user's own files are not visible.\n\
                           - Write results below /workspace: each answer names new files; `download_file` \
                           reads them.\n\
                           - Code that raises is answered with its line and what to try. What ran before \
                           it is kept: correct the rest and go on.\n\
                           - Close a session that is not needed any more with `close_session`.";

/// The prompts of these toolsets.
pub(crate) fn list(server: &McpShared) -> Vec<Prompt> {
    let toolsets = server.options.toolsets.iter();
    let prompts = toolsets.map(|toolset| {
        let argument = PromptArgument::new(SESSION)
            .with_description("A session's handle: the text then tells of its data.")
            .with_required(false);
        Prompt::new(toolset.name, Some(toolset.about), Some(vec![argument]))
    });
    prompts.collect()
}

/// One of them.
pub(crate) async fn get(
    server: &McpShared,
    owner: &Owner,
    wanted: &str,
    arguments: Option<&JsonObject>,
) -> Result<GetPromptResult, ErrorData> {
    let toolsets = &server.options.toolsets;
    let Some(toolset) = toolsets.iter().find(|toolset| toolset.name == wanted) else {
        let names: Vec<_> = toolsets.iter().map(|it| it.name).collect();
        let told = format!("there is no prompt `{wanted}`; there are {}", names.join(", "));
        return Err(ErrorData::invalid_params(told, None));
    };
    let given = arguments.and_then(|fields| fields.get(SESSION).or_else(|| fields.get(EARLIER)));
    let session = match given {
        None | Some(Value::Null) => None,
        Some(Value::String(handle)) => {
            let refuse = |refusal: Refusal| ErrorData::invalid_params(refusal.message, None);
            let found = server.sessions.of_owner(owner, handle);
            Some(found.map_err(refuse)?)
        }
        Some(_) => return Err(ErrorData::invalid_params("`session_id` must be a string", None)),
    };
    let mut text = if *toolset == python::KIND {
        interpreter(session.as_ref())
    } else {
        section(server, owner, *toolset, session.as_ref()).await?
    };
    if let Some(skills) = skills(server, owner, session.as_ref()).await? {
        text.push_str("\n\n");
        text.push_str(&skills);
    }
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(toolset.about))
}

/// Announces the skills of a session, or those that the next one has.
async fn skills(
    server: &McpShared,
    owner: &Owner,
    session: Option<&Use>,
) -> Result<Option<String>, ErrorData> {
    if let Some(used) = session {
        return Ok(announced(used.session.skills()));
    }
    let skills = server.options.skills(owner).await;
    let skills = skills.map_err(|denied| ErrorData::internal_error(denied.0, None))?;
    Ok(announced(&skills))
}

fn interpreter(session: Option<&Use>) -> String {
    let mut text = INTERPRETER.to_owned();
    if let Some(used) = session {
        text.push_str("\n\nThe session: `");
        text.push_str(&used.id);
        text.push('`');
        for dataset in &used.datasets {
            text.push_str("\n- dataset `");
            text.push_str(&dataset.path);
            text.push('`');
        }
    }
    text
}

/// The toolset's own section, and how it is used in sessions.
async fn section(
    server: &McpShared,
    owner: &Owner,
    toolset: ToolsetKind,
    session: Option<&Use>,
) -> Result<String, ErrorData> {
    let text = if let Some(opened) = session.and_then(|used| used.toolset(toolset)) {
        opened.prompt()
    } else {
        let mut terms = server.options.terms("");
        if toolset.on_results {
            // Which libraries there are is known once there is an image.
            let refuse = |refusal: Refusal| ErrorData::internal_error(refusal.message, None);
            terms.libraries = server.engine.get().await.map_err(refuse)?.libraries();
        }
        let text = (toolset.prompt)(&terms);
        if !toolset.runs_cells() {
            // Neither commands nor code that derives from results can call connectors.
            return Ok(used_in_sessions(toolset, session, &text));
        }
        let functions = server.options.connectors(owner).await;
        let functions = functions.map_err(|denied| ErrorData::internal_error(denied.0, None))?;
        let functions = catalog(&functions, CATALOG_TOKENS).await;
        format!("{text}\n\n{functions}").trim_end().to_owned()
    };
    Ok(used_in_sessions(toolset, session, &text))
}

/// Adds how a toolset is used in sessions.
fn used_in_sessions(toolset: ToolsetKind, session: Option<&Use>, text: &str) -> String {
    if toolset.on_results {
        return format!(
            "{text}\n\nRecord what other tools answer with `record_result`, which gives it its alias, and \
             pass the same `session_id` in every call. Each recorded result, and `reset_session`, gives \
             back all failed attempts."
        );
    }
    let handle = session.map_or_else(
        || "the handle that the first answer tells".to_owned(),
        |used| format!("`{}`", used.id),
    );
    format!("{text}\n**SESSION**\n- Pass {handle} as `session_id` in every call: files stay there.")
}
