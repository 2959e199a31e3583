//! Reading the fields of one object of a specification with their required types.

use serde_json::{Map, Number, Value};

use crate::error::{ChartProblem, Problems, code, quoted, repeated};
use crate::rows::MAX_KEY;
use crate::{AxisPlace, Side};

use super::{MAX_ENTRIES, MAX_LABEL, check_text, is_color, mistyped};

/// Alternative names of keys, which chart libraries use.
const ALIASES: &[&str] = &["stroke", "fill"];

/// An object at a path.
pub(super) struct Fields<'a> {
    at: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// Takes an object and notes every unknown key.
    pub(super) fn of(
        value: &'a Value,
        at: &str,
        valid: &'static [&'static str],
        problems: &mut Problems,
    ) -> Option<Self> {
        let Value::Object(map) = value else {
            let path = if at.is_empty() { "spec" } else { at };
            problems.push(mistyped(path, "an object", value));
            return None;
        };
        let fields = Self {
            at: at.to_owned(),
            map,
        };
        let takes_color = valid.contains(&"color");
        for key in map.keys() {
            let is_alias = takes_color && ALIASES.contains(&key.as_str());
            if !is_alias && !valid.contains(&key.as_str()) {
                problems.push(fields.unknown(key, valid));
            }
        }
        Some(fields)
    }

    fn unknown(&self, key: &str, valid: &'static [&'static str]) -> ChartProblem {
        let bare = |key: &str| key.replace(['_', '-'], "").to_lowercase();
        let meant = valid.iter().find(|valid| bare(valid) == bare(key));
        let repair = match meant {
            Some(meant) => format!("write {meant}"),
            None => "leave it out, or use one of the valid keys".to_owned(),
        };
        let shown = if key.is_empty() {
            "\"\"".to_owned()
        } else {
            repeated(key)
        };
        let path = self.path(&shown);
        ChartProblem::new(
            code::UNKNOWN_KEY,
            path,
            format!("{} is not a key here; {repair}", quoted(key)),
        )
        .with_valid(valid.iter().copied())
    }

    pub(super) fn path(&self, key: &str) -> String {
        match self.at.as_str() {
            "" => key.to_owned(),
            at => format!("{at}.{key}"),
        }
    }

    /// Returns a field; null counts as missing.
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, key: &str, most: usize, problems: &mut Problems) -> Option<String> {
        match self.get(key)? {
            Value::String(text) => check_text(text, &self.path(key), most, problems).then(|| text.clone()),
            other => {
                problems.push(mistyped(self.path(key), "a text", other));
                None
            }
        }
    }

    /// Returns a key of the rows; empty if it is missing, which is noted.
    pub(super) fn required_key(&self, key: &str, problems: &mut Problems) -> String {
        if self.get(key).is_none() {
            problems.add(
                code::MISSING_KEY,
                self.path(key),
                "is missing; name a key of the rows",
            );
        }
        self.text(key, MAX_KEY, problems).unwrap_or_default()
    }

    pub(super) fn required_name<T>(
        &self,
        key: &str,
        of: fn(&str) -> Option<T>,
        valid: &'static [&'static str],
        problems: &mut Problems,
    ) -> Option<T> {
        if self.get(key).is_none() {
            let problem = ChartProblem::new(code::MISSING_KEY, self.path(key), "is missing; choose one");
            problems.push(problem.with_valid(valid.iter().copied()));
        }
        self.name(key, of, valid, problems)
    }

    pub(super) fn name<T>(
        &self,
        key: &str,
        of: fn(&str) -> Option<T>,
        valid: &'static [&'static str],
        problems: &mut Problems,
    ) -> Option<T> {
        let problem = match self.get(key)? {
            Value::String(text) => match of(text) {
                Some(name) => return Some(name),
                None => ChartProblem::new(
                    code::INVALID_VALUE,
                    self.path(key),
                    format!("{} is not valid; choose another", quoted(text)),
                ),
            },
            other => mistyped(self.path(key), "a text", other),
        };
        problems.push(problem.with_valid(valid.iter().copied()));
        None
    }

    pub(super) fn side(&self, problems: &mut Problems) -> Option<Side> {
        self.name("yAxis", Side::of, Side::NAMES, problems)
    }

    pub(super) fn flag(&self, key: &str, problems: &mut Problems) -> Option<bool> {
        match self.get(key)? {
            Value::Bool(flag) => Some(*flag),
            other => {
                problems.push(mistyped(self.path(key), "true or false", other));
                None
            }
        }
    }

    pub(super) fn number(&self, key: &str, problems: &mut Problems) -> Option<Number> {
        match self.get(key)? {
            Value::Number(number) => Some(number.clone()),
            other => {
                problems.push(mistyped(self.path(key), "a number", other));
                None
            }
        }
    }

    pub(super) fn place(&self, key: &str, problems: &mut Problems) -> Option<AxisPlace> {
        match self.get(key)? {
            Value::Number(number) => Some(AxisPlace::Number(number.clone())),
            Value::String(_) => self.text(key, MAX_LABEL, problems).map(AxisPlace::Text),
            other => {
                problems.push(mistyped(self.path(key), "a number or a text", other));
                None
            }
        }
    }

    pub(super) fn color(&self, alias: &str, problems: &mut Problems) -> Option<String> {
        let key = if self.get("color").is_some() {
            "color"
        } else {
            alias
        };
        let text = self.text(key, MAX_LABEL, problems)?;
        if is_color(&text) {
            return Some(text);
        }
        let message = format!("{} is not a valid color", quoted(&text));
        let problem = ChartProblem::new(code::INVALID_VALUE, self.path(key), message);
        problems.push(problem.with_valid(["#rgb", "#rrggbb", "#rrggbbaa", "a CSS color name"]));
        None
    }

    pub(super) fn object(
        &self,
        key: &str,
        valid: &'static [&'static str],
        problems: &mut Problems,
    ) -> Option<Fields<'a>> {
        Fields::of(self.get(key)?, &self.path(key), valid, problems)
    }

    /// Returns the entries of a list, up to the maximum.
    pub(super) fn entries(&self, key: &str, problems: &mut Problems) -> &'a [Value] {
        let entries = match self.get(key) {
            None => return &[],
            Some(Value::Array(entries)) => entries,
            Some(other) => {
                problems.push(mistyped(self.path(key), "a list", other));
                return &[];
            }
        };
        if entries.len() > MAX_ENTRIES {
            let message = format!(
                "{} entries are over the limit of {MAX_ENTRIES}; show the most important ones, or sum up \
                 the rest",
                entries.len()
            );
            problems.add(code::TOO_LARGE, self.path(key), message);
        }
        &entries[..entries.len().min(MAX_ENTRIES)]
    }

    /// Reads a list of objects. An invalid entry counts as an empty object, so that the indexes of
    /// the others stay.
    pub(super) fn list<T: Default>(
        &self,
        key: &str,
        problems: &mut Problems,
        read: fn(&Fields<'_>, &mut Problems) -> T,
        valid: &'static [&'static str],
    ) -> Vec<T> {
        let mut list = Vec::new();
        for (at, entry) in self.entries(key, problems).iter().enumerate() {
            let path = self.path(&format!("{key}[{at}]"));
            let fields = Fields::of(entry, &path, valid, problems);
            list.push(fields.map_or_else(T::default, |fields| read(&fields, problems)));
        }
        list
    }
}
