//! Connectors by name, whose functions code can call.

use std::collections::BTreeMap;

use cellblock_connector::{ConnectorOptions, OptionMistake};
use cellblock_interpreter::connector::check_name;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

use super::mcp_servers::McpServers;
use crate::config::Settings;
use crate::config::check::Check;
use crate::config::decode::ConfigReader;
use crate::config::mistake::unknown;
use crate::config::node::Value;

/// Connectors by name: functions for code in sessions with the toolset `notebook`. The host calls
/// them, never a sandbox.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Connectors(pub(crate) BTreeMap<String, ConnectorOptions>);

impl<'de> Deserialize<'de> for Connectors {
    /// Leaves them to [`read`](Self::read): options are read several times, and only a tree can be.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::<String, IgnoredAny>::deserialize(deserializer).map(|_| Self::default())
    }
}

impl Connectors {
    /// Reads the connectors of the tree, each by its type.
    pub(in crate::config) fn read(check: &mut Check<'_>) -> Self {
        let mut connectors = BTreeMap::new();
        let section = check.part(&["connectors"]).map(|node| &node.value);
        let Some(Value::Map(entries)) = section else {
            return Self(connectors);
        };
        for (name, node) in entries {
            match ConnectorOptions::read(ConfigReader(node)) {
                Ok(options) => drop(connectors.insert(name.name.clone(), options)),
                Err(mistake) => {
                    // A misspelled key explains why the right one is missing.
                    let all = ConnectorOptions::schema(&mut SchemaGenerator::default());
                    let misspelled = match &node.value {
                        Value::Map(keys) => {
                            let mut keys = keys.iter();
                            keys.find_map(|(key, _)| Some((key, unknown_key(&key.name, &all)?)))
                        }
                        _ => None,
                    };
                    if let Some((key, message)) = misspelled {
                        let path = ["connectors", &name.name, &key.name];
                        check.wrong_key(&path, &key.origin, &message);
                        continue;
                    }
                    let mistake = mistake.within(&name.name, &node.origin);
                    check.mistakes.push(mistake.within("connectors", &node.origin));
                }
            }
        }
        Self(connectors)
    }

    pub(in crate::config) fn check(&self, servers: &McpServers, check: &mut Check<'_>) {
        if self.0.is_empty() {
            return;
        }
        let all = ConnectorOptions::schema(&mut SchemaGenerator::default());
        for (name, connector) in &self.0 {
            let path = ["connectors", name];
            if let Err(reason) = check_name(name) {
                check.wrong(&path, format!("the name {reason}"));
            }
            if servers.0.get(name).is_some_and(|server| server.offer.to_code()) {
                let text = "`mcp_servers` offers a server of this name to code; rename one of the two";
                check.wrong(&path, text);
            }
            // All keys of the type are written, also those with their defaults.
            let own = serde_json::to_value(connector).unwrap_or_default();
            if check_keys(&path, &own, (&own, &all), check) {
                report(
                    name,
                    connector.connector(name, None).err().unwrap_or_default(),
                    check,
                );
            }
            if let Some(server) = own["server"]
                .as_str()
                .filter(|server| !servers.0.contains_key(*server))
            {
                let text = format!("`{server}` is not in `mcp_servers`; write the server there");
                check.wrong(&["connectors", name, "server"], text);
            }
        }
    }
}

impl Settings {
    /// Returns whether code can be granted a connector of this name.
    pub(crate) fn has_connector(&self, name: &str) -> bool {
        let server = self.mcp_servers.0.get(name);
        self.connectors.0.contains_key(name) || server.is_some_and(|server| server.offer.to_code())
    }
}

/// Returns the mistake of a key that no type has.
fn unknown_key(key: &str, all: &Json) -> Option<String> {
    let known = all["properties"].as_object()?;
    if known.contains_key(key) {
        return None;
    }
    let known: Vec<_> = known.keys().map(String::as_str).collect();
    Some(unknown(key, &known, "key"))
}

/// Rejects keys that only other types have, and those that none has, also in functions. `own` has the keys of
/// the type. Returns whether some type has each.
fn check_keys(path: &[&str], connector: &Json, (own, all): (&Json, &Json), check: &mut Check<'_>) -> bool {
    let entries = check.part(path).map(|node| &node.value);
    let (Some(Value::Map(entries)), Some(known)) = (entries, all["properties"].as_object()) else {
        return true;
    };
    let mut are_known = true;
    for (key, node) in entries {
        let path = [path, &[key.name.as_str()]].concat();
        let own = own.get(&key.name);
        if let Some(message) = unknown_key(&key.name, all) {
            check.wrong_key(&path, &key.origin, &message);
            are_known = false;
        } else if own.is_none() && node.value != Value::Null {
            let repair = match (connector["server"].as_str(), key.name.as_str()) {
                (Some(server), "timeout" | "max_result") => format!("write it in `mcp_servers.{server}`"),
                _ => "remove it".to_owned(),
            };
            let of_type = connector["type"].as_str().unwrap_or_default();
            check.wrong(&path, format!("has no effect with `type: {of_type}`; {repair}"));
        }
        if let ("functions", Some(own), Value::Map(functions)) = (key.name.as_str(), own, &node.value) {
            let all = &known["functions"]["additionalProperties"];
            for (function, _) in functions {
                let path = [&path[..], &[function.name.as_str()]].concat();
                are_known &= check_keys(&path, connector, (&own[&function.name], all), check);
            }
        }
    }
    are_known
}

/// Reports the mistakes of a connector at their places.
pub(in crate::config) fn report(name: &str, mistakes: Vec<OptionMistake>, check: &mut Check<'_>) {
    for mistake in mistakes {
        let keys = mistake.path.iter().map(String::as_str);
        let path: Vec<_> = ["connectors", name].into_iter().chain(keys).collect();
        check.wrong(&path, mistake.message);
    }
}
