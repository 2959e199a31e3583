//! Datasets of a project in real sandboxes: published by one session, looked at and loaded by another.

use cellblock_interpreter::cell::{Cell, Rescue};
use cellblock_interpreter::execution::VariablesState;
use cellblock_interpreter::project::Project;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Interpreter, Session};

use crate::support::{block_on, exception, goes_on, interpreter, run, value};

/// A project that only this test has.
fn project(interpreter: &Interpreter, name: &str) -> Project {
    let owner = cellblock_interpreter::mint("owner_");
    Project::new(interpreter.store().clone(), owner, name).unwrap()
}

fn session(interpreter: &Interpreter, project: &Project) -> Session {
    interpreter.session(SessionOptions {
        project: Some(project.clone()),
        rescue: Rescue::On,
        ..SessionOptions::default()
    })
}

/// Runs a cell that must raise, and returns the message.
async fn raised(session: &Session, code: &str) -> String {
    exception(&run(session, code).await).message.clone()
}

/// A frame of what pandas has: an index of two levels, two columns with one name, and types that
/// Arrow or Parquet lack.
const FRAME: &str = r#"
import decimal
df = pd.DataFrame({
    "quarter": pd.period_range("2024Q1", periods=3, freq="Q"),
    "zone": pd.to_datetime(["2024-01-01", None, "2024-07-01"]).tz_localize("Europe/Berlin"),
    "size": pd.Categorical(["s", None, "l"], categories=["s", "m", "l"], ordered=True),
    "wait": pd.to_timedelta([1, 2, None], unit="s"),
    "price": [decimal.Decimal("1.20"), decimal.Decimal("10.00"), None],
    "nested": [{"a": [1, None]}, {"a": []}, {"b": "x"}],
    "big": pd.array([2**62, None, 3], dtype="Int64"),
})
df["again"] = [1.5, float("nan"), -0.0]
df.columns = [*df.columns[:-2], 7, 7]
df.index = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["letter", None])
df.attrs = {"source": "survey"}
"#;

#[test]
fn a_loaded_dataset_equals_the_published_frame_in_another_session() {
    block_on(async {
        let interpreter = interpreter().await;
        let project = project(interpreter, "types");
        let (one, other) = (session(interpreter, &project), session(interpreter, &project));
        let publish = format!(
            "{FRAME}\nkept = publish_dataset(df, 'types', title='Types', notes='a \
             note')['current']['rows']\nkept"
        );
        assert_eq!(value(&one, &publish).await, 3);
        let message = raised(&other, "load_dataset('types')").await;
        assert!(message.contains("look at it first"), "{message}");
        // Code that reads and loads in one cell has shown nothing to anybody.
        raised(&other, "read_dataset('types'); load_dataset('types')").await;
        let compare = format!(
            "{FRAME}\nloaded = load_dataset('types')\npd.testing.assert_frame_equal(loaded, df)\n\
             loaded.attrs['source']"
        );
        assert_eq!(value(&other, &compare).await, "survey");
        // The session goes on with the variable after its kernel is gone: no thread of a library was left.
        let lost = other.execute("import os; os._exit(1)").await.unwrap();
        assert_eq!(lost.state, VariablesState::Rescued, "{:?}", lost.note);
        assert!(goes_on(&other, "loaded").await);
    });
}

#[test]
fn a_variable_has_the_datasets_that_it_is_made_from() {
    block_on(async {
        let interpreter = interpreter().await;
        let project = project(interpreter, "lineage");
        let session = session(interpreter, &project);
        run(&session, "publish_dataset(pd.DataFrame({'x': [1]}), 'source')").await;
        let cell = |code: &str| Cell::new(code).produced_by("notebooks/a.py");
        session
            .execute(cell("source = load_dataset('source')"))
            .await
            .unwrap();
        session.execute(cell("made = source * 2")).await.unwrap();
        let origin = session.origin("made").await.unwrap().unwrap();
        assert_eq!(origin.producer, "notebooks/a.py");
        let sha256 = project.dataset("source").await.unwrap().unwrap().current.sha256;
        assert!(origin.loads.contains(&format!("source@{sha256}")), "{origin:?}");
        let published = session
            .execute(cell("_ = publish_dataset(made, 'made')"))
            .await
            .unwrap();
        assert!(published.outputs.is_empty(), "{published:?}");
        let made = project.dataset("made").await.unwrap().unwrap().current;
        assert_eq!(
            (made.loads, made.variable.as_deref()),
            (origin.loads, Some("made"))
        );
        assert_eq!(made.producer.as_deref(), Some("notebooks/a.py"));
    });
}

#[test]
fn frames_that_would_change_are_rejected_and_nothing_is_published() {
    block_on(async {
        let interpreter = interpreter().await;
        let project = project(interpreter, "rejected");
        let session = session(interpreter, &project);
        for (frame, cause) in [
            (
                "pd.DataFrame({'x': [1 + 2j]})",
                "column 'x' has the type complex128",
            ),
            ("pd.DataFrame({'x': [object()]})", "row 0"),
            ("pd.Series([1])", ".to_frame()"),
            ("[1]", "expects a data frame, not list"),
        ] {
            let message = raised(&session, &format!("publish_dataset({frame}, 'x')")).await;
            assert!(message.contains(cause), "{message}");
        }
        let message = raised(&session, "publish_dataset(pd.DataFrame({'x': [1]}), 'A B')").await;
        assert!(message.contains("is not a valid name"), "{message}");
        assert_eq!(project.datasets().await.unwrap(), []);
        assert_eq!(value(&session, "1 + 1").await, 2);
    });
}

#[test]
fn code_without_a_project_has_no_datasets() {
    block_on(async {
        let session = interpreter().await.session(SessionOptions::default());
        let message = raised(&session, "load_dataset('x')").await;
        assert!(message.contains("'load_dataset' is not defined"), "{message}");
        // Nor by calling the host itself.
        let forged = "from cellblock_kernel.library import broker\nbroker.call('dataset.list', {})";
        let message = raised(&session, forged).await;
        assert!(
            message.contains("the host offers no method `dataset.list`"),
            "{message}"
        );
    });
}
