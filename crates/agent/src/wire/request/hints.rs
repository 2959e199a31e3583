//! Fields that are hints for a provider or a queue. Their values are checked, and nothing that a client
//! can observe depends on the others.

use super::fields::{Fields, RequestFields as _};
use crate::wire::error::ApiError;
use crate::wire::prompt_cache::{PromptCache, PromptCacheOptions};

/// Hints that have no effect here, each an object.
const WITHOUT_EFFECT: [&str; 3] = ["access_programs", "image", "stream_options"];

/// Checks hints that have no effect here. Background responses start as soon as possible, whatever
/// window they allow.
pub(super) fn check(fields: &Fields<'_>) -> Result<(), ApiError> {
    for key in WITHOUT_EFFECT {
        fields.fields(key)?;
    }
    let Some(options) = fields.fields("background_options")? else {
        return Ok(());
    };
    options.text("continuation_id")?;
    match options.text("completion_window")?.as_deref() {
        None | Some("soonest") => Ok(()),
        Some(window @ ("2h" | "8h")) => {
            let background = fields.flag("background")?.unwrap_or(false);
            if background && !fields.flag("stream")?.unwrap_or(false) {
                return Ok(());
            }
            let reason =
                format!("is `{window}`, which requires `background: true` and no `stream`; use `soonest`");
            Err(options.invalid("completion_window", "invalid_value", &reason))
        }
        Some(other) => Err(options.unknown("completion_window", other, "`soonest`, `2h` or `8h`")),
    }
}

/// Parses the hints for the cache of prompts.
pub(super) fn prompt_cache(fields: &Fields<'_>) -> Result<PromptCache, ApiError> {
    let retention = one_of(fields, "prompt_cache_retention", &["in_memory", "24h"])?;
    let options = fields.fields("prompt_cache_options")?;
    Ok(PromptCache {
        retention,
        options: options.map_or(Ok(None), |options| cache_options(&options))?,
    })
}

fn cache_options(options: &Fields<'_>) -> Result<Option<PromptCacheOptions>, ApiError> {
    let mode = one_of(options, "mode", &["implicit", "explicit"])?;
    let ttl = one_of(options, "ttl", &["30m", "12h"])?;
    // No diagnostics are returned, so it is compared with nothing.
    options.text("comparison_response_id")?;
    let prewarm = options.flag("prewarm")?;
    if mode.is_none() && ttl.is_none() && prewarm.is_none() {
        return Ok(None);
    }
    Ok(Some(PromptCacheOptions {
        mode: mode.unwrap_or_else(|| "implicit".to_owned()),
        ttl: ttl.unwrap_or_else(|| "30m".to_owned()),
        prewarm: prewarm.unwrap_or(false),
    }))
}

fn one_of(fields: &Fields<'_>, key: &str, known: &[&str; 2]) -> Result<Option<String>, ApiError> {
    let value = fields.text(key)?;
    if let Some(other) = &value
        && !known.contains(&other.as_str())
    {
        let [one, two] = known;
        return Err(fields.unknown(key, other, &format!("`{one}` or `{two}`")));
    }
    Ok(value)
}
