//! Connectors in real sandboxes: calls from cells, their errors, and what is left of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use cellblock_interpreter::Session;
use cellblock_interpreter::alias::{AliasStore, Bounds};
use cellblock_interpreter::cell::{Cell, Rescue};
use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, ConnectorErrorKind, FetchAnswer, FetchEffect, Redaction,
};
use cellblock_interpreter::derivation::{self, DerivationPolicy, LentResults};
use cellblock_interpreter::execution::{Outcome, VariablesState};
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::toolset::{BoxFuture, ToolsetTerms};
use serde_json::{Map, Value, json};

use crate::backend::slowness;
use crate::place::machine_lacks;
use crate::support::{block_on, exception, goes_on, interpreter, run, run_for, value};

#[derive(Debug, Default)]
struct Weather {
    redaction: Redaction,
    requests: AtomicUsize,
    /// Requests that have not ended.
    open: Arc<AtomicUsize>,
}

struct OpenConnector(Arc<AtomicUsize>);

impl Drop for OpenConnector {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Connector for Weather {
    fn name(&self) -> &'static str {
        "weather"
    }

    fn description(&self) -> &'static str {
        "Forecasts for cities."
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let cards = ["get-forecast", "slow", "limited", "large", "table", "broken"].map(|name| Card {
            name: name.to_owned(),
            description: format!("Does {name}."),
            parameters: json!({
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 3}},
                "required": ["city"],
            }),
            effect: FetchEffect::Reads,
            ..Card::default()
        });
        Box::pin(async move { Ok(cards.to_vec()) })
    }

    fn fetch(
        &self,
        function: &str,
        arguments: Map<String, Value>,
        _: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let function = function.to_owned();
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.open.fetch_add(1, Ordering::SeqCst);
        let open = OpenConnector(Arc::clone(&self.open));
        Box::pin(async move {
            let _open = open;
            match &*function {
                "slow" => {
                    tokio::time::sleep(Duration::from_hours(1)).await;
                    Ok(Value::Null.into())
                }
                "limited" => Err(ConnectorError::new(
                    ConnectorErrorKind::RateLimit {
                        retry_after: Some(Duration::from_secs(2)),
                    },
                    "weather allows 1 request per minute",
                )),
                "table" => Ok(FetchAnswer::Arrow(table(10_000).into())),
                "broken" => Ok(FetchAnswer::Arrow(vec![0; 100].into())),
                "large" => Ok(Value::from("x".repeat(5 << 20)).into()),
                _ => Ok(json!([{"city": arguments["city"], "days": arguments["days"]}]).into()),
            }
        })
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}

/// An Arrow IPC stream with numbers and texts.
fn table(rows: i64) -> Vec<u8> {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let texts = StringArray::from_iter_values((0..rows).map(|n| format!("row {n}")));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("text", Arc::new(texts))]).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

async fn session(rescue: Rescue) -> (Session, Arc<Weather>) {
    let weather = Arc::new(Weather::default());
    let session = interpreter().await.session(SessionOptions {
        rescue,
        connectors: vec![Arc::clone(&weather) as Arc<dyn Connector>],
        ..SessionOptions::default()
    });
    (session, weather)
}

#[test]
fn equal_calls_are_answered_once_and_both_are_recorded() {
    block_on(async {
        let (session, weather) = session(Rescue::Idle).await;
        let code = "a = weather.get_forecast('Kyiv')\na[0]['days'] = 99\n\
                    b = weather['get-forecast'](city='Kyiv', days=3)\n\
                    (a[0]['days'], b[0]['days']) == (99, 3)";
        let ran = run(&session, code).await;
        assert_eq!(ran.outcome, Outcome::Completed, "{ran:?}");
        let [first, second] = &ran.fetches[..] else {
            panic!("{ran:?}")
        };
        assert!(!first.cached && second.cached);
        assert_eq!(json!(first.arguments), json!({"city": "Kyiv", "days": 3}));
        assert_eq!((first.row_count, &*first.columns[0]), (Some(1), "city"));
        assert_eq!(weather.requests.load(Ordering::SeqCst), 1);

        // Variables of a producer remember it.
        let code = "rows = weather.get_forecast('Kyiv')\nother = 1\ncity = rows[0]['city']";
        session
            .execute(Cell::new(code).produced_by("a.py"))
            .await
            .unwrap();
        session
            .execute(Cell::new("plain = 1\nderived = city").produced_by("b.py"))
            .await
            .unwrap();
        let origins = session.origins().await.unwrap();
        let call = r#"weather.get_forecast({"city":"Kyiv","days":3}) at "#;
        assert!(origins["rows"].fetches.iter().all(|it| it.starts_with(call)));
        assert_eq!(
            (origins["rows"].fetches.len(), &*origins["derived"].producer),
            (1, "b.py")
        );
        assert_eq!(origins["derived"].fetches, origins["rows"].fetches);

        // Another cell has the answers, too, until the session is reset.
        let ran = run(&session, "weather.get_forecast('Kyiv');").await;
        assert!(ran.fetches[0].cached);
        session.reset().await.unwrap();
        let ran = run(&session, "weather.get_forecast('Kyiv');").await;
        assert!(!ran.fetches[0].cached);
    });
}

#[test]
fn a_table_is_a_data_frame_which_a_rescue_keeps() {
    needs!(Rescue);
    block_on(async {
        let (session, _) = session(Rescue::On).await;
        let code = "df = weather.table('Kyiv')\nagain = weather.table.fetch('Kyiv')\ndf.loc[0, 'n'] = -1\n\
                    (type(df).__name__, len(df), int(df['n'].sum()), int(again.df['n'].sum()), again.cached)";
        let ran = run(&session, code).await;
        let [first, second] = &ran.fetches[..] else {
            panic!("{ran:?}")
        };
        let artifact = first.artifact.as_ref().unwrap();
        assert_eq!((first.row_count, &first.note), (Some(10_000), &None));
        assert_eq!(
            (&first.head[1], &first.tail[4]),
            (
                &json!({"n": 1, "text": "row 1"}),
                &json!({"n": 9999, "text": "row 9999"})
            )
        );
        assert!(second.cached && second.artifact == first.artifact);
        let shown = "('DataFrame', 10000, 49994999, 49995000, True)";
        assert_eq!(value(&session, "_").await, shown);
        assert_eq!(value(&session, "again.artifact").await, json!(artifact.sha256));
        let stored = interpreter().await.store().get(artifact.sha256).await.unwrap();
        assert_eq!(stored.len() as u64, artifact.bytes);
        // Reading it left no thread behind, which would keep the kernel from being copied.
        let ran = run(&session, "import os\nos._exit(1)").await;
        assert_eq!(ran.state, VariablesState::Rescued, "{:?}", ran.note);
        assert_eq!(value(&session, "len(df) + len(again.data)").await, json!(20_000));
        let ran = run(&session, "weather.broken('Kyiv')").await;
        assert_eq!(exception(&ran).exception, "ParseError");
        assert_eq!(ran.fetches[0].outcome, "parse");
    });
}

#[test]
fn artifacts_name_the_session_the_cell_and_the_data_behind_them() {
    block_on(async {
        let interpreter = interpreter().await;
        // The store is kept between runs of these tests.
        let session_id = format!("sess_{:?}", std::time::SystemTime::now());
        let session = interpreter.session(SessionOptions {
            id: Some(session_id.clone()),
            connectors: vec![Arc::new(Weather::default()) as Arc<dyn Connector>],
            ..SessionOptions::default()
        });
        let made_by = async |producer: &str, code: &str| {
            session
                .execute(Cell::new(code).produced_by(producer))
                .await
                .unwrap()
        };
        let ran = made_by("a.py", "fetched = weather.table(city='origins')").await;
        let table = ran.fetches[0].artifact.clone().unwrap().sha256;
        assert_eq!(Vec::from_iter(&ran.origins["fetched"].artifacts), [&table]);
        let code = "total = fetched.assign(n=fetched['n'] + 7)\n\
                    open('origins.txt', 'w').write(str(len(total)));\ntotal";
        let total = made_by("b.py", code).await;
        let other = made_by("b.py", "other = pd.DataFrame({'a': [1, 2, 3]})\nother").await;
        let artifacts = total.outputs.iter().chain(&other.outputs);
        let artifacts = artifacts.map(|output| output.artifacts()[0].sha256);
        let file = total.files[0].sha256.parse().unwrap();
        let mut found = Vec::new();
        for id in [table].into_iter().chain(artifacts).chain([file]) {
            let origins = interpreter.store().metadata(id).await.unwrap().origins;
            let own = origins.into_iter().filter(|it| it.session == session_id);
            found.extend(own.map(|it| (it.cell.unwrap(), it.name.unwrap_or_default(), it.inputs)));
        }
        let [first, rest @ ..] = &found[..] else { panic!() };
        assert!(
            first.0 == 1 && first.1.starts_with("weather.table({\"city\":\"origins\""),
            "{first:?}"
        );
        let expected = [
            (2, "total".to_owned(), vec![table]),
            (3, "other".to_owned(), vec![]),
            (2, "origins.txt".to_owned(), vec![table]),
        ];
        assert_eq!(rest, expected);
    });
}

#[test]
fn a_map_calls_side_by_side() {
    block_on(async {
        let (session, weather) = session(Rescue::Idle).await;
        let code = "rows = weather.get_forecast.map([{'city': str(n)} for n in range(100)])\n\
                    [row[0]['city'] for row in rows] == [str(n) for n in range(100)]";
        assert_eq!(value(&session, code).await, json!(true));
        assert_eq!(weather.requests.load(Ordering::SeqCst), 100);
        // The ones that wait end with the first error.
        let ran = run(
            &session,
            "weather.limited.map([{'city': str(n)} for n in range(30)])",
        )
        .await;
        assert_eq!(exception(&ran).exception, "RateLimitError");
        assert!(goes_on(&session, "rows").await);
    });
}

#[test]
fn a_forked_child_cannot_call() {
    block_on(async {
        let (session, weather) = session(Rescue::Idle).await;
        let code = "import os\nread, write = os.pipe()\n\
                    if not os.fork():\n    try:\n        weather.get_forecast('Kyiv')\n    except \
                    RuntimeError as error:\n        os.write(write, str(error).encode())\n    \
                    os._exit(0)\n\
                    os.wait()\nos.read(read, 1000).decode()";
        let told = value(&session, code).await;
        assert!(
            told.as_str()
                .unwrap()
                .contains("a forked process cannot call the host"),
            "{told}"
        );
        assert_eq!(weather.requests.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn too_many_calls_are_refused() {
    // They take minutes there, and the host, which counts them, is the same.
    if machine_lacks("time for ten thousand calls", module_path!()) {
        return;
    }
    block_on(async {
        let (session, weather) = session(Rescue::Idle).await;
        let code = "made = 0\ntry:\n    while True:\n        weather.get_forecast('Kyiv')\n        made \
                    += 1\n\
                    except cellblock.ConnectorError as error:\n    got = str(error)\n(made, got)";
        let ran = run_for(&session, Duration::from_mins(2), code).await;
        let told = format!("{:?}", ran.outputs);
        assert!(
            told.contains("(10000, 'this cell has made 10000 calls to the host, the maximum"),
            "{told}"
        );
        assert_eq!((ran.fetches.len(), ran.fetches_dropped), (200, 9_800));
        assert_eq!(weather.requests.load(Ordering::SeqCst), 1);
        assert!(goes_on(&session, "made").await);
    });
}

#[test]
fn threads_and_coroutines_fetch_and_large_answers_arrive() {
    block_on(async {
        let (session, _) = session(Rescue::Idle).await;
        let code = "import asyncio\nfrom concurrent.futures import ThreadPoolExecutor\n\
                    with ThreadPoolExecutor(8) as pool:\n    \
                    got = list(pool.map(lambda n: weather.get_forecast(city=str(n))[0]['city'], range(40)))\n\
                    more = await asyncio.gather(*(weather.large.aio(city=str(n)) for n in range(3)))\n\
                    got == [str(n) for n in range(40)] and {len(text) for text in more} == {5 << 20}";
        assert_eq!(value(&session, code).await, json!(true));
    });
}

#[test]
fn an_error_is_typed_and_shown_as_one_line() {
    block_on(async {
        let (session, _) = session(Rescue::Idle).await;
        let code = "try:\n    weather.limited(city='x')\n\
                    except cellblock.RateLimitError as error:\n    got = error.retry_after\ngot";
        assert_eq!(value(&session, code).await, json!(2.0));
        let ran = run(&session, "weather.limited(city='x')").await;
        assert_eq!(ran.outcome, Outcome::Raised);
        assert_eq!(
            exception(&ran).traceback,
            "cellblock.RateLimitError: weather allows 1 request per minute\n"
        );
        assert_eq!(ran.fetches[0].outcome, "rate_limit");
        let ran = run(&session, "weather.get_forecast(town='x')").await;
        assert_eq!(exception(&ran).exception, "InvalidParameterError");
        let ran = run(&session, "weather.get_forcast").await;
        assert_eq!(exception(&ran).exception, "AttributeError");
    });
}

#[test]
fn a_request_ends_with_its_cell_and_the_kernel_lives() {
    block_on(async {
        let (session, weather) = session(Rescue::Idle).await;
        run(&session, "kept = 1").await;
        let started = Instant::now();
        let ran = run_for(
            &session,
            Duration::from_millis(300) * slowness(),
            "print('before', flush=True)\nweather.slow(city='x')",
        )
        .await;
        assert_eq!(
            (&ran.outcome, &*ran.stdout.text),
            (&Outcome::Interrupted, "before\n")
        );
        assert!(started.elapsed() < Duration::from_secs(20));
        assert_eq!(weather.open.load(Ordering::SeqCst), 0);
        assert_eq!(ran.fetches[0].outcome, "canceled");
        let note = ran.note.unwrap();
        assert!(note.contains("while it waited for `weather.slow`"), "{note}");
        assert!(goes_on(&session, "kept").await);
    });
}

#[test]
fn a_forged_call_is_rejected_and_recorded() {
    block_on(async {
        let (session, weather) = session(Rescue::Idle).await;
        let forged = "from cellblock_kernel.library import broker\n\
                      broker.call('fetch', {'connector': 'fred', 'function': 'series'})";
        let ran = run(&session, forged).await;
        assert!(exception(&ran).message.contains("no connector `fred`"), "{ran:?}");
        assert_eq!(ran.fetches[0].outcome, "not_granted");

        // A session without connectors has neither the names nor the method.
        let bare = interpreter().await.session(SessionOptions::default());
        assert_eq!(exception(&run(&bare, "connectors").await).exception, "NameError");
        let ran = run(&bare, forged).await;
        assert_eq!(ran.fetches[0].outcome, "not_granted");
        // Nor has what runs between cells.
        run(
            &session,
            "class Curious(str):\n    @property\n    def shape(self): return \
             weather.get_forecast(city='x')\nx = Curious()",
        )
        .await;
        session.variables().await.unwrap();
        session.get("x").await.unwrap();
        assert_eq!(weather.requests.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn connectors_are_there_after_a_reset_a_rescue_and_a_new_kernel() {
    needs!(Rescue);
    block_on(async {
        let (session, weather) = session(Rescue::On).await;
        run(&session, "weather.get_forecast('Kyiv'); kept = 1; weather = None").await;
        let ran = run(&session, "import os\nos._exit(1)").await;
        assert_eq!(ran.state, VariablesState::Rescued);
        assert_eq!(value(&session, "kept, weather").await, json!("(1, None)"));
        session.reset().await.unwrap();
        assert_eq!(
            value(&session, "weather.get_forecast('Lviv')[0]['city']").await,
            "Lviv"
        );

        let (session, _) = self::session(Rescue::Off).await;
        run(&session, "weather.get_forecast('Kyiv');").await;
        let ran = run(&session, "import os\nos._exit(1)").await;
        assert_eq!(ran.state, VariablesState::Lost);
        let ran = run(&session, "weather.get_forecast('Kyiv');").await;
        assert!(ran.fetches[0].cached, "{ran:?}");
        assert_eq!(weather.requests.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn a_cell_that_derives_can_call_no_connector() {
    block_on(async {
        let weather = Arc::new(Weather::default());
        let interpreter = interpreter().await;
        let session = interpreter.session(SessionOptions {
            prelude: vec!["analysis".to_owned(), "derivation".to_owned()],
            connectors: vec![Arc::clone(&weather) as Arc<dyn Connector>],
            ..SessionOptions::default()
        });
        run(&session, "weather.get_forecast('Kyiv');").await;
        let owner = format!("it-connectors-{}", std::process::id());
        let aliases = AliasStore::new(interpreter.store().clone(), owner, Bounds::default());
        aliases.record("get_prices", &json!([1, 2])).await.unwrap();
        let terms = ToolsetTerms {
            results: Some(LentResults::new(aliases, DerivationPolicy::default())),
            ..ToolsetTerms::default()
        };
        let derivation = (derivation::KIND.open)(interpreter, session, &terms)
            .await
            .unwrap();
        let contract = json!({
            "operation": "derive", "reason": "it takes code", "inputAliases": ["get_prices_1"],
            "expectedArtifacts": [],
        });
        let call =
            json!({"code": "set_result(weather.get_forecast('Lviv'))", "postProcessingContract": contract});
        let told = derivation.call("code_interpreter", call, &mut |_| {}).await;
        let told = format!("{:?}", told.unwrap());
        assert!(
            told.contains("code that derives from tool results cannot call connectors"),
            "{told}"
        );
        assert_eq!(weather.requests.load(Ordering::SeqCst), 1);
    });
}
