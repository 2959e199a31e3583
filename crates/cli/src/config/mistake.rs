//! Mistakes in a configuration, with their position and a suggested fix.

use std::fmt::Display;

use serde::de::{Error, Expected, Unexpected};

use super::node::Origin;

/// The farthest that a key may be from one that there is to be taken for it.
const NEAR: f64 = 0.75;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct Mistake {
    origin: Option<Origin>,
    /// Keys from the outermost to that of the mistake.
    path: Vec<String>,
    message: String,
}

impl Display for Mistake {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(origin) = &self.origin {
            write!(formatter, "{origin}: ")?;
        }
        if !self.path.is_empty() {
            write!(formatter, "`{}`: ", self.path.join("."))?;
        }
        formatter.write_str(&self.message)
    }
}

impl Mistake {
    /// A mistake that is in no key.
    pub(super) const fn told(origin: Option<Origin>, message: String) -> Self {
        Self {
            origin,
            path: Vec::new(),
            message,
        }
    }

    /// A mistake in the value of a key.
    pub(super) fn of(origin: &Origin, path: &[&str], message: impl Into<String>) -> Self {
        Self {
            origin: Some(origin.clone()),
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            message: message.into(),
        }
    }

    /// The mistake as one within a key.
    pub(super) fn within(mut self, key: &str, origin: &Origin) -> Self {
        self.path.insert(0, key.to_owned());
        self.somewhere(origin)
    }

    /// The mistake, here unless its place is known better.
    pub(super) fn somewhere(mut self, origin: &Origin) -> Self {
        self.origin.get_or_insert_with(|| origin.clone());
        self
    }
}

impl Error for Mistake {
    fn custom<T: Display>(message: T) -> Self {
        Self::told(None, message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let wanted = match wanted.to_string().as_str() {
            "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0".to_owned(),
            "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
            "f32" | "f64" => "a number".to_owned(),
            "a boolean" => "`true` or `false`".to_owned(),
            "a sequence" => "a list".to_owned(),
            "a map" => "a mapping of keys".to_owned(),
            other => other.to_owned(),
        };
        Self::custom(format_args!("expected {wanted}, found {}", spoken(found)))
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::invalid_type(found, wanted)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::custom(format_args!("duplicate key `{field}`"))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::custom(unknown(field, known, "key"))
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        Self::custom(format_args!("`{variant}`: {}", unknown(variant, known, "value")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format_args!("missing key `{field}`"))
    }
}

/// That there is no such key, and the one that is nearest, or all.
pub(super) fn unknown(name: &str, known: &[&str], what: &str) -> String {
    let nearness = |other: &&&str| strsim::jaro_winkler(&name.to_lowercase(), other);
    let nearest = known
        .iter()
        .max_by(|one, other| nearness(one).total_cmp(&nearness(other)))
        .filter(|other| nearness(other) >= NEAR);
    match nearest {
        Some(nearest) => format!("unknown {what}; did you mean `{nearest}`?"),
        None => format!("unknown {what}; expected one of `{}`", known.join("`, `")),
    }
}

fn spoken(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Unsigned(value) => format!("the number {value}"),
        Unexpected::Signed(value) => format!("the number {value}"),
        Unexpected::Float(value) => format!("the number {value}"),
        Unexpected::Str(text) => format!("the string `{text}`"),
        Unexpected::Unit => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        other => other.to_string(),
    }
}
