//! Keys that were renamed: the old ones are read too, each with a warning.

use cellblock_settings::renamed::{KEYS, Renamed};

use super::mistake::Mistake;
use super::node::{Key, Node, Value};

/// What was found of old names.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Keys that have their new names now.
    pub(super) warnings: Vec<Mistake>,
    /// Keys that are written under both names.
    pub(super) mistakes: Vec<Mistake>,
}

impl Found {
    pub(super) fn add(&mut self, other: Self) {
        self.warnings.extend(other.warnings);
        self.mistakes.extend(other.mistakes);
    }
}

/// Gives keys their new names.
pub(super) fn rename(tree: &mut Node) -> Found {
    let mut found = Found::default();
    for renamed in KEYS {
        let section: Vec<_> = renamed.within.split('.').collect();
        within(tree, &section, &mut Vec::new(), *renamed, &mut found);
    }
    found
}

fn within(node: &mut Node, section: &[&str], path: &mut Vec<String>, renamed: Renamed, found: &mut Found) {
    let Value::Map(entries) = &mut node.value else {
        return;
    };
    if let Some((first, rest)) = section.split_first() {
        for (key, part) in entries {
            if *first == "*" || key.name == *first {
                path.push(key.name.clone());
                within(part, rest, path, renamed, found);
                path.pop();
            }
        }
        return;
    }
    let place = |entries: &[(Key, Node)], name| entries.iter().position(|(key, _)| key.name == name);
    let Some(old) = place(entries, renamed.old) else {
        return;
    };
    let origin = entries[old].1.origin.clone();
    path.push(renamed.old.to_owned());
    let keys: Vec<_> = path.iter().map(String::as_str).collect();
    let new = place(entries, renamed.new).map(|new| &entries[new].1.origin);
    if new.is_some_and(|new| new.rank() == origin.rank()) {
        found.mistakes.push(Mistake::of(&origin, &keys, renamed.both()));
        entries.remove(old);
    } else {
        found
            .warnings
            .push(Mistake::of(&origin, &keys, renamed.warning()));
        let (mut key, node) = entries.remove(old);
        match place(entries, renamed.new) {
            Some(new) if entries[new].1.origin.rank() > origin.rank() => {}
            Some(new) => entries[new].1 = node,
            None => {
                renamed.new.clone_into(&mut key.name);
                entries.push((key, node));
            }
        }
    }
    path.pop();
}

#[cfg(test)]
mod tests {
    use super::super::{Loaded, Sources};
    use super::*;

    /// Reads a file with a value for each key of a table, and variables.
    fn load(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cellblock.yaml");
        std::fs::write(&file, text).unwrap();
        let variables = variables
            .iter()
            .map(|(name, value)| (format!("CELLBLOCK_SERVE__{name}"), (*value).to_owned()));
        let sources = Sources {
            file: Some(file),
            listen: None,
            records: None,
            variables: variables.collect(),
        };
        let told = |error: String| error.replace(&format!("{}/", folder.path().display()), "");
        let loaded = sources.load().map_err(|error| told(error.to_string()));
        loaded.map(|mut loaded| {
            loaded.file = None;
            loaded
        })
    }

    fn warnings(loaded: &Loaded) -> Vec<String> {
        let name = |warning: &Mistake| {
            let text = warning.to_string();
            text.rsplit_once('/')
                .map_or_else(|| text.clone(), |(_, text)| text.to_owned())
        };
        loaded.warnings.iter().map(name).collect()
    }

    #[test]
    fn every_old_key_is_accepted_with_a_warning_that_names_the_new_one() {
        for Renamed { within, old, new } in KEYS {
            let mut sections: Vec<_> = within.split('.').collect();
            let (mut text, server) = (String::new(), sections.first() == Some(&"providers"));
            for (depth, section) in sections.iter_mut().enumerate() {
                *section = if *section == "*" { "name" } else { *section };
                for part in ["  ".repeat(depth).as_str(), section, ":\n"] {
                    text += part;
                }
                if server && depth == 1 {
                    text += "    type: chat\n    base_url: http://127.0.0.1/v1\n";
                }
            }
            let indent = "  ".repeat(sections.len());
            let line = text.lines().count() + 1;
            // A value that suits each of them, as a number, a time or a size.
            let loaded = load(&format!("{text}{indent}{old}: 3600\n"), &[]).unwrap();
            let column = indent.len() + old.len() + 3;
            let section = sections.join(".");
            assert_eq!(
                warnings(&loaded),
                [format!(
                    "cellblock.yaml:{line}:{column}: `{section}.{old}`: renamed to `{new}`; the next release rejects the old name"
                )]
            );
            let both = load(&format!("{text}{indent}{old}: 3600\n{indent}{new}: 3600\n"), &[]);
            assert_eq!(
                both.unwrap_err(),
                format!(
                    "read the configuration: cellblock.yaml:{line}:{column}: `{section}.{old}`: this is the old name of `{new}`, which is set \
                     too; remove this one"
                )
            );
            let known = load(&format!("{text}{indent}{new}: 3600\n"), &[]).unwrap();
            assert_eq!(warnings(&known), [""; 0]);
            let values = |loaded: &Loaded| serde_json::to_value(&loaded.settings).unwrap();
            assert_eq!(values(&known), values(&loaded));
        }
    }

    #[test]
    fn a_variable_overrides_the_file_under_either_name() {
        for (text, variable) in [
            ("sessions: {cells: 1}", "SESSIONS__MAX_CELLS"),
            ("sessions: {max_cells: 1}", "SESSIONS__CELLS"),
            ("sessions: {cells: 1}", "SESSIONS__CELLS"),
        ] {
            let loaded = load(text, &[(variable, "7")]).unwrap();
            assert_eq!(loaded.settings.sessions.max_cells, 7, "{text} {variable}");
            assert!(!loaded.warnings.is_empty());
        }
        let both = load("", &[("SESSIONS__CELLS", "1"), ("SESSIONS__MAX_CELLS", "2")]);
        assert_eq!(
            both.unwrap_err(),
            "read the configuration: CELLBLOCK_SERVE__SESSIONS__CELLS: `sessions.cells`: this is the old name of `max_cells`, which is set too; \
             remove this one"
        );
    }
}
