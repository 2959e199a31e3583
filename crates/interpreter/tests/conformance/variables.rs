//! Names across cells: kept, listed, taken out, dropped.

use std::time::Duration;

use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::output::Output;
use cellblock_interpreter::{Cell, Error};
use serde_json::json;

use crate::support::{block_on, exception, run, scalar, session, table, value};

#[test]
fn variables_functions_classes_and_imports_live_across_cells() {
    block_on(async {
        let session = session().await;
        run(
            &session,
            "import math\nx = 3\ndef square(n): return n * n\n\
             class Box:\n    def __init__(self, it): self.it = it",
        )
        .await;
        assert_eq!(value(&session, "Box(square(x)).it + math.floor(0.5)").await, 9);
    });
}

#[test]
fn a_trailing_expression_is_shown_and_a_semicolon_mutes_it() {
    block_on(async {
        let session = session().await;
        assert_eq!(value(&session, "1\n2").await, 2);
        assert_eq!(run(&session, "1\n2;").await.outputs, []);
        assert_eq!(run(&session, "None").await.outputs, []);
        assert_eq!(value(&session, "_ + 1").await, 3);
    });
}

#[test]
fn a_cell_awaits_at_its_top_level() {
    block_on(async {
        let session = session().await;
        let code = "import asyncio\nasync def later(n):\n    await asyncio.sleep(0.01)\n    return n\n\
                    await asyncio.gather(later(1), later(2))\nawait later(42)";
        assert_eq!(value(&session, code).await, 42);
        let code = "async with asyncio.timeout(5):\n    kept = [n async for n in (await later(i) for i in \
                    range(3))]\nstr(kept)";
        assert_eq!(value(&session, code).await, "[0, 1, 2]");
        let stopped = session
            .execute(Cell::new("await asyncio.sleep(100)").with_timeout(Duration::from_secs(1)))
            .await
            .unwrap();
        assert_eq!(stopped.outcome, Outcome::Interrupted);
        assert_eq!(value(&session, "await later('again')").await, "again");
    });
}

#[test]
fn eval_gives_the_value_of_one_expression_and_refuses_statements() {
    block_on(async {
        let session = session().await;
        run(&session, "x = 20").await;
        assert_eq!(scalar(&session.eval("x * 2 + 2").await.unwrap()), 42);
        // Unlike in a cell, the value of an expression is shown even when it is none.
        assert_eq!(scalar(&session.eval("None").await.unwrap()), json!(null));
        let refused = session.eval("y = 1").await.unwrap();
        assert_eq!(refused.outcome, Outcome::Raised);
        assert_eq!(exception(&refused).exception, "SyntaxError");
        assert_eq!(value(&session, "'y' in globals()").await, false);
    });
}

#[test]
fn get_gives_a_variable_as_a_typed_output_and_nothing_for_an_unknown_name() {
    block_on(async {
        let session = session().await;
        run(&session, "frame = pd.DataFrame({'a': [1, 2]})\nword = 'hi'").await;
        let frame = session.get("frame").await.unwrap().unwrap();
        assert_eq!(frame.name(), Some("frame"));
        assert_eq!(table(&frame).head, [[json!(1)], [json!(2)]]);
        let word = session.get("word").await.unwrap().unwrap();
        assert!(
            matches!(&word, Output::Primitive(it) if json!(it.value) == "hi"),
            "{word:?}"
        );
        assert_eq!(session.get("nobody").await.unwrap(), None);
    });
}

#[test]
fn variables_are_listed_with_types_and_without_initial_names() {
    block_on(async {
        let session = session().await;
        assert_eq!(session.variables().await.unwrap(), []);
        run(
            &session,
            "import os\nn = 3\nword = 'hi'\nframe = pd.DataFrame({'a': [1, 2]})\n_hidden = 1",
        )
        .await;
        let listed = session.variables().await.unwrap();
        let listed: Vec<_> = listed
            .iter()
            .map(|it| (it.name.as_str(), it.kind.as_str(), it.summary.as_str()))
            .collect();
        assert_eq!(
            listed,
            [
                ("n", "int", "3"),
                ("word", "str", "'hi'"),
                ("frame", "DataFrame", "2 rows × 1 column"),
            ]
        );
    });
}

#[test]
fn reset_drops_variables_and_keeps_files_and_the_prelude() {
    block_on(async {
        let session = session().await;
        run(&session, "x = 1\npd = None\nopen('/workspace/a', 'w').write('a')").await;
        session.reset().await.unwrap();
        assert_eq!(exception(&run(&session, "x").await).exception, "NameError");
        assert_eq!(value(&session, "int(pd.Series([1, 2]).sum())").await, 3);
        assert_eq!(value(&session, "open('/workspace/a').read()").await, "a");
        assert_eq!(session.variables().await.unwrap(), []);
    });
}

#[test]
fn a_cell_that_is_not_stored_leaves_no_names() {
    block_on(async {
        let session = session().await;
        run(&session, "x = 1").await;
        let aside = Cell {
            store: false,
            ..Cell::new("x = 2\ny = 3\nx + y")
        };
        assert_eq!(scalar(&session.execute(aside).await.unwrap()), 5);
        assert_eq!(value(&session, "(x, 'y' in globals()) == (1, False)").await, true);
    });
}

#[test]
fn a_cell_of_a_file_is_named_so_in_its_traceback() {
    block_on(async {
        let session = session().await;
        let failed = session
            .execute(Cell::new("x = 1\nx / 0").from_file("report.py", 40))
            .await
            .unwrap();
        let error = exception(&failed);
        assert_eq!(
            (error.frames[0].file.as_str(), error.line),
            ("report.py", Some(41))
        );
    });
}

#[test]
fn a_closed_session_says_so_and_a_cell_number_counts_up() {
    block_on(async {
        let session = session().await;
        assert_eq!(run(&session, "1").await.cell, 1);
        assert_eq!(run(&session, "1").await.cell, 2);
        session.close().await.unwrap();
        assert!(matches!(session.execute("1").await, Err(Error::Closed)));
        assert!(matches!(session.close().await, Err(Error::Closed)));
    });
}

#[test]
fn cells_of_several_tasks_run_one_after_the_other() {
    block_on(async {
        let session = session().await;
        run(&session, "order = []").await;
        let tasks: Vec<_> = (0..8)
            .map(|n| {
                let session = session.clone();
                let code = format!("import time\norder.append({n})\ntime.sleep(0.01)\norder.append({n})");
                tokio::spawn(async move { session.execute(code).await.unwrap().outcome })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Outcome::Completed);
        }
        assert_eq!(
            value(&session, "all(a == b for a, b in zip(order[::2], order[1::2]))").await,
            true
        );
        assert_eq!(value(&session, "len(order)").await, 16);
    });
}
