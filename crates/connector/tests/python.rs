//! Connectors over Python modules: plain functions, and a bundle of Parsimony.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_connector::{CommandConnector, GivenValues, TypeOptions};
use cellblock_interpreter::connector::{Card, Connector, FetchRecord, GrantTerms, direct};
use serde_json::{Map, Value, json};

/// Longer than anything takes on a busy machine, and than packages take to be installed.
const LONG: Duration = Duration::from_mins(10);

fn connector(module: &str, bound: &[(&str, &str)], more: &Value) -> Arc<dyn Connector> {
    let mut options = json!({"module": module, "timeout": "5m", "start_timeout": "10m"});
    for (key, value) in more.as_object().unwrap() {
        options[key] = value.clone();
    }
    let options = TypeOptions::read(&options).unwrap();
    let bound = bound
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let bound = GivenValues {
        values: bound.clone().collect(),
        secrets: bound.map(|(_, value)| value).collect(),
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let home = Some(cellblock_testkit::home().unwrap());
    Arc::new(
        CommandConnector::python("macro", &options, GivenValues::default(), &bound, &folder, home).unwrap(),
    )
}

fn plain(more: &Value) -> Arc<dyn Connector> {
    connector("plain", &[("token", "t0ken-of-the-house")], more)
}

async fn call(
    connector: &Arc<dyn Connector>,
    function: &str,
    arguments: Value,
) -> (FetchRecord, Option<Value>) {
    let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
    let until = Instant::now() + LONG;
    let (record, value) = direct::call(
        Arc::clone(connector),
        function,
        arguments,
        until,
        GrantTerms::default(),
    )
    .await;
    (record.unwrap(), value)
}

/// The kind and the text of the error of a call.
async fn error(connector: &Arc<dyn Connector>, function: &str, arguments: Value) -> (String, String) {
    let (record, _) = call(connector, function, arguments).await;
    (record.outcome.to_owned(), record.error.unwrap())
}

async fn cards(connector: &Arc<dyn Connector>) -> Vec<Card> {
    connector.cards().await.unwrap()
}

#[tokio::test]
async fn functions_of_a_module_are_described_by_their_signatures() {
    let found = cards(&plain(&json!({}))).await;
    let names: Vec<_> = found.iter().map(|card| card.name.as_str()).collect();
    assert_eq!(names, ["reading", "odd", "fails", "waits"]);
    assert_eq!(found[0].description, "A reading of a room.");
    assert_eq!(
        found[0].parameters,
        json!({
            "type": "object",
            "properties": {
                "room": {"type": "string", "description": "Name of the room."},
                "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": null},
                "unit": {"enum": ["C", "F"], "default": "C"},
                "rooms": {"type": "array", "items": {"type": "string"}, "default": []},
                "options": {
                    "anyOf": [{"type": "object", "additionalProperties": {"type": "integer"}},
                        {"type": "null"}],
                    "default": null,
                },
            },
            "required": ["room"],
            "additionalProperties": false,
        })
    );
    let with_writes = cards(&plain(&json!({"allow_writes": true}))).await;
    assert_eq!(with_writes.last().unwrap().name, "change");
}

#[tokio::test]
async fn arguments_have_the_types_of_their_parameters_and_results_become_json() {
    let plain = plain(&json!({}));
    let (_, value) = call(
        &plain,
        "reading",
        json!({"room": "cellar", "unit": "F", "day": "2026-03-04"}),
    )
    .await;
    assert_eq!(value.unwrap(), json!({"room": "cellarFAHRENHEIT", "degrees": 4}));
    let (_, value) = call(&plain, "odd", json!({})).await;
    let told = json!({"1": null, "when": "2026-01-02T03:00:00", "set": [1], "tuple": [1, null]});
    assert_eq!(value.unwrap(), told);
    let (_, value) = call(&plain, "waits", json!({"seconds": 0})).await;
    assert_eq!(value.unwrap(), "waited");
}

#[tokio::test]
async fn exceptions_are_errors_without_folders_of_the_host() {
    let plain = plain(&json!({}));
    for (how, kind, text) in [
        ("exit", "provider", "macro.fails: SystemExit: 3"),
        ("timeout", "timeout", "macro.fails: too slow"),
        (
            "bytes",
            "provider",
            "macro.fails: the function returned bytes, which have no form in JSON; return text or a table",
        ),
        ("rain", "provider", "macro.fails: ValueError: no rain in …/x"),
    ] {
        let told = error(&plain, "fails", json!({"how": how})).await;
        assert_eq!(told, (kind.to_owned(), text.to_owned()));
    }
}

#[tokio::test]
async fn a_module_that_cannot_be_used_is_reported_with_its_reason() {
    for (module, bound, words) in [
        (
            "nowhere_to_be_found",
            "",
            "macro: the module `nowhere_to_be_found` cannot be imported: ModuleNotFoundError: No module \
             named 'nowhere_to_be_found'",
        ),
        ("plain:NOTHING", "", "macro: the module `plain` has no `NOTHING`"),
        (
            "plain:NUMBER",
            "",
            "macro: `module` names a int, which is not a bundle",
        ),
        (
            "plain:SOME",
            "key",
            "macro: `bind` has `key`, which no function has as a parameter",
        ),
    ] {
        let bound: &[_] = if bound.is_empty() {
            &[]
        } else {
            &[(bound, "s3cret-of-the-house")]
        };
        let error = connector(module, bound, &json!({}))
            .cards()
            .await
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(words), "{error}");
    }
    let found = cards(&connector("plain:SOME", &[], &json!({}))).await;
    assert_eq!(
        found.iter().map(|card| card.name.as_str()).collect::<Vec<_>>(),
        ["first", "second"]
    );
}

#[tokio::test]
async fn a_bundle_of_parsimony_works_as_it_is() {
    let more = json!({"packages": ["parsimony-core==0.0.2"]});
    let bundle = connector(
        "macro_bundle:CONNECTORS",
        &[("api_key", "k3y-of-the-provider")],
        &more,
    );
    let found = cards(&bundle).await;
    assert_eq!(
        found.iter().map(|card| card.name.as_str()).collect::<Vec<_>>(),
        ["series", "text"]
    );
    assert_eq!(
        found[0].parameters,
        json!({
            "type": "object",
            "properties": {
                "series_id": {"type": "string"},
                "frequency": {"enum": ["m", "q"], "default": "m"},
                "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
            },
            "required": ["series_id"],
            "additionalProperties": false,
        })
    );
    let (record, _) = call(&bundle, "series", json!({"series_id": "GDP"})).await;
    assert_eq!(record.outcome, "ok", "{:?}", record.error);
    assert_eq!(record.row_count, Some(2));
    let second = json!({"date": "2026-02-01T00:00:00", "value": null, "unit": "%"});
    assert_eq!(record.head[1], second);
    let (_, value) = call(&bundle, "text", json!({"topic": "x"})).await;
    assert_eq!(value.unwrap(), "about x");
    for (series, kind, words) in [
        ("LIMIT", "rate_limit", "rate limit hit, retry after 7s"),
        ("EMPTY", "empty_data", "no data returned"),
        ("KEY", "unauthorized", "the key [redacted] is not registered"),
        ("BROKEN", "parse", "could not be parsed"),
    ] {
        let told = error(&bundle, "series", json!({"series_id": series})).await;
        assert!(told.0 == kind && told.1.contains(words), "{told:?}");
    }
}

#[tokio::test]
async fn packages_that_do_not_exist_are_reported() {
    let more = json!({"packages": ["cellblock-has-no-such-package==1.0"]});
    let error = connector("plain", &[], &more)
        .cards()
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "macro: its `packages` cannot be installed; the log has the reason"
    );
}

#[test]
fn mistakes_are_reported_with_their_keys() {
    for (more, path, words) in [
        (json!({}), "", "missing key `module`"),
        (json!({"module": "a b"}), "module", "must be the name of a module"),
        (json!({"module": "-c"}), "module", "must be the name of a module"),
        (json!({"module": "a:"}), "module", "must be the name of a module"),
        (
            json!({"module": "a", "packages": ["--index-url=x"]}),
            "packages",
            "is not a usable requirement",
        ),
    ] {
        let options = TypeOptions::read(&more).unwrap();
        let [environment, bound] = [GivenValues::default(), GivenValues::default()];
        let folder = Path::new("");
        let compiled = CommandConnector::python("macro", &options, environment, &bound, folder, None);
        let mistakes = compiled.unwrap_err();
        assert_eq!(mistakes[0].path.join("."), path);
        assert!(mistakes[0].message.contains(words), "{mistakes:?}");
    }
}
