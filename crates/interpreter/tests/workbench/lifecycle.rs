//! One sandbox per session: made late, kept, replaced with what belongs to the session, and ended.

use std::time::Duration;

use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::toolset::ToolEvent;
use cellblock_interpreter::workbench::{DatasetSource, Profile, Workbench, WorkbenchOptions};
use cellblock_testkit::wait::until;
use serde_json::json;

use crate::support::{bench, block_on, interpreter};

#[test]
fn any_tool_makes_the_sandbox_and_all_share_it() {
    block_on(async {
        for first in ["write", "edit", "exec", "dataset"] {
            let bench = bench().await;
            match first {
                "write" => bench.put("/tmp/first", "x").await,
                "edit" => assert_eq!(bench.edit("/tmp/first", "x", "y").await["success"], json!(false)),
                "exec" => drop(bench.stdout(["true"]).await),
                _ => {
                    let path = bench.folder().join("d.csv");
                    std::fs::write(&path, "a\n1\n").unwrap();
                    bench
                        .tools
                        .add_dataset("d", DatasetSource::File(path))
                        .await
                        .unwrap();
                }
            }
            let prepared = bench.session.prepare().await.unwrap();
            assert_eq!(prepared.made, first == "dataset", "{first}");
            bench.put("/workspace/kept", "kept").await;
            assert_eq!(bench.stdout(["cat", "/workspace/kept"]).await, "kept");
            assert_eq!(bench.session.prepare().await.unwrap().sandbox, prepared.sandbox);
        }
    });
}

#[test]
fn a_sandbox_that_was_idle_is_replaced_with_its_datasets_and_that_is_said_once() {
    block_on(async {
        let options = SessionOptions {
            idle: Duration::from_millis(50),
            ..SessionOptions::default()
        };
        let session = interpreter().await.session(options);
        let tools = Workbench::new(session.clone(), WorkbenchOptions::default());
        let folder = tempfile::tempdir_in(cellblock_testkit::home().unwrap()).unwrap();
        let path = folder.path().join("d.csv");
        std::fs::write(&path, "a\n1\n").unwrap();
        tools.add_dataset("d", DatasetSource::File(path)).await.unwrap();
        let cat =
            json!({"command": ["sh", "-c", "cat /tmp/data/d.csv; ls /tmp/output; touch /tmp/output/mark"]});
        let before = tools.call("sandbox_exec", cat.clone()).await.unwrap();
        assert_eq!((&before["stdout"], before.get("note")), (&json!("a\n1\n"), None));
        let sandbox = session.prepare().await.unwrap().sandbox;
        let interpreter = interpreter().await;
        until("it is ended", || {
            !interpreter.sandboxes_in_use().contains(&sandbox)
        })
        .await;
        let after = tools.call("sandbox_exec", cat).await.unwrap();
        assert_eq!(
            after["stdout"],
            json!("a\n1\n"),
            "the dataset is there, the file is not"
        );
        assert_eq!(
            after["note"],
            json!(
                "the session was idle for 0.05 s, so its sandbox was ended; all files are gone. Write \
                 them again"
            )
        );
        session.close().await.unwrap();
    });
}

#[test]
fn output_is_told_while_the_command_runs() {
    block_on(async {
        let bench = bench().await;
        let mut events = bench.tools.events();
        let tools = bench.tools.clone();
        let running = tokio::spawn(async move {
            let line = "echo first; echo err >&2; while ! test -e /tmp/seen; do sleep 0.01; done; echo last";
            tools
                .call("sandbox_exec", json!({"command": ["sh", "-c", line]}))
                .await
                .unwrap()
        });
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        while stdout.is_empty() || stderr.is_empty() {
            match events.recv().await.unwrap() {
                ToolEvent::Stdout(bytes) => stdout.extend(bytes),
                ToolEvent::Stderr(bytes) => stderr.extend(bytes),
                ToolEvent::Visualization { .. } => panic!("there is no picture"),
            }
        }
        assert_eq!((&stdout[..], &stderr[..]), (&b"first\n"[..], &b"err\n"[..]));
        assert!(!running.is_finished());
        running.abort();
        // Nobody waits for the answer any more, but others can still interrupt it.
        bench.session.interrupt();
        assert_eq!(bench.stdout(["echo", "on"]).await, "on\n");
    });
}

#[test]
fn the_profile_decides_what_the_prompt_asks_for() {
    block_on(async {
        let session = interpreter().await.session(SessionOptions::default());
        let prompt = |profile| {
            let options = WorkbenchOptions {
                profile,
                ..WorkbenchOptions::default()
            };
            Workbench::new(session.clone(), options).prompt()
        };
        let (plain, polars) = (prompt(Profile::Default), prompt(Profile::Polars));
        for text in [&plain, &polars] {
            for word in [
                "sandbox_exec",
                "sandbox_write_file",
                "sandbox_edit_file",
                "sandbox_apply_patch",
                "WORKFLOW",
                "60 s, up to 300 s",
                "No network",
                "/tmp/output/",
                "5242880",
                "20 files",
                "10 KiB",
            ] {
                assert!(text.contains(word), "{word}: {text}");
            }
        }
        assert!(
            polars.contains("MUST use Polars")
                && polars.contains("NO PANDAS")
                && polars.contains("df = pl.read_csv('/tmp/data/sales.csv')")
        );
        assert!(!plain.contains("NO PANDAS") && !plain.contains("EXAMPLE"));
        assert!(!polars.contains("3.11"), "{polars}");
    });
}
