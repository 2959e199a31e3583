//! Results of tools that are JSON.

use cellblock_artifact::ArtifactId;
use cellblock_interpreter::output::ArtifactRef;
use cellblock_interpreter::render::{self, CHARS_PER_TOKEN};
use serde_json::{Value, json};

use crate::answer::{CallAnswer, Link};
use crate::refusal::Refusal;
use crate::sessions::{MadeArtifact, Use};
use crate::shared::McpShared;
use crate::uri::{self, media_type};

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

/// Tells a model the result, with the pictures that commands left.
pub(super) async fn told(
    server: &McpShared,
    used: &Use,
    mut result: Value,
    pictures: Vec<(String, String, String)>,
) -> Result<CallAnswer, Refusal> {
    let refused = result["success"] == false;
    result["session_id"] = used.id.clone().into();
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
    if !links.is_empty() {
        result["resources"] = json!(links);
    }
    shorten(&mut result, "stdout", server.options.max_tokens / 2);
    shorten(&mut result, "stderr", server.options.max_tokens / 4);
    let mut answer = CallAnswer::of(&result);
    let store = server.engine.get().await?.store();
    for (name, sha256, media_type) in pictures {
        let Ok(id) = sha256.parse::<ArtifactId>() else {
            continue;
        };
        let Ok(known) = store.metadata(id).await else {
            continue;
        };
        used.remember(MadeArtifact {
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
            answer.picture(&image);
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
