//! Fields and items of OpenAI's API that are known and not served. Each is rejected by its name, with
//! the alternative, because ignoring it would change the answer.

use super::fields::{Fields, RequestFields as _};
use crate::wire::error::ApiError;

/// Code of the errors.
const CODE: &str = "unsupported_parameter";

/// Fields of a request.
const FIELDS: [(&str, &str); 1] = [(
    "prompt",
    "there are no stored prompts here; send `instructions` and `input`",
)];

/// Types of input items.
const ITEMS: [(&str, &str); 8] = [
    ("additional_tools", "list its tools in the request's `tools`"),
    (
        "compaction_trigger",
        "it can only be the last item of a request's `input`",
    ),
    (
        "computer_call",
        "there is no such tool here; leave it and its output out",
    ),
    (
        "computer_call_output",
        "there is no such tool here; leave it and its call out",
    ),
    (
        "configuration_update",
        "it can only be in a request's `input`; set `reasoning` and `text` of the request",
    ),
    (
        "file_search_call",
        "there is no such tool here; leave the item out, or send its results as text",
    ),
    (
        "image_generation_call",
        "there is no such tool here; leave the item out, or send its result as `input_image`",
    ),
    (
        "web_search_call",
        "there is no such tool here; leave the item out, or send its results as text",
    ),
];

/// Rejects fields of a request.
pub(super) fn fields(fields: &Fields<'_>) -> Result<(), ApiError> {
    for (key, instead) in FIELDS {
        if fields.get(key).is_some() {
            return Err(fields.invalid(key, CODE, &format!("is not supported: {instead}")));
        }
    }
    moderation(fields)
}

/// Returns the error for an item of a known type.
pub(super) fn item(fields: &Fields<'_>, kind: &str) -> Option<ApiError> {
    let (_, instead) = ITEMS.iter().find(|(known, _)| *known == kind)?;
    let reason = format!("is `{kind}`, which is not supported: {instead}");
    Some(fields.invalid("type", CODE, &reason))
}

/// Rejects calls that are answered after other turns.
pub(super) fn asynchronous(fields: &Fields<'_>) -> Result<(), ApiError> {
    if fields.flag("async")? != Some(true) {
        return Ok(());
    }
    let reason = "is not supported: calls are answered in the next request; leave it out";
    Err(fields.invalid("async", CODE, reason))
}

/// Rejects a policy that blocks: texts are neither scored nor blocked here.
fn moderation(fields: &Fields<'_>) -> Result<(), ApiError> {
    let Some(moderation) = fields.fields("moderation")? else {
        return Ok(());
    };
    let Some(policy) = moderation.fields("policy")? else {
        return Ok(());
    };
    for key in ["input", "output"] {
        let Some(rule) = policy.fields(key)? else { continue };
        match rule.required("mode")?.as_str() {
            "score" => {}
            "block" => {
                let reason = "is `block`, which is not supported: nothing is moderated here; leave \
                              `moderation` out, and check texts in the application";
                return Err(rule.invalid("mode", CODE, reason));
            }
            other => return Err(rule.unknown("mode", other, "`score`")),
        }
    }
    Ok(())
}
