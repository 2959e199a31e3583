//! A turn end to end: the example, whose code runs in a real sandbox, as a client sees it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod disposal;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The example, which is built beside the tests.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let example = test.parent().unwrap().parent().unwrap().join("examples/turn");
    assert!(
        example.is_file(),
        "run `cargo build -p cellblock-agent --examples`"
    );
    example
}

/// The events that it prints.
fn events() -> Vec<Value> {
    let output = Command::new(example())
        .env("CELLBLOCK_HOME", cellblock_testkit::home().unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let frames = text
        .strip_suffix("data: [DONE]\n\n")
        .unwrap()
        .split_terminator("\n\n");
    let data = frames.map(|frame| frame.split_once("\ndata: ").unwrap().1);
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[test]
fn code_of_a_scripted_model_runs_in_a_sandbox_and_its_results_are_streamed() {
    let events = events();
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    let output = last["response"]["output"].as_array().unwrap();
    let statuses: Vec<_> = output
        .iter()
        .map(|item| item["status"].as_str().unwrap())
        .collect();
    assert_eq!(
        statuses,
        ["completed", "completed", "completed", "incomplete", "completed"]
    );

    let logs = |item: usize| {
        let outputs = output[item]["outputs"].as_array().unwrap().iter();
        let logs: Vec<_> = outputs.filter_map(|output| output["logs"].as_str()).collect();
        logs.join("\n")
    };
    // What was printed, and the last value.
    assert_eq!(
        output[0]["outputs"][0],
        json!({"type": "logs", "logs": "added\n"})
    );
    assert!(logs(0).contains("45"), "{}", logs(0));
    // An exception is the end of the code, and its outputs say which.
    assert!(logs(1).contains("NameError"), "{}", logs(1));
    // The variable of the first call is there in the third, whose chart is a picture.
    let picture = output[2]["outputs"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|output| output["url"].as_str());
    assert!(picture.unwrap().starts_with("data:image/png;base64,iVBORw0KGgo"));
    // A kernel that is gone leaves its files.
    assert!(logs(3).contains("total.txt"), "{}", logs(3));
    assert_eq!(output[4]["content"][0]["text"], "The total is 45.");
    // One container for all, and known from the first.
    let containers: Vec<_> = output[..4].iter().map(|item| &item["container_id"]).collect();
    assert!(containers.iter().all(|container| *container == containers[0]));
    let numbers = events
        .iter()
        .map(|event| event["sequence_number"].as_u64().unwrap());
    assert!(numbers.eq(0..u64::try_from(events.len()).unwrap()));
}
