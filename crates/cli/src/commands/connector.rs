//! `cellblock connector`: what code can call by a configuration, tried from a shell.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_interpreter::connector::{
    Bundle, Card, Connector, FetchEffect, FetchRecord, GrantTerms, direct,
};
use serde_json::{Value, json};

use crate::args::connector::{ConnectorArgs, ConnectorCommand};
use crate::config::Sources;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::render::json::{self, print};
use crate::render::table::{counted, grouped, plural};
use crate::render::{FAINT, STRONG, Screen, styled};
use crate::sanitize;

/// Maximum time of a call; a connector has its own, which is shorter.
const LONGEST: Duration = Duration::from_hours(1);

/// Does it, prints, and says how it ended.
pub(crate) async fn run(args: ConnectorArgs) -> ExitCode {
    let json = args.json;
    act(args).await.unwrap_or_else(|error| json::failed(&error, json))
}

async fn act(args: ConnectorArgs) -> Result<ExitCode> {
    let loaded = Sources::of_process(args.config, None).load()?;
    let (servers, _) = loaded.tool_servers()?;
    let connectors = loaded.connectors(&servers)?;
    let (report, text, code) = match args.command {
        ConnectorCommand::List => {
            let bundles = direct::bundles(&connectors).await;
            (
                json!({"connectors": bundles}),
                listed(&bundles),
                ExitCode::Success,
            )
        }
        ConnectorCommand::Show { name } => {
            let (connector, function) = match name.split_once('.') {
                Some((connector, function)) => (connector, Some(function)),
                None => (&*name, None),
            };
            let mut bundles = direct::bundles(&[named(&connectors, connector)?]).await;
            if let Some(function) = function {
                for bundle in &mut bundles {
                    bundle.functions.retain(|card| card.function == function);
                }
                if bundles.iter().all(|bundle| bundle.functions.is_empty()) {
                    return Err(unknown(connector, function));
                }
            }
            (json!({"connectors": bundles}), shown(&bundles), ExitCode::Success)
        }
        ConnectorCommand::Call { function, arguments } => called(&connectors, &function, arguments).await?,
        ConnectorCommand::Check { names } => checked(&connectors, &names).await?,
    };
    if args.json {
        print(&report);
    } else {
        Screen::new().show(text.trim_end());
    }
    Ok(code)
}

type CommandOutcome = (Value, String, ExitCode);

fn named(connectors: &[Arc<dyn Connector>], name: &str) -> Result<Arc<dyn Connector>> {
    let found = connectors.iter().find(|connector| connector.name() == name);
    found.cloned().ok_or_else(|| {
        let names: Vec<_> = connectors.iter().map(|connector| connector.name()).collect();
        let known = match &*names.join(", ") {
            "" => "the configuration has none".to_owned(),
            names => format!("the configuration has {names}"),
        };
        Error::Refused(format!("there is no connector `{name}`; {known}"))
    })
}

fn unknown(connector: &str, function: &str) -> Error {
    Error::Refused(format!(
        "the connector `{connector}` has no function `{function}`; `cellblock connector show {connector}` \
         lists them"
    ))
}

async fn called(
    connectors: &[Arc<dyn Connector>],
    function: &str,
    arguments: Vec<(String, String)>,
) -> Result<CommandOutcome> {
    let Some((connector, function)) = function.split_once('.') else {
        return Err(Error::Refused(format!(
            "`{function}` is not a function; write its connector and its name, such as `fred.series`"
        )));
    };
    let found = named(connectors, connector)?;
    let bundles = direct::bundles(&[Arc::clone(&found)]).await;
    let mut cards = bundles.iter().flat_map(|bundle| &bundle.functions);
    let card = cards.find(|card| card.function == function);
    let typed = arguments.into_iter().map(|(name, text)| {
        let value = value(card, &name, text);
        (name, value)
    });
    let until = Instant::now() + LONGEST;
    let (record, answer) = direct::call(found, function, typed.collect(), until, GrantTerms::default()).await;
    let record = record.ok_or_else(|| unknown(connector, function))?;
    Ok(told(&record, answer))
}

/// Reads an argument: text where the parameter is text.
fn value(card: Option<&Card>, name: &str, text: String) -> Value {
    let schema = card.and_then(|card| card.parameters.get("properties")?.get(name));
    let is_text = match schema.and_then(|schema| schema.get("type")) {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        kind => kind.is_some_and(|kind| kind == "string"),
    };
    if is_text {
        return text.into();
    }
    serde_json::from_str(&text).unwrap_or_else(|_| text.into())
}

fn told(record: &FetchRecord, answer: Option<Value>) -> CommandOutcome {
    let code = match record.outcome {
        "ok" => ExitCode::Success,
        "invalid_parameter" => ExitCode::Refused,
        "timeout" => ExitCode::Interrupted,
        _ => ExitCode::Raised,
    };
    let mut text = String::new();
    // Writing to a string does not fail.
    match (&record.error, &answer) {
        (Some(error), _) => text = format!("{}: {}", record.outcome, sanitize::line(error)),
        (None, Some(answer)) => {
            let pretty = serde_json::to_string_pretty(answer).unwrap_or_default();
            text = sanitize::text(&pretty);
        }
        (None, None) => {
            let line = |row: &Value| sanitize::line(&row.to_string()) + "\n";
            text.extend(record.head.iter().map(line));
            let rows = record.row_count.unwrap_or_default();
            let hidden = rows.saturating_sub((record.head.len() + record.tail.len()) as u64);
            if hidden > 0 {
                let _ = writeln!(text, "… {} more {}", grouped(hidden), plural(hidden, "row"));
            }
            text.extend(record.tail.iter().map(line));
            let _ = write!(text, "{}", styled(FAINT, &counted(rows, "row")));
        }
    }
    let mut report = json!(record);
    if let Value::Object(fields) = &mut report {
        if let Some(rows) = fields.remove("row_count") {
            fields.insert("rows".to_owned(), rows);
        }
        fields.extend(answer.map(|answer| ("value".to_owned(), answer)));
    }
    (report, text, code)
}

async fn checked(connectors: &[Arc<dyn Connector>], names: &[String]) -> Result<CommandOutcome> {
    let chosen = if names.is_empty() {
        connectors.to_vec()
    } else {
        names
            .iter()
            .map(|name| named(connectors, name))
            .collect::<Result<_>>()?
    };
    let (mut reports, mut text, mut code) = (Vec::new(), String::new(), ExitCode::Success);
    for connector in chosen {
        let name = connector.name();
        let reached = connector.check().await;
        let error = reached
            .err()
            .map(|error| connector.redaction().text(&error.to_string()).into_owned());
        let state = error
            .as_deref()
            .map_or_else(|| "reached".to_owned(), sanitize::line);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}  {state}", styled(STRONG, name));
        if error.is_some() {
            code = ExitCode::Raised;
        }
        reports.push(json!({"name": name, "reached": error.is_none(), "error": error}));
    }
    if reports.is_empty() {
        text += NONE;
    }
    Ok((json!({"connectors": reports}), text, code))
}

const NONE: &str = "no connectors; write `connectors` into the configuration";

/// The functions for a person: one line each.
fn listed(bundles: &[Bundle]) -> String {
    let mut text = String::new();
    for bundle in bundles {
        // Writing to a string does not fail.
        for card in &bundle.functions {
            let name = styled(STRONG, &format!("{}.{}", bundle.name, card.function));
            let effect = if card.effect == FetchEffect::Writes {
                "  writes"
            } else {
                ""
            };
            let about = card.description.lines().next().unwrap_or_default();
            let parameters = super::tools::arguments_of(&card.parameters);
            let _ = writeln!(
                text,
                "{name}  {parameters}{effect}  {}",
                styled(FAINT, &sanitize::line(about))
            );
        }
        if let Some(reason) = &bundle.unavailable {
            let _ = writeln!(
                text,
                "{}  {}",
                styled(STRONG, &bundle.name),
                sanitize::line(reason)
            );
        }
    }
    if bundles.is_empty() { NONE.to_owned() } else { text }
}

/// Functions with their parameters.
fn shown(bundles: &[Bundle]) -> String {
    let mut text = String::new();
    for bundle in bundles {
        let _ = writeln!(
            text,
            "{}  {}",
            styled(STRONG, &bundle.name),
            sanitize::line(&bundle.description)
        );
        for card in &bundle.functions {
            let name = styled(STRONG, &format!("{}.{}", bundle.name, card.function));
            let schema = serde_json::to_string_pretty(&card.parameters).unwrap_or_default();
            let _ = writeln!(
                text,
                "\n{name}  {}\n{}",
                sanitize::line(&card.description),
                sanitize::text(&schema)
            );
        }
        if let Some(reason) = &bundle.unavailable {
            let _ = writeln!(text, "{}", sanitize::line(reason));
        }
    }
    text
}
