//! Connectors without a sandbox: what a call gets, and what it leaves.

use std::collections::HashSet;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cellblock_protocol::CallError;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Map, Value, json};

use super::*;
use crate::host_call::HostReply;

mod allowance;
mod memo;
mod redaction;
mod tables;

const SECRET: &str = "s3cr3t/key+1==";

/// A connector whose functions behave as their names say.
#[derive(Debug)]
struct Weather {
    memo: MemoPolicy,
    redaction: Redaction,
    requests: AtomicUsize,
    running: AtomicUsize,
    most_running: AtomicUsize,
    /// Number of times that its functions are still unknown.
    absent: AtomicUsize,
}

fn card(name: &str, properties: &Value, effect: FetchEffect) -> Card {
    Card {
        name: name.to_owned(),
        parameters: json!({"type": "object", "properties": properties, "required": ["city"]}),
        effect,
        ..Card::default()
    }
}

impl Connector for Weather {
    fn name(&self) -> &'static str {
        "weather"
    }

    fn description(&self) -> &'static str {
        "Forecasts."
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let city = json!({
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 3, "minimum": 1},
        });
        let mut typed = card("typed", &city, FetchEffect::Reads);
        typed.returns = Some(json!({"type": "object", "required": ["days"]}));
        let mut cards = vec![typed];
        for name in ["get-forecast", "slow", "rows", "large", "fail", "late"] {
            cards.push(card(name, &city, FetchEffect::Reads));
        }
        cards.push(card("book", &city, FetchEffect::Writes));
        let mut echo = card("echo", &json!({"city": {}}), FetchEffect::Reads);
        echo.description = format!("Uses the key {SECRET}.");
        cards.push(echo);
        async move {
            let left = self.absent.load(Ordering::Relaxed);
            if left > 0 {
                self.absent.store(left - 1, Ordering::Relaxed);
                let kind = ConnectorErrorKind::Provider { status: None };
                return Err(ConnectorError::new(kind, format!("not reached with {SECRET}")));
            }
            Ok(cards)
        }
        .boxed()
    }

    fn fetch(
        &self,
        function: &str,
        arguments: Map<String, Value>,
        _: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        let function = function.to_owned();
        async move {
            let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
            self.most_running.fetch_max(running, Ordering::Relaxed);
            let city = arguments["city"].clone();
            let answer = match &*function {
                "slow" => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Ok(json!({ "request": request }))
                }
                "rows" => Ok((0..13).map(|row| json!({"row": row, "city": city})).collect()),
                "large" => Ok("x".repeat(3 << 20).into()),
                "fail" => Err(ConnectorError::new(
                    ConnectorErrorKind::of_status(429, None),
                    format!("too many\n  requests for {SECRET}"),
                )),
                "late" => Err(ConnectorError::new(
                    ConnectorErrorKind::RateLimit {
                        retry_after: Some(Duration::from_millis(1500)),
                    },
                    "later",
                )),
                "echo" => Ok(city),
                _ => Ok(json!({"request": request, "arguments": arguments})),
            };
            self.running.fetch_sub(1, Ordering::Relaxed);
            answer.map(FetchAnswer::Value)
        }
        .boxed()
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    fn memo(&self) -> MemoPolicy {
        self.memo
    }
}

struct Fixture {
    weather: Arc<Weather>,
    grants: Grants,
}

impl Fixture {
    fn new() -> Self {
        Self::under(GrantTerms::default())
    }

    fn under(terms: GrantTerms) -> Self {
        Self::remembering(MemoPolicy::default(), terms)
    }

    fn remembering(memo: MemoPolicy, terms: GrantTerms) -> Self {
        let weather = Arc::new(Weather {
            memo,
            redaction: Redaction::new([SECRET]),
            requests: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
            absent: AtomicUsize::new(0),
        });
        let grants = Grants::new(&[Arc::clone(&weather) as Arc<dyn Connector>], terms);
        Self { weather, grants }
    }

    fn call(
        &self,
        connector: &str,
        function: &str,
        arguments: &Value,
    ) -> impl Future<Output = Result<HostReply, CallError>> + use<> {
        self.grants.fetch(
            json!({"connector": connector, "function": function, "arguments": arguments}),
            Instant::now(),
        )
    }

    /// Calls a function of the connector; returns its answer, and whether it was cached.
    async fn get(&self, function: &str, arguments: Value) -> Result<(Value, bool), CallError> {
        let reply = self.call("weather", function, &arguments).await?;
        Ok((answer(&reply), reply.value["cached"].as_bool().unwrap()))
    }

    fn requests(&self) -> usize {
        self.weather.requests.load(Ordering::Relaxed)
    }
}

fn answer(reply: &HostReply) -> Value {
    let mut json = Vec::new();
    reply.blobs[0].reader().read_to_end(&mut json).unwrap();
    serde_json::from_slice(&json).unwrap()
}

#[tokio::test]
async fn equal_calls_are_one_request() {
    let it = Fixture::new();
    let first = it.get("get_forecast", json!({"city": "Kyiv"})).await.unwrap();
    assert_eq!(
        first,
        (
            json!({"request": 0, "arguments": {"city": "Kyiv", "days": 3}}),
            false
        )
    );
    for equal in [
        json!({"city": "Kyiv"}),
        json!({"city": "Kyiv", "days": 3}),
        json!({"days": 3, "city": "Kyiv"}),
    ] {
        assert_eq!(
            it.get("get_forecast", equal).await.unwrap(),
            (first.0.clone(), true)
        );
    }
    let other = it
        .get("get_forecast", json!({"city": "Kyiv", "days": 4}))
        .await
        .unwrap();
    assert_eq!((&other.0["request"], other.1), (&json!(1), false));
    it.grants.forget();
    assert!(!it.get("get_forecast", json!({"city": "Kyiv"})).await.unwrap().1);
    assert_eq!(it.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn equal_calls_at_the_same_time_are_one_request() {
    let it = Fixture::new();
    let calls = (0..5).map(|_| it.get("slow", json!({"city": "Kyiv"})));
    let answers: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(it.requests(), 1);
    assert_eq!(answers.iter().filter(|(_, cached)| !cached).count(), 1);
    assert!(answers.iter().all(|(answer, _)| *answer == json!({"request": 0})));
}

#[tokio::test(start_paused = true)]
async fn a_request_is_canceled_with_the_last_of_its_calls() {
    let it = Fixture::new();
    let mut calls: Vec<_> = (0..2)
        .map(|_| Box::pin(it.call("weather", "slow", &json!({"city": "Kyiv"}))))
        .collect();
    for call in &mut calls {
        assert!(call.as_mut().now_or_never().is_none());
    }
    drop(calls.pop());
    tokio::time::advance(Duration::from_millis(1100)).await;
    assert!(calls.pop().unwrap().await.is_ok());
    it.grants.forget();
    drop(it.grants.take_records().await);

    let mut call = Box::pin(it.call("weather", "slow", &json!({"city": "Kyiv"})));
    assert!(call.as_mut().now_or_never().is_none());
    drop(call);
    let (records, _) = it.grants.take_records().await;
    assert!(records[0].is_canceled());
    assert_eq!(records[0].fetched_at, None);
    // Nothing of it is left, so that an equal call is a new request.
    assert!(!it.get("slow", json!({"city": "Kyiv"})).await.unwrap().1);
    assert_eq!(it.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn few_requests_run_at_the_same_time() {
    let it = Fixture::new();
    let calls = (0..40).map(|days| it.get("slow", json!({"city": "Kyiv", "days": days + 1})));
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(it.requests(), 40);
    assert_eq!(it.weather.most_running.load(Ordering::Relaxed), 8);
}

#[tokio::test]
async fn failures_are_not_kept_and_what_writes_is_always_called() {
    let it = Fixture::new();
    for request in 1..=2 {
        let error = it.get("fail", json!({"city": "Kyiv"})).await.unwrap_err();
        assert_eq!(error.code, "rate_limit");
        assert_eq!(error.message, "too many requests for [redacted]");
        assert_eq!(it.requests(), request);
    }
    let error = it.get("late", json!({"city": "Kyiv"})).await.unwrap_err();
    assert_eq!(error.details, json!({"retry_after": 1.5}));
    for request in 3..=4 {
        let (answer, cached) = it.get("book", json!({"city": "Kyiv"})).await.unwrap();
        assert_eq!((&answer["request"], cached), (&json!(request), false));
    }
}

#[tokio::test]
async fn a_call_of_another_connector_is_rejected_and_recorded() {
    let it = Fixture::new();
    for name in ["fred", "Weather", "", "weather\n"] {
        let error = it.call(name, "series", &json!({})).await.unwrap_err();
        assert_eq!(error.code, "not_granted");
        assert!(error.message.ends_with("it has `weather`"), "{error:?}");
        let (records, _) = it.grants.take_records().await;
        assert_eq!(
            (&*records[0].connector, records[0].outcome),
            (name, "not_granted")
        );
    }
    let none = Grants::new(&[], GrantTerms::default());
    let call = json!({"connector": "weather", "function": "slow"});
    let error = none.fetch(call, Instant::now()).await.unwrap_err();
    assert_eq!(
        error.message,
        "this session has no connector `weather`; it has none"
    );
    assert_eq!(it.requests(), 0);
}

#[tokio::test]
async fn invalid_arguments_are_rejected_before_the_request() {
    let it = Fixture::new();
    for (function, arguments, told) in [
        (
            "get_forecast",
            json!({"city": "Kyiv", "town": 1}),
            "weather.get_forecast: unknown parameter `town`; it has `city`, `days`",
        ),
        (
            "get_forecast",
            json!({"city": 5}),
            "weather.get_forecast: `city`: want string, but got number",
        ),
        (
            "get_forecast",
            json!({}),
            "weather.get_forecast: missing properties 'city'",
        ),
        (
            "get_forecast",
            json!({"city": "Kyiv", "days": 0}),
            "weather.get_forecast: `days`: must be >=1, but got 0",
        ),
        (
            "getforecast",
            json!({"city": "Kyiv"}),
            "`weather` has no function `getforecast`; did you mean `get_forecast`?",
        ),
    ] {
        let error = it.get(function, arguments).await.unwrap_err();
        assert_eq!((&*error.code, &*error.message), ("invalid_parameter", told));
    }
    let long = "x".repeat(1 << 20);
    let error = it.get("get_forecast", json!({ "city": long })).await.unwrap_err();
    assert!(error.message.contains("the limit is 1048576"), "{error:?}");
    let error = it.get("get_forecast", json!([])).await.unwrap_err();
    assert_eq!(error.code, "invalid_call");
    assert_eq!(it.requests(), 0);
}

#[tokio::test]
async fn an_answer_of_another_type_than_declared_is_a_parse_error() {
    let it = Fixture::new();
    let error = it.get("typed", json!({"city": "Kyiv"})).await.unwrap_err();
    assert_eq!(error.code, "parse");
    assert!(error.message.ends_with("missing properties 'days'"), "{error:?}");
}

#[tokio::test]
async fn calls_are_recorded_with_samples_of_their_rows() {
    let it = Fixture::new();
    for _ in 0..2 {
        it.get("rows", json!({"city": "x".repeat(500)})).await.unwrap();
    }
    it.get("fail", json!({"city": "Kyiv"})).await.unwrap_err();
    let (records, dropped) = it.grants.take_records().await;
    assert_eq!(dropped, 0);
    let [first, second, third] = &records[..] else {
        panic!("{records:?}")
    };
    assert_eq!((first.outcome, first.row_count), ("ok", Some(13)));
    assert_eq!(first.columns, ["row", "city"]);
    let numbers = |rows: &[Value]| rows.iter().map(|row| row["row"].clone()).collect::<Value>();
    assert_eq!(numbers(&first.head), json!([0, 1, 2, 3, 4]));
    assert_eq!(numbers(&first.tail), json!([8, 9, 10, 11, 12]));
    assert_eq!(
        first.arguments["city"].as_str().unwrap().chars().count(),
        201,
        "it is cut"
    );
    assert_eq!(first.arguments["days"], 3);
    assert!(!first.cached && second.cached);
    assert_eq!(first.fetched_at, second.fetched_at);
    assert_eq!((third.outcome, third.row_count), ("rate_limit", None));
    assert_eq!(third.error.as_deref(), Some("too many requests for [redacted]"));

    for _ in 0..203 {
        it.get("rows", json!({"city": "Kyiv"})).await.unwrap();
    }
    let (records, dropped) = it.grants.take_records().await;
    assert_eq!((records.len(), dropped), (200, 3));
}

#[tokio::test]
async fn large_answers_are_kept_in_files() {
    let it = Fixture::new();
    for cached in [false, true] {
        let reply = it
            .call("weather", "large", &json!({"city": "Kyiv"}))
            .await
            .unwrap();
        assert!(matches!(
            &reply.blobs[0],
            cellblock_protocol::Blob::File(_, 3_145_730)
        ));
        assert_eq!(reply.value["cached"], cached);
        assert_eq!(answer(&reply).as_str().unwrap().len(), 3 << 20);
    }
}

#[tokio::test]
async fn the_oldest_large_answers_are_forgotten_first() {
    let it = Fixture::new();
    for days in 1..=33 {
        it.get("large", json!({"city": "Kyiv", "days": days}))
            .await
            .unwrap();
    }
    let cached = async |days: u32| {
        it.get("large", json!({"city": "Kyiv", "days": days}))
            .await
            .unwrap()
            .1
    };
    assert!(cached(33).await);
    assert!(cached(2).await);
    assert!(!cached(1).await);
}

#[tokio::test]
async fn a_connector_that_did_not_answer_is_asked_again() {
    let it = Fixture::new();
    it.weather.absent.store(2, Ordering::Relaxed);
    let bundles = it.grants.bundles().await;
    assert_eq!(
        bundles[0].unavailable.as_deref(),
        Some("not reached with [redacted]")
    );
    assert_eq!(bundles[0].functions, []);
    let error = it.get("echo", json!({"city": 1})).await.unwrap_err();
    assert_eq!(
        (&*error.code, &*error.message),
        ("provider", "not reached with [redacted]")
    );
    assert!(it.get("echo", json!({"city": 1})).await.is_ok());
    assert_eq!(it.grants.bundles().await[0].functions.len(), 9);
}

#[test]
fn names_of_functions_are_attributes_in_python() {
    let mut taken = HashSet::new();
    for (name, function) in [
        ("get_forecast", "get_forecast"),
        ("get-forecast", "get_forecast_2"),
        ("get.forecast", "get_forecast_3"),
        ("class", "class_"),
        ("print", "print"),
        ("__init__", "init__"),
        ("2nd", "f_2nd"),
        ("", "f_"),
        ("погода", "f__2"),
    ] {
        assert_eq!(name::function(name, &mut taken), function, "{name}");
    }
}

#[test]
fn names_that_code_needs_are_rejected() {
    assert_eq!(check_name("weather"), Ok(()));
    for (name, told) in [
        ("print", "is a builtin of Python; choose another name"),
        ("class", "is a keyword of Python; choose another name"),
        ("pd", "is a name of the kernel; choose another name"),
        ("connectors", "is a name of the kernel; choose another name"),
        ("cellblock", "is a name of the kernel; choose another name"),
        ("_weather", "cannot begin with `_`; choose another name"),
        (
            "my-server",
            "cannot be a name in code; use letters, digits and `_`, and begin with a letter",
        ),
    ] {
        assert_eq!(check_name(name), Err(told.to_owned()), "{name}");
    }
}

#[test]
fn a_schema_that_takes_too_long_to_check_is_left_to_the_connector() {
    use super::schema::DeclaredSchema;

    let recursive =
        json!({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}});
    assert!(DeclaredSchema::new(&recursive).is_none());
    let mut defs = Map::new();
    for level in 0..20 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        defs.insert(format!("d{level}"), json!({"anyOf": [next, next]}));
    }
    defs.insert("d20".to_owned(), json!(false));
    let exponential = json!({"$ref": "#/$defs/d0", "$defs": defs});
    assert!(DeclaredSchema::new(&exponential).is_none());
    for other in [
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"pattern": "(?=a)b"}),
        json!({"type": "thing"}),
    ] {
        assert!(DeclaredSchema::new(&other).is_none(), "{other}");
    }
    let usual = json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}});
    assert!(
        DeclaredSchema::new(&usual)
            .unwrap()
            .check(&json!({"a": 1}))
            .is_err()
    );
}

#[tokio::test]
async fn the_catalog_lists_functions_within_its_budget() {
    let it = Fixture::new();
    let connectors = [Arc::clone(&it.weather) as Arc<dyn Connector>];
    let text = catalog(&connectors, 1000).await;
    assert!(
        text.contains("- `weather.echo(city)`: Uses the key [redacted].\n"),
        "{text}"
    );
    assert!(
        text.contains("- `weather.get_forecast(city: string, days?: integer)`\n"),
        "{text}"
    );
    let text = catalog(&connectors, 100).await;
    assert!(text.len() < 500, "{text}");
    assert!(text.contains("more functions"), "{text}");
    assert_eq!(catalog(&[], 1000).await, "");
}

#[tokio::test]
async fn a_try_refuses_what_writes_and_records_the_call() {
    let fixture = Fixture::new();
    let kyiv = json!({"city": "Kyiv"});
    let trying = Fixture {
        weather: Arc::clone(&fixture.weather),
        grants: fixture.grants.of_cell(WriteMode::Trying),
    };
    let error = trying.call("weather", "book", &kyiv).await.unwrap_err();
    assert_eq!(error.code, "not_granted");
    assert!(error.message.contains("keep the try"), "{}", error.message);
    trying.call("weather", "get_forecast", &kyiv).await.unwrap();
    // Both are of one session.
    let (records, _) = fixture.grants.take_records().await;
    let outcomes: Vec<_> = records
        .iter()
        .map(|it| (it.function.as_str(), it.outcome))
        .collect();
    assert_eq!(outcomes, [("book", "not_granted"), ("get_forecast", "ok")]);
    assert_eq!(fixture.weather.requests.load(Ordering::Relaxed), 1);
    fixture.call("weather", "book", &kyiv).await.unwrap();
}
