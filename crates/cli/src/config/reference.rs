//! The reference of the configuration, made of its schema and its defaults.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Settings, env, schema};

const HEAD: &str = "\
# The configuration

Generated from the configuration's types; `cargo xtask generate` writes this page.

`cellblock serve` reads `cellblock.yaml` in the working directory, or the file given with `--config`. If the
configuration is invalid, the server reports each error with its file, line, column and key, and does not start.
`cellblock config check` reports the same errors without serving, `cellblock config show` shows each effective value
and its origin, and `cellblock config schema` prints the [JSON Schema](config.schema.json) for editors.

- A **time** is a number of seconds, or a number and `h`, `m`, `s` or `ms`: `60`, `1.5`, `20m`.
- A **size** is a number of bytes, or a number and a unit: `512MiB`, `2GB`.
- A relative **path** is relative to the file's own directory.
- Never write keys of providers or MCP servers in this file: `key_env` names an environment variable, `key_file` a file.
";

/// The page.
pub(crate) fn markdown() -> String {
    let schema: Value = serde_json::from_str(&schema()).unwrap_or_default();
    let defaults = serde_json::to_value(Settings::default()).unwrap_or_default();
    let page = ReferencePage {
        schema: &schema,
        text: HEAD.to_owned(),
    };
    page.write(&defaults)
}

struct ReferencePage<'a> {
    schema: &'a Value,
    text: String,
}

impl<'a> ReferencePage<'a> {
    fn write(mut self, defaults: &Value) -> String {
        let _ = write!(
            self.text,
            "
## The environment

Environment variables override the file. A variable's name is `{0}` and the path of the key in upper case, \
with `__` between its parts. Its value is read as YAML.

```sh
{0}LISTEN=8081 {0}LIMITS__MEMORY=1GiB {0}PROVIDERS__LOCAL__MODELS='[qwen3, \"llama*\"]' cellblock serve
```

## Top level
",
            env::PREFIX
        );
        let root = self.properties(self.schema);
        let (sections, plain): (Vec<_>, Vec<_>) = root.into_iter().partition(|(key, schema)| {
            matches!(*key, "mcp_servers" | "connectors") || !self.properties(self.resolve(schema)).is_empty()
        });
        self.table(&plain, defaults);
        for (key, schema) in sections {
            let schema = self.resolve(schema);
            let _ = write!(self.text, "\n## `{key}`\n\n{}\n", described(schema));
            if key == "providers" {
                self.providers(schema, &defaults[key]);
            } else if matches!(key, "mcp_servers" | "connectors") {
                self.named(key, schema);
            } else {
                self.table(&self.properties(schema), &defaults[key]);
            }
        }
        self.text
    }

    fn providers(&mut self, schema: &'a Value, defaults: &Value) {
        let provider = self.resolve(&schema["additionalProperties"]);
        let _ = write!(self.text, "\n### `providers.NAME`\n\n{}\n", described(provider));
        self.nested("providers.NAME", provider, &Value::Null);
        let tool = self.resolve(&schema["properties"]["code_interpreter"]);
        let _ = write!(
            self.text,
            "\n### `providers.code_interpreter`\n\n{}\n",
            described(tool)
        );
        self.nested("providers.code_interpreter", tool, &defaults["code_interpreter"]);
    }

    /// Describes each name of a section, and the names below it.
    fn named(&mut self, path: &str, schema: &'a Value) {
        let path = format!("{path}.NAME");
        let one = self.resolve(&schema["additionalProperties"]);
        let _ = write!(self.text, "\n### `{path}`\n\n{}\n", described(one));
        self.nested(&path, one, &Value::Null);
        for (key, written) in self.properties(one) {
            if !self
                .properties(self.resolve(&written["additionalProperties"]))
                .is_empty()
            {
                self.named(&format!("{path}.{key}"), written);
            }
        }
    }

    /// A table of plain keys, and one for each key with keys of its own.
    fn nested(&mut self, path: &str, schema: &'a Value, defaults: &Value) {
        let (groups, plain): (Vec<_>, Vec<_>) = self
            .properties(schema)
            .into_iter()
            .partition(|(_, schema)| !self.properties(self.resolve(schema)).is_empty());
        self.table(&plain, defaults);
        for (key, written) in groups {
            let schema = self.resolve(written);
            let _ = write!(self.text, "\n### `{path}.{key}`\n\n{}\n", described(schema));
            let defaults = written.get("default").unwrap_or(&defaults[key]);
            self.table(&self.properties(schema), defaults);
        }
    }

    fn table(&mut self, keys: &[(&'a str, &'a Value)], defaults: &Value) {
        self.text
            .push_str("\n| key | value | default | description |\n|---|---|---|---|\n");
        for (key, written) in keys {
            let default = written.get("default").unwrap_or(&defaults[key]);
            let default = match default {
                Value::Null => "\u{2013}".to_owned(),
                value => format!("`{}`", value.to_string().trim_matches('"')),
            };
            let kind = self.kind(written);
            let _ = writeln!(
                self.text,
                "| `{key}` | {kind} | {default} | {} |",
                described(written)
            );
        }
    }

    fn properties(&self, schema: &'a Value) -> Vec<(&'a str, &'a Value)> {
        let properties = self.resolve(schema)["properties"].as_object();
        properties
            .into_iter()
            .flatten()
            .map(|(key, schema)| (key.as_str(), schema))
            .collect()
    }

    /// Resolves a reference of a schema.
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        let mut any = schema["anyOf"].as_array().into_iter().flatten();
        let some = any.find(|kind| kind["type"] != "null").unwrap_or(schema);
        let name = some["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        name.map_or(schema, |name| &self.schema["$defs"][name])
    }

    fn kind(&self, schema: &'a Value) -> String {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return match name {
                "Time" => "time".to_owned(),
                "Size" => "size".to_owned(),
                "Rate" => "rate".to_owned(),
                "Listen" => "address".to_owned(),
                _ => choices(self.resolve(schema)),
            };
        }
        if let Some(any) = schema["anyOf"].as_array() {
            let kinds = any.iter().filter(|kind| kind["type"] != "null");
            return kinds.map(|kind| self.kind(kind)).collect::<Vec<_>>().join(" or ");
        }
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            kind => kind.as_str().into_iter().collect::<Vec<_>>(),
        };
        let kind = kinds.into_iter().find(|kind| *kind != "null").unwrap_or_default();
        match kind {
            "string" => "string",
            "integer" | "number" => "number",
            "boolean" => "`true`, `false`",
            "array" => "list",
            "object" => "mapping",
            other => other,
        }
        .to_owned()
    }
}

/// The words that may be chosen from.
fn choices(schema: &Value) -> String {
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    let words = choices.filter_map(|choice| choice["const"].as_str());
    let words: Vec<_> = words.map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// A description on one line.
fn described(schema: &Value) -> String {
    schema["description"]
        .as_str()
        .unwrap_or_default()
        .replace('\n', " ")
        .replace('|', "\\|")
}
