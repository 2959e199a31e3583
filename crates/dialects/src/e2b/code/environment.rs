//! Cells of ours that set environment variables and the working directory in each language.

use std::collections::BTreeMap;

use cellblock_interpreter::Cell;
use cellblock_interpreter::cell::Language;
use serde_json::{Value, json};

use super::super::error::{Answer, Problem};
use super::contexts::hidden;

/// Rejects variables that a language cannot have.
pub(super) fn check(language: Language, envs: &BTreeMap<String, String>) -> Answer<()> {
    for (name, value) in envs {
        let is_word = |text: &str| {
            text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
                && !text.starts_with(|it: char| it.is_ascii_digit())
        };
        let is_wrong = name.is_empty()
            || name.contains(['=', '\0'])
            || value.contains('\0')
            || (language == Language::Bash && !is_word(name));
        if is_wrong {
            return Err(Problem::invalid(format!(
                "`env_vars`: {name:?} is not the name of a variable, or its value contains a NUL character"
            )));
        }
    }
    Ok(())
}

/// Sets variables; those without a value are removed.
pub(in super::super) fn set<'a>(
    language: Language,
    envs: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> Cell {
    let code = match language {
        Language::Python => {
            let envs: serde_json::Map<String, Value> = envs
                .map(|(name, value)| (name.to_owned(), json!(value)))
                .collect();
            let envs = json!(Value::Object(envs).to_string());
            format!(
                "__import__('cellblock_kernel.e2b.session', \
                 fromlist=['_']).set_environ(__import__('json').loads({envs}))"
            )
        }
        Language::Javascript => lines(envs, |name, value| {
            let name = json!(name);
            match value {
                Some(value) => format!("process.env[{name}] = {};", json!(value)),
                None => format!("delete process.env[{name}];"),
            }
        }),
        Language::Bash => lines(envs, |name, value| match value {
            Some(value) => format!("export {name}={}", quoted(value)),
            None => format!("unset {name}"),
        }),
        // Texts of JSON are texts of R.
        Language::R => lines(envs, |name, value| {
            let name = json!(name);
            match value {
                Some(value) => format!(
                    "invisible(do.call(Sys.setenv, structure(list({}), names = {name})))",
                    json!(value)
                ),
                None => format!("invisible(Sys.unsetenv({name}))"),
            }
        }),
    };
    hidden(code).in_language(language)
}

/// Enters the directory of a new context. The kernel does so itself for Python.
pub(super) fn directory(language: Language, path: &str) -> Option<Cell> {
    let code = match language {
        Language::Python => return None,
        Language::Javascript => format!(
            "try {{ process.chdir({}) }} catch (e) {{ console.error(`note: ${{e.message}}`) }}",
            json!(path)
        ),
        Language::Bash => format!("cd -- {} || true", quoted(path)),
        Language::R => format!("try(setwd({}))", json!(path)),
    };
    Some(hidden(code).in_language(language))
}

fn lines<'a>(
    envs: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    line: impl Fn(&str, Option<&str>) -> String,
) -> String {
    envs.map(|(name, value)| line(name, value))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_leave_their_quotes() {
        let envs = [("A", Some("it's $(x) \"y\"\n")), ("B", None)];
        let code = |language| set(language, envs.into_iter()).code;
        assert_eq!(code(Language::Bash), "export A='it'\\''s $(x) \"y\"\n'\nunset B");
        assert_eq!(
            code(Language::Javascript),
            "process.env[\"A\"] = \"it's $(x) \\\"y\\\"\\n\";\ndelete process.env[\"B\"];"
        );
    }

    #[test]
    fn names_that_a_shell_cannot_have_are_rejected() {
        let envs = BTreeMap::from([("a-b".to_owned(), String::new())]);
        assert!(check(Language::Bash, &envs).is_err());
        assert!(check(Language::Python, &envs).is_ok());
    }
}
