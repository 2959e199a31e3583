//! The functions of connectors in few words, for a prompt.

use std::fmt::Write as _;
use std::sync::Arc;

use cellblock_protocol::text::counted;
use serde_json::Value;

use super::{Bundle, Card, Connector, GrantTerms, Grants};

/// Tokens that the list of functions may have in a prompt.
pub const CATALOG_TOKENS: usize = 2000;
/// Characters of a token, on average.
const TOKEN_CHARS: usize = 4;
/// Maximum number of characters of a function's description.
const ABOUT: usize = 120;

/// Returns the section of a system prompt that lists the functions, within about so many tokens.
/// Asks the connectors for them; an empty text means that there are no connectors.
pub async fn catalog(connectors: &[Arc<dyn Connector>], tokens: usize) -> String {
    let bundles = Grants::new(connectors, GrantTerms::default()).bundles().await;
    written(&bundles, tokens.saturating_mul(TOKEN_CHARS))
}

fn written(bundles: &[Bundle], chars: usize) -> String {
    if bundles.is_empty() {
        return String::new();
    }
    let mut text = "Code can call these functions; their results are Python values. Combine calls and \
                    print only what you need: what you do not print does not enter your context. Errors \
                    are typed, such as `cellblock.RateLimitError`. `help(f)` shows parameters, \
                    `connectors.search(\"words\")` finds functions.\n"
        .to_owned();
    for bundle in bundles {
        let mut left = bundle.functions.len();
        for card in &bundle.functions {
            let line = line(&bundle.name, card);
            if text.len() + line.len() > chars {
                break;
            }
            text += &line;
            left -= 1;
        }
        // Writing to a string cannot fail.
        let _ = match (&bundle.unavailable, left) {
            (None, 0) => Ok(()),
            (None, left) => writeln!(text, "- `{}`: {}", bundle.name, counted(left, "more function")),
            (Some(reason), _) => writeln!(text, "- `{}` is not complete: {reason}", bundle.name),
        };
    }
    text
}

fn line(connector: &str, card: &Card) -> String {
    let required = card.parameters.get("required").and_then(Value::as_array);
    let parameters = card.parameters.get("properties").and_then(Value::as_object);
    let parameters = parameters.into_iter().flatten().map(|(name, schema)| {
        let optional = required.is_none_or(|required| !required.iter().any(|it| it == name));
        let kind = schema.get("type").and_then(Value::as_str);
        let kind = kind.map_or_else(String::new, |kind| format!(": {kind}"));
        format!("{name}{}{kind}", if optional { "?" } else { "" })
    });
    let parameters = parameters.collect::<Vec<_>>().join(", ");
    let about = card.description.trim().lines().next().unwrap_or_default();
    let about: String = about.chars().take(ABOUT).collect();
    let before = if about.is_empty() { "" } else { ": " };
    format!("- `{connector}.{}({parameters})`{before}{about}\n", card.function)
}
