//! Reading the fields of one object of a specification with their required types.

use cellblock_settings::json::{FieldReader, NUMBER};
use serde_json::{Number, Value};

use crate::error::{ChartProblem, Problems, code, quoted, repeated};
use crate::rows::MAX_KEY;
use crate::{AxisPlace, Side};

use super::{MAX_ENTRIES, MAX_LABEL, check_text, is_color};

/// Alternative names of keys, which chart libraries use.
const ALIASES: &[&str] = &["stroke", "fill"];

/// Fields of an object; their problems are noted, and they count as missing.
pub(super) struct Fields<'a>(FieldReader<'a, ChartProblem>);

impl<'a> Fields<'a> {
    /// Takes an object and notes every unknown key.
    pub(super) fn of(
        value: &'a Value,
        at: &str,
        valid: &'static [&'static str],
        problems: &mut Problems,
    ) -> Option<Self> {
        let fields = Self(problems.keep(FieldReader::of(value, at))?);
        let takes_color = valid.contains(&"color");
        for (key, _) in fields.0.entries() {
            let is_alias = takes_color && ALIASES.contains(&key);
            if !is_alias && !valid.contains(&key) {
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
        self.0.path(key)
    }

    pub(super) fn text(&self, key: &str, most: usize, problems: &mut Problems) -> Option<String> {
        let text = problems.keep(self.0.text(key))??;
        check_text(&text, &self.path(key), most, problems).then_some(text)
    }

    /// Returns a key of the rows; empty if it is missing, which is noted.
    pub(super) fn required_key(&self, key: &str, problems: &mut Problems) -> String {
        if self.0.get(key).is_none() {
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
        if self.0.get(key).is_none() {
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
        let problem = match self.0.text(key) {
            Ok(text) => {
                let text = text?;
                if let Some(name) = of(&text) {
                    return Some(name);
                }
                let message = format!("{} is not valid; choose another", quoted(&text));
                ChartProblem::new(code::INVALID_VALUE, self.path(key), message)
            }
            Err(problem) => problem,
        };
        problems.push(problem.with_valid(valid.iter().copied()));
        None
    }

    pub(super) fn side(&self, problems: &mut Problems) -> Option<Side> {
        self.name("yAxis", Side::of, Side::NAMES, problems)
    }

    pub(super) fn flag(&self, key: &str, problems: &mut Problems) -> Option<bool> {
        problems.keep(self.0.flag(key)).flatten()
    }

    pub(super) fn number(&self, key: &str, problems: &mut Problems) -> Option<Number> {
        let number = self.0.read(key, NUMBER, |value| value.as_number().cloned());
        problems.keep(number).flatten()
    }

    pub(super) fn place(&self, key: &str, problems: &mut Problems) -> Option<AxisPlace> {
        match self.0.get(key)? {
            Value::Number(number) => Some(AxisPlace::Number(number.clone())),
            Value::String(_) => self.text(key, MAX_LABEL, problems).map(AxisPlace::Text),
            _ => {
                problems.push(self.0.wrong(key, "a number or a string"));
                None
            }
        }
    }

    pub(super) fn color(&self, alias: &str, problems: &mut Problems) -> Option<String> {
        let key = if self.0.get("color").is_some() {
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
        Fields::of(self.0.get(key)?, &self.path(key), valid, problems)
    }

    /// Returns the entries of a list, up to the maximum.
    pub(super) fn entries(&self, key: &str, problems: &mut Problems) -> &'a [Value] {
        let entries = problems.keep(self.0.list(key)).unwrap_or_default();
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
