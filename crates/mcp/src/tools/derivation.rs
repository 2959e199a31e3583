//! Results of other tools, recorded under aliases, and what code derives from them.

use cellblock_artifact::ArtifactEnvelope;
use cellblock_interpreter::derivation::{DerivationResult, Envelope};
use cellblock_interpreter::output::ArtifactRef;
use cellblock_interpreter::render::{self, CHARS_PER_TOKEN};
use cellblock_interpreter::toolset::{ToolDefinition, ToolEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Call, schema};
use crate::answer::{CallAnswer, Link};
use crate::refusal::Refusal;
use crate::sessions::{MadeArtifact, Use};
use crate::shared::McpShared;
use crate::uri;

/// Tokens of a recorded result that a model rereads.
const VIEW: usize = 500;

/// A result to record.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Record {
    /// The session's handle; without one a new session is made, and the answer tells its handle.
    #[serde(default)]
    session_id: Option<String>,
    /// The name of the tool that answered it, such as `get_price_history`: the alias begins with it.
    tool: String,
    /// The result, whole: any JSON.
    result: Value,
}

/// A result that was recorded.
#[derive(Debug, Serialize, JsonSchema)]
struct RecordAnswer {
    /// The session's handle.
    session_id: String,
    /// The name under which code finds it, and which contracts name.
    alias: String,
    /// Short description of its contents.
    summary: String,
    /// Its URI, for `resources/read`.
    uri: String,
}

pub(super) fn record_definition() -> ToolDefinition {
    ToolDefinition::new(
        "record_result",
        "Record a tool result",
        "Records what another tool answered, whole, under an alias, for `code_interpreter` and \
         `render_chart` to derive from.",
        schema::read::<Record>(),
        ToolEffect::Adds,
    )
    .returns(schema::written::<RecordAnswer>())
}

pub(super) async fn record(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let Record {
        session_id,
        tool,
        result,
    } = call.read()?;
    if let Some(place) = rounded(&result) {
        return Err(Refusal::new(format!(
            "`result{place}` is a number of more than 64 bits, which lost digits on its way: send numbers \
             of this size as text"
        )));
    }
    let used = call.session(server, session_id.as_deref()).await?;
    let derivation = used.derivation().ok_or_else(|| {
        Refusal::new("this session was made without the derivation toolset: make a new one")
    })?;
    let aliases = derivation.aliases();
    let refuse = |error| Refusal::from(cellblock_interpreter::Error::from(error));
    let entry = aliases.record(&tool, &result).await.map_err(refuse)?;
    let summary = aliases.model_view(&entry.alias, VIEW).map_err(refuse)?;
    derivation.renew_attempts();
    Ok(CallAnswer::of(&RecordAnswer {
        session_id: used.id.clone(),
        uri: uri::dataset(&used.id, &entry.alias),
        alias: entry.alias.clone(),
        summary,
    }))
}

/// Returns the path of the first whole number that JSON readers keep as a float, as they do with integers
/// beyond 64 bits.
fn rounded(value: &Value) -> Option<String> {
    // 2^64, the first integer without an exact form.
    const BEYOND: f64 = 18_446_744_073_709_551_616.0;
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|_| number.is_f64())?;
            (float.abs() >= BEYOND).then(String::new)
        }
        Value::Array(items) => {
            let found = |(at, item)| rounded(item).map(|place| format!("[{at}]{place}"));
            items.iter().enumerate().find_map(found)
        }
        Value::Object(fields) => {
            let found = |(name, item)| rounded(item).map(|place| format!(".{name}{place}"));
            fields.iter().find_map(found)
        }
        _ => None,
    }
}

/// Tells a model what came of a derivation.
pub(super) fn told(server: &McpShared, used: &Use, derived: &DerivationResult) -> CallAnswer {
    let tokens = server.options.max_tokens;
    let mut answer = CallAnswer::default();
    answer.text(derived.for_model(tokens));
    if derived.attempts_left == 0 {
        answer.text(
            "New attempts come with the next result that `record_result` records, and with `reset_session`.",
        );
    }
    let mut links = Vec::new();
    for artifact in &derived.artifacts {
        let (media_type, bytes) = match artifact {
            ArtifactEnvelope::Image(it) => (it.media_type.clone(), it.bytes),
            ArtifactEnvelope::Chart(it) => (cellblock_artifact::CHART.to_owned(), it.bytes),
        };
        let made = MadeArtifact {
            id: artifact.id(),
            name: format!(
                "{}.{}",
                artifact.kind(),
                cellblock_artifact::extension(&media_type)
            ),
            media_type: media_type.clone(),
            bytes,
        };
        links.push(Link::from(&made));
        used.remember(made);
        if let Some(picture) = artifact.picture() {
            if picture.sha256 != artifact.id() {
                let made = MadeArtifact {
                    id: picture.sha256,
                    name: format!(
                        "{}.{}",
                        artifact.kind(),
                        cellblock_artifact::extension(&picture.media_type)
                    ),
                    media_type: picture.media_type.clone(),
                    bytes: picture.bytes,
                };
                links.push(Link::from(&made));
                used.remember(made);
            }
            let image = ArtifactRef {
                sha256: picture.sha256,
                kind: cellblock_artifact::Kind::Image,
                bytes: picture.bytes,
                media_type: picture.media_type,
            };
            answer.picture(&image);
        }
    }
    answer.structured(&bounded(derived.envelope(), &used.id, tokens));
    for link in &links {
        answer.text(link.line("output"));
        answer.link(link);
    }
    answer.text(format!("[session_id] {}", used.id));
    if !derived.ok() {
        answer.incomplete();
    }
    if !derived.ok() && derived.execution.is_none() {
        answer.fail();
    }
    answer
}

/// The envelope within a budget: what is long is cut or left to the resources.
fn bounded(mut envelope: Envelope, session: &str, tokens: usize) -> Value {
    let room = tokens * CHARS_PER_TOKEN / 4;
    let stdout = render::stream(&envelope.stdout.join("\n"), tokens / 4);
    envelope.stdout = stdout.lines().map(str::to_owned).collect();
    envelope.stderr = render::stream(&envelope.stderr, tokens / 8);
    if envelope
        .result
        .as_ref()
        .is_some_and(|it| it.to_string().len() > room)
    {
        envelope.result = None;
        let more = "the result is too long to be repeated here: derive further from its alias";
        envelope.note = Some(
            envelope
                .note
                .map_or_else(|| more.to_owned(), |note| format!("{note}; {more}")),
        );
    }
    for artifact in &mut envelope.artifacts {
        let uri = uri::artifact(artifact.id());
        match artifact {
            ArtifactEnvelope::Image(image) => image.url = uri,
            ArtifactEnvelope::Chart(chart) => {
                chart.url = uri;
                if let Some(picture) = &mut chart.picture {
                    picture.url = uri::artifact(picture.sha256);
                }
                if chart.data.to_string().len() > room {
                    chart.data = Value::Null;
                }
            }
        }
    }
    let mut value = json!(envelope);
    value["session_id"] = session.into();
    value
}
