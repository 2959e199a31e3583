//! Quotes, lists and suggestions in messages. Quoted text comes from a model and may be anything.

use super::KnownAliases;
use crate::rejection::Rejection;
use crate::render::plain::line;

/// Maximum number of characters of a quoted value.
const QUOTED: usize = 60;
/// Maximum number of listed names.
pub(super) const LISTED: usize = 20;
/// Minimum similarity of a suggested name.
const ALIKE: f64 = 0.8;

/// Formats a value in backquotes: cut, and without characters that act.
pub(crate) fn quote(text: &str) -> String {
    format!("`{}`", plain(text))
}

/// Formats a value without quotes, as part of a field's name.
pub(crate) fn plain(text: &str) -> String {
    let mut kept: String = text.chars().take(QUOTED).collect();
    if kept.len() < text.len() {
        kept.push('…');
    }
    line(&kept).replace('`', "'")
}

/// Formats a list as `a`, `b` and `c`.
pub(super) fn and(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => format!("`{only}`"),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(|name| format!("`{name}`")).collect();
            format!("{} and `{last}`", first.join(", "))
        }
    }
}

/// Returns the name that was probably meant.
pub(super) fn meant<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given: String = given.chars().take(QUOTED * 2).collect();
    names
        .into_iter()
        .map(|name| (likeness(&given, name), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// Returns a similarity from 0 to 1; 1 if only case and underscores differ.
fn likeness(a: &str, b: &str) -> f64 {
    strsim::jaro_winkler(&folded(a), &folded(b))
}

fn folded(name: &str) -> String {
    name.chars()
        .filter(|character| !matches!(character, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns the existing aliases, the most similar ones first.
fn nearest<'a>(given: &str, known: &'a KnownAliases) -> Vec<&'a str> {
    let given: String = given.chars().take(QUOTED * 2).collect();
    let mut aliases: Vec<_> = known
        .aliases()
        .iter()
        .map(|alias| (likeness(&given, alias), alias.as_str()))
        .collect();
    aliases.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    aliases.truncate(LISTED);
    aliases.into_iter().map(|(_, alias)| alias).collect()
}

/// Adds the existing aliases to the message and to the field's valid values.
pub(super) fn with_aliases(mut rejection: Rejection, given: &str, known: &KnownAliases) -> Rejection {
    let listed = nearest(given, known);
    let names: Vec<_> = listed.iter().map(|alias| quote(alias)).collect();
    let more = known.aliases().len() - listed.len();
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let list = if names.is_empty() {
        "no tool result exists yet; call the tool that fetches the data first, then derive from its alias"
            .to_owned()
    } else {
        format!("aliases that exist: {}{more}", names.join(", "))
    };
    rejection.message = format!("{}; {list}", rejection.message);
    rejection.with_valid(listed)
}

/// Reports an unknown alias.
pub(crate) fn unknown_alias(field: String, given: &str, known: &KnownAliases) -> Rejection {
    let suggestion = match meant(given, known.aliases().iter().map(String::as_str)) {
        Some(meant) => format!(" (did you mean {}?)", quote(meant)),
        None => String::new(),
    };
    let message = format!(
        "{} is not the alias of an earlier tool result{suggestion}",
        quote(given)
    );
    let rejection = Rejection::of_field(super::codes::UNKNOWN_ALIAS, field, message);
    with_aliases(rejection, given, known)
}
