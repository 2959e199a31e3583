//! Connectors over programs: their answers, their end, and programs that break the protocol.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{Int64Array, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use cellblock_connector::{CommandConnector, GivenValues, TypeOptions};
use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, ConnectorErrorKind, FetchAnswer, GrantTerms, direct,
};
use cellblock_testkit::wait::{block_until, until};
use cellblock_testkit::{fenced, require, workspace_root};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_mins(2);

struct House {
    connector: Arc<CommandConnector>,
    folder: TempDir,
}

fn house(how: &str, more: &Value) -> House {
    let folder = TempDir::new().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/house.py");
    let mut options = json!({
        "command": ["python3", "-u", script, how],
        "timeout": "2m", "start_timeout": "2m", "max_result": "1MiB",
    });
    for (key, value) in more.as_object().unwrap() {
        options[key] = value.clone();
    }
    let options = TypeOptions::read(&options).unwrap();
    let text = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let given = GivenValues {
        values: [
            ("NOTES".to_owned(), text("notes")),
            ("TABLE".to_owned(), text("table")),
            ("HOUSE_KEY".to_owned(), "s3cret-of-the-house".to_owned()),
        ]
        .into(),
        secrets: vec!["s3cret-of-the-house".to_owned()],
    };
    let connector = CommandConnector::new("house", &options, given, folder.path().to_owned()).unwrap();
    let connector = Arc::new(connector);
    House { connector, folder }
}

impl House {
    async fn call(&self, function: &str, arguments: Value) -> Result<FetchAnswer, ConnectorError> {
        let Value::Object(arguments) = arguments else {
            panic!("no arguments")
        };
        let until = Instant::now() + LONG;
        self.connector.fetch(function, arguments, until).await
    }

    async fn work(&self, be: &str) -> Result<FetchAnswer, ConnectorError> {
        self.call("work", json!({"be": be})).await
    }

    async fn value(&self, be: &str) -> Value {
        match self.work(be).await.unwrap() {
            FetchAnswer::Value(value) | FetchAnswer::LargeValue(value, _) => value,
            other => panic!("{other:?}"),
        }
    }

    async fn failure(&self, be: &str) -> (ConnectorErrorKind, String) {
        let error = self.work(be).await.unwrap_err();
        (error.kind(), error.to_string())
    }

    fn notes(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("notes")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn pids(&self) -> Vec<u32> {
        let notes = self.notes();
        let pids = notes.iter().filter_map(|note| note.strip_prefix("pid "));
        pids.map(|pid| pid.parse().unwrap()).collect()
    }

    /// Writes a table with a column of so many numbers, which the program sends.
    fn table(&self, rows: i64) -> usize {
        let column = Arc::new(Int64Array::from_iter_values(0..rows));
        let batch = RecordBatch::try_from_iter([("n", column as _)]).unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        let bytes = writer.into_inner().unwrap();
        std::fs::write(self.folder.path().join("table"), &bytes).unwrap();
        bytes.len()
    }
}

fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

fn names(cards: &[Card]) -> Vec<&str> {
    cards.iter().map(|card| card.name.as_str()).collect()
}

/// The result of a call as code gets it, with all checks.
async fn direct(house: &House, be: &str) -> (String, Vec<Value>, Option<String>) {
    let Value::Object(arguments) = json!({"be": be}) else {
        unreachable!()
    };
    let connector: Arc<dyn Connector> = Arc::clone(&house.connector) as _;
    let (record, _) = direct::call(
        connector,
        "work",
        arguments,
        Instant::now() + LONG,
        GrantTerms::default(),
    )
    .await;
    let record = record.unwrap();
    (record.outcome.to_owned(), record.head, record.error)
}

#[tokio::test]
async fn a_program_answers_calls_with_values_rows_tables_and_errors() {
    let house = house("good", &json!({}));
    let cards = house.connector.cards().await.unwrap();
    assert_eq!(names(&cards), ["work", "slow", "none"]);
    assert_eq!(cards[0].description, "Does work.");
    let value = house.value("value").await;
    assert_eq!(value, json!({"greeting": "hello", "arguments": {"be": "value"}}));
    let (outcome, head, _) = direct(&house, "rows").await;
    assert_eq!(outcome, "ok");
    assert_eq!(
        head,
        [
            json!({"city": "Graz", "people": 300_000}),
            json!({"city": "Wien", "people": null})
        ]
    );
    house.table(3);
    assert_eq!(
        direct(&house, "arrow").await.1,
        [json!({"n": 0}), json!({"n": 1}), json!({"n": 2})]
    );
    let retry_after = Some(Duration::from_secs(5));
    let limit = (
        ConnectorErrorKind::RateLimit { retry_after },
        "house.work: slow down".to_owned(),
    );
    assert_eq!(house.failure("limit").await, limit);
    let none = house.call("none", json!({})).await.unwrap_err();
    assert_eq!(none.kind(), ConnectorErrorKind::EmptyData);
    assert_eq!(house.pids().len(), 1);
}

#[tokio::test]
async fn a_program_gets_little_of_the_environment_and_its_secrets_are_removed() {
    let house = house("good", &json!({}));
    let value = house.value("environment").await;
    let names: Vec<_> = value["names"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        names.contains(&"PATH") && names.contains(&"HOUSE_KEY"),
        "{names:?}"
    );
    // Cargo sets it for every test.
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
    let folder = house.folder.path().canonicalize().unwrap();
    assert_eq!(value["folder"], folder.to_str().unwrap());
    let (outcome, _, error) = direct(&house, "secret").await;
    assert_eq!(outcome, "unauthorized");
    assert_eq!(error.unwrap(), "house.work: bad key [redacted]");
    assert!(!format!("{:?}", house.connector).contains("s3cret"));
}

#[tokio::test]
async fn calls_at_the_same_time_share_a_process_and_a_dropped_one_is_canceled() {
    let house = house("good", &json!({}));
    let mut slow = Box::pin(house.call("slow", json!({"key": "never"})));
    let quick = tokio::select! {
        _ = &mut slow => panic!("it never answers"),
        quick = async {
            until("the slow call is read", || house.notes().iter().any(|it| it == "call")).await;
            house.call("slow", json!({"key": "quick"})).await
        } => quick,
    };
    assert!(matches!(quick.unwrap(), FetchAnswer::Value(Value::String(key)) if key == "quick"));
    drop(slow);
    until("it is canceled", || {
        house.notes().iter().any(|it| it == "canceled")
    })
    .await;
    // The answer to the canceled call is dropped.
    assert_eq!(house.value("value").await["greeting"], "hello");
    assert_eq!(house.pids().len(), 1);
}

#[tokio::test]
async fn a_table_larger_than_memory_is_kept_in_a_file_and_one_over_the_limit_is_skipped() {
    let house = house("good", &json!({"max_result": "2MiB"}));
    let length = house.table(200_000);
    let answer = house.work("arrow").await.unwrap();
    let FetchAnswer::Arrow(cellblock_interpreter::connector::Blob::File(file, bytes)) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(
        (bytes, file.metadata().unwrap().len()),
        (length as u64, length as u64)
    );
    let (_, text) = house.failure("large arrow").await;
    let told = "house.work: the command returned more than 2 MiB, the limit `max_result`; request less, \
                such as fewer rows or columns";
    assert_eq!(text, told);
    assert_eq!(house.value("value").await["greeting"], "hello");
    assert_eq!(house.pids().len(), 1);
}

#[tokio::test]
async fn a_program_that_breaks_the_protocol_is_ended_and_started_again() {
    let again = "; it was ended, and is started again for the next call";
    for (be, words) in [
        (
            "garbage",
            "house.work: the command printed a line that is not an answer (expected value at line 1 \
             column 1): `Loading...`; it must print only answers to stdout, and all else to stderr",
        ),
        (
            "unknown",
            "house.work: the command answered the request 99, which it does not have; each request has \
             one answer, with its `id`",
        ),
        (
            "flood",
            "house.work: the command answered the request 1000000, which it does not have",
        ),
        (
            "long",
            "house.work: the command returned more than 1 MiB, the limit `max_result`",
        ),
        (
            "cut arrow",
            "house.work: the command announced an Arrow IPC stream of 100 bytes and closed its stdout \
             after 10",
        ),
        (
            "close",
            "house.work: the command closed its stdout before it answered",
        ),
        (
            "exit",
            "house.work: the command exited before it answered; the log has what it printed to stderr",
        ),
        (
            "bad",
            "house.work: the command answered the request 2 without exactly one of `value`, `rows`, \
             `arrow` and `error`",
        ),
    ] {
        let house = house("good", &json!({}));
        let (_, text) = house.failure(be).await;
        assert!(text.starts_with(words) && text.ends_with(again), "{be}: {text}");
        assert_eq!(house.value("value").await["greeting"], "hello", "{be}");
        let pids = house.pids();
        assert_eq!(pids.len(), 2, "{be}");
        until("the first process is gone", || !runs(pids[0])).await;
    }
}

#[tokio::test]
async fn a_second_answer_to_a_call_ends_the_program() {
    let house = house("good", &json!({}));
    let pids = || house.pids();
    // The first answer is good.
    assert_eq!(house.value("twice").await, 1);
    until("it is ended", || !runs(pids()[0])).await;
    assert_eq!(house.value("value").await["greeting"], "hello");
    assert_eq!(pids().len(), 2);
}

#[tokio::test]
async fn invalid_arrow_is_an_error_that_names_the_function() {
    let house = house("good", &json!({}));
    let (outcome, _, error) = direct(&house, "invalid arrow").await;
    assert_eq!(outcome, "parse");
    let error = error.unwrap();
    assert!(
        error.starts_with("house.work: the answer is not a valid Arrow IPC stream"),
        "{error}"
    );
    assert_eq!(house.value("value").await["greeting"], "hello");
}

#[tokio::test]
async fn a_silent_program_is_ended_at_the_timeout() {
    for (how, arguments) in [("good", "silence"), ("hears-once", "value")] {
        let house = house(how, &json!({"timeout": "400ms"}));
        house.connector.cards().await.unwrap();
        let (kind, text) = house.failure(arguments).await;
        assert_eq!(kind, ConnectorErrorKind::Timeout);
        let told = "house.work: the command did not answer within 0.4s, the limit `timeout`; it was \
                    ended, and is started again for the next call";
        assert_eq!(text, told);
        until("it is gone", || !runs(house.pids()[0])).await;
    }
}

#[tokio::test]
async fn calls_that_end_with_their_cells_do_not_keep_a_silent_program() {
    let house = house("good", &json!({"timeout": "300ms"}));
    house.connector.cards().await.unwrap();
    let until = Instant::now() + Duration::from_millis(50);
    let call = house.connector.fetch(
        "work",
        serde_json::from_str(r#"{"be": "silence"}"#).unwrap(),
        until,
    );
    let error = call.await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "house.work: the command did not answer before the end of the cell"
    );
    // A test may wait for the limit that it tests.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (kind, _) = house.failure("silence").await;
    assert_eq!(kind, ConnectorErrorKind::Timeout);
    assert_eq!(house.pids().len(), 2);
}

#[tokio::test]
async fn a_program_that_cannot_start_is_reported_and_not_started_all_the_time() {
    let exited = "house: the command exited before it answered; the log has what it printed to stderr; it \
                  was ended, and is started again for the next call";
    let broken = house("exits", &json!({}));
    let cards = || async { broken.connector.cards().await.unwrap_err().to_string() };
    assert_eq!(cards().await, exited);
    assert_eq!(cards().await, exited);
    let text = cards().await;
    assert!(
        text.contains("it has failed 2 times in a row, and is started again in"),
        "{text}"
    );
    assert_eq!(broken.pids().len(), 2);
    let once = house("exits-once", &json!({}));
    once.connector.cards().await.unwrap_err();
    assert_eq!(once.value("value").await["greeting"], "hello");
}

#[tokio::test]
async fn a_program_that_is_not_ready_in_time_is_ended() {
    for how in ["mute", "deaf"] {
        let house = house(how, &json!({"start_timeout": "2s"}));
        let error = house.connector.cards().await.unwrap_err();
        assert_eq!(error.kind(), ConnectorErrorKind::Timeout);
        let told = "house: the command did not list its functions within 2s, the limit `start_timeout`; \
                    it was ended";
        assert!(error.to_string().starts_with(told), "{error}");
        until("it is gone", || house.pids().iter().all(|pid| !runs(*pid))).await;
    }
}

#[tokio::test]
async fn an_invalid_list_of_functions_is_reported() {
    for (how, words) in [
        (
            "twice-listed",
            "house: the command lists the function `work` twice; give each its own name",
        ),
        (
            "no-effect",
            "house: the command lists the function `work` with an invalid description: \
             missing field `effect`",
        ),
        (
            "no-list",
            "house: the command answered `functions` without a list of functions in `value`",
        ),
        ("refuses", "house: cannot import house"),
    ] {
        let house = house(how, &json!({}));
        let error = house.connector.cards().await.unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
        until("it is gone", || house.pids().iter().all(|pid| !runs(*pid))).await;
    }
}

#[tokio::test]
async fn functions_that_write_need_permission() {
    let house = house("good", &json!({"allow_writes": true}));
    let cards = house.connector.cards().await.unwrap();
    assert_eq!(names(&cards), ["work", "slow", "change", "none"]);
}

#[tokio::test]
async fn a_missing_program_is_reported() {
    let house = house("good", &json!({"command": ["/nowhere/house"]}));
    let error = house.connector.cards().await.unwrap_err().to_string();
    assert!(
        error.starts_with("house: the command cannot be started: No such file"),
        "{error}"
    );
}

#[test]
fn the_end_of_the_host_leaves_no_process() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let house = house("good", &json!({}));
    runtime.block_on(house.value("children"));
    let pids = house.pids();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| runs(*pid)));
    runtime.shutdown_background();
    block_until("nothing is left", || !pids.iter().any(|pid| runs(*pid)));
}

#[tokio::test]
async fn a_dropped_connector_leaves_no_process() {
    let house = house("good", &json!({}));
    house.value("children").await;
    let pids = house.pids();
    let House { connector, folder } = house;
    drop(connector);
    until("nothing is left", || !pids.iter().any(|pid| runs(*pid))).await;
    drop(folder);
}

/// Calls a program that a page shows.
async fn shown(
    language: &str,
    command: &[&str],
    function: &str,
    arguments: Value,
) -> Result<FetchAnswer, ConnectorError> {
    let page = std::fs::read_to_string(workspace_root().join("docs/connector-programs.md")).unwrap();
    let folder = TempDir::new().unwrap();
    let name = if language == "js" {
        "program.mjs"
    } else {
        "program.py"
    };
    let program = folder.path().join(name);
    std::fs::write(&program, fenced(&page, language)[0]).unwrap();
    let mut command = command.to_vec();
    command.push(name);
    let options = json!({"command": command, "timeout": "2m", "start_timeout": "2m"});
    let options = TypeOptions::read(&options).unwrap();
    let folder = folder.path().to_owned();
    let connector = CommandConnector::new("shown", &options, GivenValues::default(), folder).unwrap();
    assert_eq!(names(&connector.cards().await.unwrap()), [function]);
    let Value::Object(arguments) = arguments else {
        unreachable!()
    };
    connector.fetch(function, arguments, Instant::now() + LONG).await
}

#[tokio::test]
async fn the_python_program_of_the_guide_works() {
    let call = |room| shown("python", &["python3"], "temperatures", json!({"room": room}));
    assert!(matches!(call("kitchen").await.unwrap(), FetchAnswer::Arrow(_)));
    let error = call("attic").await.unwrap_err();
    assert_eq!(error.kind(), ConnectorErrorKind::EmptyData);
    assert_eq!(
        error.to_string(),
        "shown.temperatures: `attic` is not a room; the rooms are ['kitchen', 'cellar']"
    );
}

#[tokio::test]
async fn the_node_program_of_the_guide_works() {
    require!(Node);
    let call = |zone| shown("js", &["node"], "now", json!({"zone": zone}));
    assert!(matches!(
        call("UTC").await.unwrap(),
        FetchAnswer::Value(Value::String(_))
    ));
    assert_eq!(
        call("Nowhere").await.unwrap_err().kind(),
        ConnectorErrorKind::InvalidParameter
    );
}
