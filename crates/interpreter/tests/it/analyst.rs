//! An analyst's session from the first frame to a published dataset, in the words of the documents
//! that describe such sessions: one kernel, typed outputs, a connector with a fetch log, blocked
//! access to secrets, a timeout, origins, datasets of another terminal, and rows that survive the
//! loss of their file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatchReader;
use cellblock_interpreter::artifact::Store;
use cellblock_interpreter::cell::{Cell, Guard};
use cellblock_interpreter::connector::{Card, Connector, ConnectorError, FetchAnswer, Redaction};
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::output::Output;
use cellblock_interpreter::project::Project;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::toolset::BoxFuture;
use cellblock_interpreter::{Execution, Session};
use serde_json::{Map, Value, json};

use crate::support::{block_on, exception, interpreter, run, table, value};

/// Economic data, with one function for each series.
#[derive(Debug, Default)]
struct FredConnector(Redaction);

impl Connector for FredConnector {
    fn name(&self) -> &'static str {
        "fred"
    }

    fn description(&self) -> &'static str {
        "Economic data."
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let card = Card {
            name: "GDPC1".to_owned(),
            description: "Real GDP.".to_owned(),
            parameters: json!({"type": "object", "properties": {"series_id": {"type": "string"}},
                "required": ["series_id"]}),
            ..Card::default()
        };
        Box::pin(async move { Ok(vec![card]) })
    }

    fn fetch(
        &self,
        _: &str,
        _: Map<String, Value>,
        _: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let rows: Vec<_> = (0..12)
            .map(|quarter| json!({"quarter": quarter, "value": 100 + quarter}))
            .collect();
        Box::pin(async move { FetchAnswer::records(&rows) })
    }

    fn redaction(&self) -> &Redaction {
        &self.0
    }
}

async fn terminal(project: &Project, seen: &[&str]) -> Session {
    interpreter().await.session(SessionOptions {
        guard: Guard::Standard,
        connectors: vec![Arc::new(FredConnector::default())],
        project: Some(project.clone()),
        seen: seen.iter().map(|&slug| slug.to_owned()).collect(),
        ..SessionOptions::default()
    })
}

async fn produced(session: &Session, code: &str) -> Execution {
    let cell = Cell::new(code).produced_by("notebooks/fed_analysis.py");
    let ran = session.execute(cell).await.unwrap();
    assert_eq!(ran.outcome, Outcome::Completed, "{ran:?}");
    ran
}

#[test]
fn one_kernel_keeps_variables_and_types_its_outputs() {
    block_on(async {
        let owner = cellblock_interpreter::mint("owner_");
        let project = Project::new(interpreter().await.store().clone(), owner, "kernel").unwrap();
        let session = terminal(&project, &[]).await;
        let ran = run(&session, "df = pd.DataFrame({'a': [1, 2, 3]})\ndf").await;
        assert_eq!((table(&ran.outputs[0]).rows, ran.outputs.len()), (3, 1));
        run(&session, "import math\nradius = 3").await;
        assert_eq!(
            value(&session, "area = math.pi * radius**2\nround(area, 2)").await,
            28.27
        );
        let base = "[name for name in ('pd', 'np', 'alt', 'datetime', 'timedelta', 'timezone', \
                    'load_dataset', 'read_pdf_text', 'read_excel', 'read_pptx_text', 'fred') if name not \
                    in globals()] == []";
        assert_eq!(value(&session, &format!("pd, np, alt\n{base}")).await, true);

        // Outputs before an error are kept, and the error is one of them.
        let ran = run(&session, "df\n'text'\n1 / 0").await;
        assert_eq!(exception(&ran).exception, "ZeroDivisionError");
        let frame = session.get("df").await.unwrap().unwrap();
        assert!(matches!(frame, Output::Dataframe(_)), "{frame:?}");

        for (code, message) in [
            (
                "key = os.getenv('FRED_API_KEY')",
                "os.getenv is blocked in agent code (secrets are not in scope)",
            ),
            (
                "import os\nos.environ['X']",
                "os.environ access is blocked in agent code (secrets are not in scope)",
            ),
            (
                "import subprocess\nsubprocess.run(['ls'])",
                "subprocess.run is blocked in agent code",
            ),
        ] {
            let ran = run(&session, code).await;
            assert!(format!("{ran:?}").contains(message), "{ran:?}");
        }
        let endless = Cell::new("while True: pass").with_timeout(Duration::from_secs(1));
        let stopped = session.execute(endless).await.unwrap();
        assert!(
            stopped
                .note
                .unwrap_or_default()
                .to_lowercase()
                .contains("timeout")
        );
        assert_eq!(value(&session, "x = 42\nx").await, 42);

        run(&session, "def my_helper(x): return x * 2").await;
        session.reset().await.unwrap();
        assert_eq!(
            value(
                &session,
                "('my_helper' in globals(), 'pd' in globals() or bool(pd))"
            )
            .await,
            "(False, True)"
        );
    });
}

#[test]
fn fetched_data_is_logged_and_known_behind_variables_and_datasets() {
    block_on(async {
        let owner = cellblock_interpreter::mint("owner_");
        let store = interpreter().await.store().clone();
        let project = Project::new(store.clone(), owner, "macro").unwrap();
        let one = terminal(&project, &[]).await;
        let ran = produced(&one, "gdp = fred[\"GDPC1\"](series_id=\"GDPC1\")\ngdp").await;
        let [fetch] = &ran.fetches[..] else {
            panic!("{ran:?}")
        };
        assert_eq!((fetch.row_count, fetch.columns.len()), (Some(12), 2));
        assert_eq!((fetch.head.len(), fetch.tail.len()), (5, 5));
        let snapshot = fetch.artifact.as_ref().unwrap().sha256;
        store.verify(snapshot).await.unwrap();
        let again = produced(&one, "again = fred[\"GDPC1\"](\"GDPC1\")").await;
        assert!(again.fetches[0].cached);

        let publish = "inflation = gdp.assign(change=gdp['value'].diff())\n\
                       _ = publish_dataset(inflation, 'inflation_monthly', title='Inflation', \
                       tags=['macro'])";
        produced(&one, publish).await;
        let origin = one.origin("inflation").await.unwrap().unwrap();
        assert_eq!(origin.producer, "notebooks/fed_analysis.py");
        assert!(origin.artifacts.contains(&snapshot), "{origin:?}");
        // Scratch work has no origin.
        run(&one, "scratch = 1").await;
        assert_eq!(one.origin("scratch").await.unwrap(), None);

        let load = "inflation = load_dataset(\"inflation_monthly\")";
        let sibling = terminal(&project, &[]).await;
        let refused = run(&sibling, load).await;
        assert_eq!(exception(&refused).exception, "LoadDatasetError");
        assert!(
            exception(&refused).message.contains("look at it first"),
            "{refused:?}"
        );
        let seen = terminal(&project, &["inflation_monthly"]).await;
        produced(&seen, load).await;
        let origin = seen.origin("inflation").await.unwrap().unwrap();
        assert_eq!((origin.loads.len(), origin.fetches.len()), (1, 0));
    });
}

#[test]
fn a_lost_or_damaged_file_is_restored_from_the_other_store() {
    block_on(async {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let local = Store::local(here.path()).unwrap();
        let store = Store::tiered(local.clone(), Store::local(there.path()).unwrap());
        let builder = crate::support::builder().store(store.clone());
        let interpreter = builder.build().await.unwrap();
        let session = interpreter.session(SessionOptions::default());
        let ran = run(&session, "pd.DataFrame({'a': range(1000)})").await;
        let shown = table(&ran.outputs[0]);
        let id = shown.table.as_ref().unwrap().sha256;
        let path = local.local_path(id).unwrap();
        for damage in [
            |path: &std::path::Path| std::fs::write(path, b"damaged"),
            |path: &std::path::Path| std::fs::remove_file(path),
        ] {
            damage(&path).unwrap();
            let batches = shown.open(&store).await.unwrap();
            assert_eq!(batches.schema().fields().len(), 1);
            let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
            assert_eq!(rows, 1000);
            local.check(id).await.unwrap();
        }
    });
}

#[test]
fn whatever_a_cell_shows_is_typed_and_documents_are_read() {
    block_on(async {
        let session = interpreter().await.session(SessionOptions {
            prelude: ["analysis", "documents", "notebook"].map(str::to_owned).to_vec(),
            guard: Guard::Standard,
            ..SessionOptions::default()
        });
        let types = async |code: &str| {
            let ran = run(&session, code).await;
            let types = ran.outputs.iter().map(|output| match output {
                Output::Dataframe(_) => "table",
                Output::Figure(_) => "figure",
                Output::Primitive(_) => "value",
                Output::Exception(_) => "error",
                _ => "other",
            });
            types.collect::<Vec<_>>()
        };
        let table = "df = pd.DataFrame({'a': [1, 2, 3]})\n";
        // The last expression, `print` of one table, and `display`.
        assert_eq!(types(&format!("{table}df")).await, ["table"]);
        assert_eq!(
            types("print(df)\ndisplay(df)\ndisplay(2)\n1 / 0").await,
            ["table", "table", "value", "error"]
        );
        assert_eq!(
            types("alt.Chart(df).mark_line().encode(x='a:Q', y='a:Q')").await,
            ["figure"]
        );
        assert_eq!(
            types("print(alt.Chart(df).mark_bar().encode(x='a:O').to_dict() != {})\n{'a': [None, True]}")
                .await,
            ["value"]
        );
        // A class of one's own is shown as its converter says.
        let register = "import cellblock\nclass Grid:\n  def __init__(self, rows): self.rows = rows\n\
                        cellblock.register(Grid, lambda it: pd.DataFrame(it.rows))\nGrid([{'a': 1}])";
        assert_eq!(types(register).await, ["table"]);

        let documents = "df.to_excel('sales.xlsx', index=False)\n\
                         from pptx import Presentation\ndeck = Presentation()\n\
                         deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = 'Sales'\n\
                         deck.save('deck.pptx')\n\
                         from matplotlib.backends.backend_pdf import PdfPages\n\
                         with PdfPages('q4.pdf') as pages:\n  pages.savefig(plt.figure())\n\
                         plt.close('all')";
        assert_eq!(types(documents).await, [""; 0]);
        let read = "(read_excel('sales.xlsx', sheet_name=0).a.tolist(), [(s['index'], s['text']) for s in \
                    read_pptx_text('deck.pptx')], type(read_pdf_text('q4.pdf', max_pages=5)).__name__)";
        assert_eq!(value(&session, read).await, "([1, 2, 3], [(0, 'Sales')], 'str')");

        // Naming a module is permitted, reading secrets and starting processes is not.
        assert_eq!(
            value(&session, "import os, subprocess\nprint(subprocess)\n1").await,
            1
        );
        for code in [
            "os.environ.get('X')",
            "os.environ.copy()",
            "os.getenv('X')",
            "subprocess.Popen(['ls'])",
            "open('/proc/1/environ')",
            "open('/proc/self/environ').read()",
        ] {
            let ran = run(&session, code).await;
            assert!(matches!(ran.outcome, Outcome::Rejected { .. }), "{code}: {ran:?}");
        }
    });
}
