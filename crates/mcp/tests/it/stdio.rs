//! `cellblock mcp`: the command as clients start it.

use std::process::Stdio;

use rmcp::ClientServiceExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::support::{Client, LONG, block_on, done, revisions, run, until};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(cellblock_testkit::binary().unwrap());
    command
        .arg("mcp")
        .args(arguments)
        .env("CELLBLOCK_HOME", cellblock_testkit::home().unwrap())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Starts the command. The pipes are a client's transport; the process ends with the first value.
fn start(arguments: &[&str]) -> (Child, (ChildStdout, ChildStdin)) {
    let mut command = command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let pipes = (process.stdout.take().unwrap(), process.stdin.take().unwrap());
    (process, pipes)
}

#[test]
fn a_client_that_starts_the_command_runs_python_in_both_revisions() {
    block_on(async {
        for revision in revisions() {
            let (_process, pipes) = start(&[]);
            let mut client = Client::default()
                .serve_with_lifecycle(pipes, revision)
                .await
                .unwrap();
            let ran = run(&client, None, "print('printed'); 6 * 7").await;
            assert_eq!(ran["stdout"], "printed\n");
            assert_eq!(ran["outputs"][0]["value"], 42);
            client.close().await.unwrap();
        }
    });
}

#[test]
fn datasets_of_the_command_line_are_there_in_every_session() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("wine.csv");
        std::fs::write(&file, "a,b\n1,2\n").unwrap();
        let dataset = format!("wine={}", file.display());
        let (_process, pipes) = start(&["--dataset", &dataset]);
        let client = Client::default()
            .serve_with_lifecycle(pipes, crate::support::newest())
            .await
            .unwrap();
        let made = done(&client, "create_session", json!({})).await;
        assert_eq!(made["datasets"], json!(["/tmp/data/wine.csv"]));
        let session = made["session_id"].as_str().unwrap();
        let uri = format!("cellblock://sessions/{session}/datasets/wine.csv");
        assert_eq!(crate::support::read(&client, &uri).await.0, "a,b\n1,2\n");
        let down = json!({"session_id": session, "path": "/tmp/data/wine.csv"});
        assert_eq!(done(&client, "download_file", down).await["text"], "a,b\n1,2\n");
        let sum = run(
            &client,
            Some(session),
            "import pandas as pd; int(pd.read_csv('/tmp/data/wine.csv').b.sum())",
        )
        .await;
        assert_eq!(sum["outputs"][0]["value"], 2);
    });
}

#[test]
fn a_dataset_that_is_not_there_is_told_before_the_protocol_begins() {
    block_on(async {
        let output = command(&["--dataset", "x=/nonexistent.csv"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .await
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(output.stdout, b"");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.starts_with("error: find `/nonexistent.csv`"), "{told}");
    });
}

#[test]
fn nothing_but_the_protocol_is_on_stdout_and_the_end_of_stdin_ends_it_while_code_runs() {
    block_on(async {
        let mut process = command(&[])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = process.stdin.take().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}});
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let endless = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "run_python",
            "arguments": {"code": "print('on', flush=True)\nwhile True: pass"},
            "_meta": {"progressToken": "p"}}});
        for message in [begin, initialized, endless] {
            stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }
        let mut heard = Vec::new();
        until("the code runs", async || {
            let line = lines.next_line().await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            heard.push(message);
            heard.last().unwrap()["params"]["message"] == "on\n"
        })
        .await;
        assert_eq!(heard[0]["result"]["serverInfo"]["name"], "cellblock");
        drop(stdin);
        let status = tokio::time::timeout(LONG, process.wait()).await.unwrap().unwrap();
        assert!(status.success(), "{status}");
    });
}
