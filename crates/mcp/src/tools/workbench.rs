//! The workbench's tools, over the sandbox of a session's cells.

use cellblock_artifact::ArtifactId;
use cellblock_interpreter::output::ArtifactRef;
use cellblock_interpreter::render::{self, CHARS_PER_TOKEN};
use cellblock_interpreter::workbench::{Workbench, WorkbenchEvent};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::{Call, Definition, Effect, Tool, schema};
use crate::answer::{Answer, Link};
use crate::options::Options;
use crate::refusal::Refusal;
use crate::resources::{media_type, uri};
use crate::server::Shared;
use crate::sessions::{Made, Use};

/// Seconds that a command has which does not say how long it needs.
const DEFAULT_SECONDS: f64 = 60.0;

pub(super) fn definition(tool: Tool, options: &Options) -> Definition {
    let (title, required, effect) = match tool {
        Tool::SandboxEditFile => ("Edit a file", true, Effect::Changes),
        Tool::SandboxWriteFile => ("Write a file", false, Effect::Settles),
        _ => ("Run a command", false, Effect::Changes),
    };
    let known = Workbench::definitions()
        .into_iter()
        .find(|it| it.name == tool.name());
    let (description, input, output) = known
        .map(|it| (it.description, it.input_schema, it.output_schema))
        .unwrap_or_default();
    let mut input = schema::with_session(input, required);
    if let Some(timeout) = input["properties"].get_mut("timeout") {
        let most = options.max_cell_time.as_secs_f64();
        for bound in ["maximum", "default"] {
            if timeout[bound].as_f64().is_some_and(|bound| bound > most) {
                timeout[bound] = json!(most);
            }
        }
    }
    Definition {
        title,
        description: description.into(),
        input,
        output: schema::telling_session(output),
        effect,
    }
}

pub(super) async fn call(tool: Tool, server: &Shared, call: &mut Call) -> Result<Answer, Refusal> {
    let mut arguments = call.arguments.take();
    let handle = handle(tool, &mut arguments)?;
    if tool == Tool::SandboxExec {
        time(&mut arguments, &server.options)?;
    }
    let used = call.session(server, handle.as_deref()).await?;
    let _turn = call.turn(&used).await?;
    let _permit = call.permit(server).await?;
    let mut events = used.workbench.events();
    let work = used.until(call.stop.cancelled(), used.workbench.call(tool.name(), arguments));
    tokio::pin!(work);
    let mut pictures = Vec::new();
    let mut note = |event| match event {
        WorkbenchEvent::Stdout(bytes) | WorkbenchEvent::Stderr(bytes) => call.progress.wrote(&bytes),
        WorkbenchEvent::Visualization {
            path,
            sha256,
            media_type,
        } => pictures.push((path.to_string_lossy().into_owned(), sha256, media_type)),
    };
    let result = loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Ok(event) => note(event),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break work.await,
            },
            result = &mut work => break result,
        }
    };
    while let Ok(event) = events.try_recv() {
        note(event);
    }
    told(server, &used, result?, pictures).await
}

/// Takes the session's handle out of the arguments.
fn handle(tool: Tool, arguments: &mut Value) -> Result<Option<String>, Refusal> {
    let taken = arguments
        .as_object_mut()
        .and_then(|fields| fields.remove("session"));
    match taken {
        Some(Value::String(handle)) => Ok(Some(handle)),
        None | Some(Value::Null) if tool == Tool::SandboxEditFile => Err(Refusal::new(
            "`session` is missing: give the handle of the session that has the file",
        )),
        None | Some(Value::Null) => Ok(None),
        Some(_) => Err(Refusal::new("`session` is no text: give the handle of a session")),
    }
}

/// Bounds a command's time as the operator has it. What is no time is told by the toolset.
fn time(arguments: &mut Value, options: &Options) -> Result<(), Refusal> {
    let most = options.max_cell_time.as_secs_f64();
    match &arguments["timeout"] {
        Value::Null if most < DEFAULT_SECONDS => arguments["timeout"] = json!(most),
        given => {
            if let Some(seconds) = given.as_f64()
                && seconds > most
            {
                return Err(Refusal::new(format!(
                    "`timeout` is {seconds}: give more than 0 and at most {most} seconds"
                )));
            }
        }
    }
    Ok(())
}

/// Shows a stream within so many tokens; what is left out can be had in the sandbox.
fn shorten(result: &mut Value, stream: &str, tokens: usize) {
    let Some(written) = result[stream].as_str() else {
        return;
    };
    let shown = render::stream(written, tokens);
    if written.chars().nth(tokens * CHARS_PER_TOKEN).is_some() {
        result[format!("{stream}_truncated")] = true.into();
    }
    result[stream] = shown.into();
}

async fn told(
    server: &Shared,
    used: &Use,
    mut result: Value,
    pictures: Vec<(String, String, String)>,
) -> Result<Answer, Refusal> {
    let refused = result["success"] == false;
    result["session"] = used.id.clone().into();
    let files: Vec<_> = result["output_files"].as_array().into_iter().flatten().collect();
    let links: Vec<_> = files
        .into_iter()
        .filter_map(Value::as_str)
        .map(|name| Link {
            uri: uri::file(&used.id, &format!("/tmp/output/{name}")),
            name: name.to_owned(),
            media_type: media_type(name).to_owned(),
            bytes: None,
        })
        .collect();
    shorten(&mut result, "stdout", server.options.tokens / 2);
    shorten(&mut result, "stderr", server.options.tokens / 4);
    let mut answer = Answer::of(&result);
    let store = server.engine.get().await?.store();
    for (name, sha256, media_type) in pictures {
        let Ok(id) = sha256.parse::<ArtifactId>() else {
            continue;
        };
        let Ok(known) = store.metadata(id).await else {
            continue;
        };
        used.remember(Made {
            id,
            name,
            media_type: media_type.clone(),
            bytes: known.bytes,
        });
        // A drawing can hold scripts, and models do not see it.
        if media_type != "image/svg+xml" {
            let image = ArtifactRef {
                sha256: id,
                kind: known.kind,
                bytes: known.bytes,
                media_type,
            };
            answer.picture(store, &image).await;
        }
    }
    for link in &links {
        answer.link(link);
    }
    if refused {
        answer.fail();
    }
    Ok(answer)
}
