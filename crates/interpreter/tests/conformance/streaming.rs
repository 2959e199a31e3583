//! Outputs of a cell arrive while it runs, in the order in which it produced them.

use cellblock_interpreter::Session;
use cellblock_interpreter::execution::{Event, Outcome};
use cellblock_interpreter::output::Output;
use serde_json::json;

use crate::support::{block_on, session};

/// Runs a cell and gives its events as texts, neighbouring pieces of a stream joined.
async fn events(session: &Session, code: &str) -> Vec<(String, String)> {
    let mut running = session.start_cell(code).await.unwrap();
    let mut told: Vec<(String, String)> = Vec::new();
    while let Some(event) = running.events.recv().await {
        let (kind, text) = match event {
            Event::Stdout(bytes) => ("stdout", String::from_utf8(bytes).unwrap()),
            Event::Stderr(bytes) => ("stderr", String::from_utf8(bytes).unwrap()),
            Event::Output(Output::Primitive(shown)) => ("output", json!(shown.value).to_string()),
            Event::Output(Output::Exception(error)) => ("exception", error.message),
            other => panic!("{other:?}"),
        };
        match told.last_mut() {
            Some((last, before)) if last == kind && kind.starts_with("std") => before.push_str(&text),
            _ => told.push((kind.to_owned(), text)),
        }
    }
    running.finish().await.unwrap();
    told
}

fn told(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(kind, text)| ((*kind).to_owned(), (*text).to_owned()))
        .collect()
}

#[test]
fn prints_and_values_arrive_in_the_order_of_the_code() {
    block_on(async {
        let session = session().await;
        let code = "print('a')\ndisplay(1)\nprint('b')\nprint('c')\ndisplay(2)\nprint('d')\n3";
        assert_eq!(
            events(&session, code).await,
            told(&[
                ("stdout", "a\n"),
                ("output", "1"),
                ("stdout", "b\nc\n"),
                ("output", "2"),
                ("stdout", "d\n"),
                ("output", "3"),
            ])
        );
    });
}

#[test]
fn the_order_holds_where_prints_and_values_follow_each_other_closely() {
    block_on(async {
        let session = session().await;
        let code = "import sys\nfor n in range(20):\n    print(n)\n    display(n)\n    print(-n, \
                    file=sys.stderr)\n    display(n)\n";
        let expected: Vec<_> = (0..20)
            .flat_map(|n| {
                let shown = ("output", n.to_string());
                [
                    ("stdout", format!("{n}\n")),
                    shown.clone(),
                    ("stderr", format!("{}\n", -n)),
                    shown,
                ]
            })
            .map(|(kind, text)| (kind.to_owned(), text))
            .collect();
        for _ in 0..25 {
            assert_eq!(events(&session, code).await, expected);
        }
    });
}

#[test]
fn output_before_an_exception_arrives_before_it() {
    block_on(async {
        let session = session().await;
        let code = "display(1)\nprint('x')\nraise ValueError('no')";
        assert_eq!(
            events(&session, code).await,
            told(&[("output", "1"), ("stdout", "x\n"), ("exception", "no")])
        );
    });
}

#[test]
fn output_of_subprocesses_and_of_c_is_captured() {
    block_on(async {
        let session = session().await;
        let code = "import ctypes, subprocess, sys\nlibc = ctypes.CDLL(None)\n\
                    subprocess.run(['sh', '-c', 'echo child; echo trouble >&2'])\n\
                    libc.puts(b'from C')\nlibc.fflush(None)\nprint('from Python')\n\
                    print('oh', file=sys.stderr)";
        let ended = session.execute(code).await.unwrap();
        assert_eq!(ended.stdout.text, "child\nfrom C\nfrom Python\n");
        assert_eq!(ended.stderr.text, "trouble\noh\n");
    });
}

#[test]
fn events_arrive_while_the_cell_still_runs() {
    block_on(async {
        let session = session().await;
        let code = "import os, time\nprint('waiting', flush=True)\ndisplay('shown')\n\
                    while not os.path.exists('/workspace/go'): time.sleep(0.01)\n'done'";
        let mut running = session.start_cell(code).await.unwrap();
        let first = running.events.recv().await.unwrap();
        assert!(
            matches!(&first, Event::Stdout(bytes) if bytes == b"waiting\n"),
            "{first:?}"
        );
        let second = running.events.recv().await.unwrap();
        assert!(
            matches!(&second, Event::Output(Output::Primitive(_))),
            "{second:?}"
        );
        // The cell waits for nobody but the deadline now; both events were there before its end.
        session.interrupt();
        let ended = running.finish().await.unwrap();
        assert_eq!(ended.outcome, Outcome::Interrupted);
    });
}

#[test]
fn a_reader_that_leaves_does_not_hold_up_the_cell() {
    block_on(async {
        let session = session().await;
        let running =
            session.start_cell("for n in range(2000): display(n) if n < 3 else print(n, flush=True)\n'end'");
        let ended = running.await.unwrap().finish().await.unwrap();
        assert_eq!(ended.outcome, Outcome::Completed);
        assert_eq!(ended.outputs.len(), 4);
    });
}

#[test]
fn a_carriage_return_and_bytes_that_are_not_text_are_kept_as_they_are() {
    block_on(async {
        let session = session().await;
        let code = "import os\nprint('10%\\r20%\\r', end='', flush=True)\nos.write(1, b'\\xff\\n');";
        let ended = session.execute(code).await.unwrap();
        assert_eq!(ended.stdout.text, "10%\r20%\r\u{fffd}\n");
        assert_eq!(ended.stdout.bytes, 10);
    });
}
