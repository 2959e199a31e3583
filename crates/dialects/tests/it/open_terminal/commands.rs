//! Commands: their output, input and ends.

use serde_json::{Value, json};

use super::{Chat, server};
use crate::support::block_on;

/// The output in one text.
fn text(answer: &Value) -> String {
    let entries = answer["output"].as_array().unwrap().iter();
    entries.map(|entry| entry["data"].as_str().unwrap()).collect()
}

#[test]
fn a_command_is_answered_with_its_output_and_exit_code() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let answer = chat
            .done(
                "/execute?wait=60",
                json!({"command": "echo a; pwd; echo $X >&2; exit 3", "env": {"X": "x y"}}),
            )
            .await;
        assert_eq!(text(&answer), "a\n/workspace\nx y\n", "{answer}");
        assert_eq!(
            (&answer["status"], &answer["exit_code"]),
            (&json!("done"), &json!(3))
        );
        assert_eq!(answer["cwd"], "/workspace");
        assert_eq!(answer["truncated"], false);
        let last = chat
            .done("/execute?wait=60&tail=2", json!({"command": "seq 5"}))
            .await;
        assert_eq!(
            (text(&last).as_str(), &last["truncated"]),
            ("4\n5\n", &json!(true))
        );
        let listed = chat.read("/execute").await;
        let commands: Vec<_> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["command"].as_str().unwrap())
            .collect();
        assert_eq!(commands, ["echo a; pwd; echo $X >&2; exit 3", "seq 5"]);
    });
}

#[test]
fn a_command_that_goes_on_reads_input_and_is_interrupted_and_killed() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let code = r#"python3 -c '
import signal, sys
signal.signal(signal.SIGINT, lambda *_: print("stopped"))
for line in sys.stdin:
    print("got", line.strip())'"#;
        let started = chat.done("/execute?wait=0", json!({"command": code})).await;
        assert_eq!(started["status"], "running");
        let id = started["id"].as_str().unwrap();
        let input = format!("/execute/{id}/input");
        chat.done(&input, json!({"input": "one\\ntwo\\n"})).await;
        let mut seen = String::new();
        let mut offset = 0;
        while !seen.contains("got two") {
            let more = chat
                .read(&format!("/execute/{id}/status?wait=0.2&offset={offset}"))
                .await;
            assert_eq!(more["status"], "running", "{more}");
            seen.push_str(&text(&more));
            offset = more["next_offset"].as_u64().unwrap();
        }
        assert_eq!(seen, "got one\ngot two\n");
        chat.done(&input, json!({"input": "\\x03"})).await;
        while !seen.contains("stopped") {
            let more = chat
                .read(&format!("/execute/{id}/status?wait=0.2&offset={offset}"))
                .await;
            seen.push_str(&text(&more));
            offset = more["next_offset"].as_u64().unwrap();
        }
        let (status, killed) = chat.delete(&format!("/execute/{id}?force=True")).await;
        assert_eq!((status.as_u16(), &killed["status"]), (200, &json!("killed")));
        let ended = chat.read(&format!("/execute/{id}/status?offset={offset}")).await;
        assert_eq!(
            (&ended["status"], &ended["signal"]),
            (&json!("killed"), &json!("SIGKILL"))
        );
        let (status, refused) = chat.post(&input, json!({"input": "x"})).await;
        assert_eq!(status, 400, "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains("already ended"));
    });
}

#[test]
fn the_end_of_input_ends_a_command_that_reads_all_of_it() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let started = chat.done("/execute?wait=0", json!({"command": "wc -l"})).await;
        let id = started["id"].as_str().unwrap();
        chat.done(&format!("/execute/{id}/input"), json!({"input": "a\\nb\\n\\x04"}))
            .await;
        let ended = chat.read(&format!("/execute/{id}/status?wait=60")).await;
        assert_eq!((&ended["status"], text(&ended).trim()), (&json!("done"), "2"));
    });
}

#[test]
fn long_output_keeps_its_end_and_says_so() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let answer = chat
            .done("/execute?wait=60", json!({"command": "seq 1000000"}))
            .await;
        let text = text(&answer);
        assert!(
            text.ends_with("999999\n1000000\n"),
            "{}",
            &text[text.len() - 50..]
        );
        assert!(text.len() <= 256 * 1024 && answer["truncated"] == true);
        assert_eq!(answer["next_offset"], 6_888_896);
    });
}

#[test]
fn wrong_requests_name_the_field_and_the_limit() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        for (path, body, expected) in [
            (
                "/execute?wait=301",
                json!({"command": "true"}),
                "invalid `wait` 301: it must be between 0 and 300",
            ),
            ("/execute?tail=0", json!({"command": "true"}), "invalid `tail` 0"),
            ("/execute", json!({}), "missing field `command`"),
            (
                "/execute",
                json!({"command": "pwd", "cwd": "/nowhere"}),
                "its working directory `/nowhere` does not exist",
            ),
            (
                "/execute/p99/input",
                json!({"input": "x"}),
                "there is no command `p99`",
            ),
        ] {
            let (status, answer) = chat.post(path, body).await;
            assert!(status.is_client_error(), "{path}: {status}");
            let detail = answer["detail"].as_str().unwrap();
            assert!(detail.contains(expected), "{path}: {detail}");
        }
    });
}
