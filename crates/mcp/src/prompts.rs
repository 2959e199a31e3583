//! Prompts: for each toolset the section that tells a model how to work with it.

use cellblock_interpreter::derivation::prompt::{AliasLine, PromptSettings, prompt_section};
use cellblock_interpreter::workbench::Workbench;
use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

use crate::options::Toolset;
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::server::Shared;
use crate::sessions::Use;

/// Seconds that the workbench's own text says a command may have.
const TOLD_SECONDS: f64 = 300.0;

const INTERPRETER: &str = "## Python (run_python)\n\n\
    - `run_python` runs a cell of Python in an isolated sandbox without network. The value of a trailing expression is shown, as in a \
    notebook; so are figures that are open at the end. Print only what you need to read.\n\
    - The first answer tells a session's handle. Pass it as `session` in all later calls: variables and files stay there. Without it every \
    call begins anew.\n\
    - Put data into the session with `upload_file` (it is found below /workspace), or work with the datasets in /tmp/data. The user's own \
    files are not visible.\n\
    - Write results below /workspace: each answer names new files and links to them.\n\
    - Code that raises is answered with its line and what to try. What ran before it is kept: correct the rest and go on.\n\
    - Close a session that is not needed any more with `close_session`.";

/// The prompts of these toolsets.
pub(crate) fn list(server: &Shared) -> Vec<Prompt> {
    let toolsets = server.options.toolsets.iter();
    let prompts = toolsets.map(|toolset| {
        let argument = PromptArgument::new("session")
            .with_description("A session's handle: the text then tells of its data.")
            .with_required(false);
        Prompt::new(name(*toolset), Some(description(*toolset)), Some(vec![argument]))
    });
    prompts.collect()
}

/// One of them.
pub(crate) async fn get(
    server: &Shared,
    owner: &Owner,
    wanted: &str,
    arguments: Option<&JsonObject>,
) -> Result<GetPromptResult, ErrorData> {
    let toolset = server
        .options
        .toolsets
        .iter()
        .find(|toolset| name(**toolset) == wanted);
    let Some(toolset) = toolset else {
        let names: Vec<_> = server.options.toolsets.iter().map(|it| name(*it)).collect();
        let told = format!("there is no prompt `{wanted}`; there are {}", names.join(", "));
        return Err(ErrorData::invalid_params(told, None));
    };
    let session = match arguments.and_then(|fields| fields.get("session")) {
        None | Some(Value::Null) => None,
        Some(Value::String(handle)) => {
            let refuse = |refusal: Refusal| ErrorData::invalid_params(refusal.message, None);
            Some(server.sessions.find(owner, handle).map_err(refuse)?)
        }
        Some(_) => return Err(ErrorData::invalid_params("`session` is no text", None)),
    };
    let text = match toolset {
        Toolset::Interpreter => interpreter(session.as_ref()),
        Toolset::Workbench => workbench(server, session.as_ref()),
        Toolset::Derivation => derivation(server, session.as_ref()).await?,
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(description(*toolset)))
}

const fn name(toolset: Toolset) -> &'static str {
    match toolset {
        Toolset::Interpreter => "interpreter",
        Toolset::Workbench => "workbench",
        Toolset::Derivation => "derivation",
    }
}

const fn description(toolset: Toolset) -> &'static str {
    match toolset {
        Toolset::Interpreter => "How to work with run_python, sessions and files",
        Toolset::Workbench => "How to work with scripts and commands",
        Toolset::Derivation => "How to derive from the results of other tools, under a contract",
    }
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

fn workbench(server: &Shared, session: Option<&Use>) -> String {
    let most = server.options.max_cell_time;
    let datasets: Vec<_> = server
        .options
        .datasets
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let (text, handle) = match session {
        Some(used) => (used.workbench.prompt(), format!("`{}`", used.id)),
        None => (
            Workbench::prompt_without_session(most, &datasets),
            "the handle that the first answer tells".to_owned(),
        ),
    };
    let time = if session.is_some() && most.as_secs_f64() < TOLD_SECONDS {
        let most = most.as_secs_f64();
        format!("\n- Whatever else is said of time: a command has {most} s at most here.")
    } else {
        String::new()
    };
    format!("{text}\n**SESSION**\n- Pass {handle} as `session` in every call: files stay there.{time}")
}

async fn derivation(server: &Shared, session: Option<&Use>) -> Result<String, ErrorData> {
    // Which libraries there are is known once there is an image.
    let interpreter = server.engine.get().await;
    let interpreter = interpreter.map_err(|refusal| ErrorData::internal_error(refusal.message, None))?;
    let mut lines = Vec::new();
    for aliases in session.into_iter().filter_map(|used| used.aliases.as_ref()) {
        for alias in aliases.aliases() {
            let summary = aliases.summary(&alias).unwrap_or_default();
            lines.push(AliasLine { alias, summary });
        }
    }
    let section = prompt_section(&PromptSettings {
        libraries: &interpreter.libraries(),
        aliases: &lines,
        ..PromptSettings::default()
    });
    Ok(format!(
        "{section}\n\nRecord what other tools answer with `record_result`, which gives it its alias, and pass the same `session` in every call. \
         Each recorded result, and `reset_session`, gives back all failed attempts."
    ))
}
