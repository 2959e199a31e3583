//! The daemon's processes: their input, signals, output and ends.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};

use super::envd::{Messages, text};
use super::{E2bFixture, refused};
use crate::support::{RequestExt, block_on};

#[test]
fn a_process_takes_input_and_signals_and_can_be_followed_again() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let body = json!({
            "process": {"cmd": "/bin/cat", "args": [], "cwd": "/tmp", "envs": {"X": "1"}}, "stdin": true,
            "tag": "t"
        });
        let mut first = Messages::of(world.stream(&sandbox, "/process.Process/Start", &body).await);
        let (start, _) = first.next().await;
        let pid = &start["event"]["start"]["pid"];
        let listed: Value = world
            .call(&sandbox, "/process.Process/List", json!({}))
            .await
            .json()
            .await
            .unwrap();
        assert_eq!(listed["processes"].as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(
            (&listed["processes"][0]["pid"], &listed["processes"][0]["tag"]),
            (pid, &json!("t"))
        );
        drop(first);
        let by_tag = json!({"process": {"tag": "t"}});
        let mut again = Messages::of(world.stream(&sandbox, "/process.Process/Connect", &by_tag).await);
        assert_eq!(&again.next().await.0["event"]["start"]["pid"], pid);
        let input = json!({"process": {"pid": pid}, "input": {"stdin": STANDARD.encode("hé\n")}});
        assert_eq!(
            world
                .call(&sandbox, "/process.Process/SendInput", input)
                .await
                .status(),
            200
        );
        let (data, _) = again.next().await;
        assert_eq!(text(&[data["event"].clone()], "stdout"), "hé\n");
        let kill = json!({"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"});
        assert_eq!(
            world
                .call(&sandbox, "/process.Process/SendSignal", kill.clone())
                .await
                .status(),
            200
        );
        let (events, end) = again.all().await;
        assert_eq!(end, json!({}));
        assert_eq!(events.last().unwrap()["end"]["exitCode"], -1);
        assert_eq!(
            world
                .call(&sandbox, "/process.Process/SendSignal", kill)
                .await
                .status(),
            404
        );
        let unknown = json!({"process": {"pid": 9999}});
        let (_, end) = Messages::of(world.stream(&sandbox, "/process.Process/Connect", &unknown).await)
            .all()
            .await;
        assert_eq!(end["error"]["code"], "not_found");
    });
}

#[test]
fn commands_that_fail_or_cannot_start_say_so() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let (events, _) = world.command(&sandbox, "exit 3").await;
        let expected =
            json!({"exitCode": 3, "exited": true, "status": "exit status 3", "error": "exit status 3"});
        assert_eq!(events.last().unwrap()["end"], expected);
        let body = json!({"process": {"cmd": "/bin/true", "cwd": "/nowhere"}});
        let (_, end) = Messages::of(world.stream(&sandbox, "/process.Process/Start", &body).await)
            .all()
            .await;
        assert_eq!(end["error"]["code"], "invalid_argument", "{end}");
        let late = json!({"process": {"cmd": "/bin/sleep", "args": ["100"]}}).to_string();
        let mut framed = vec![0, 0, 0, 0, u8::try_from(late.len()).unwrap()];
        framed.extend(late.as_bytes());
        let request = world
            .inside(&sandbox, Method::POST, "/process.Process/Start")
            .body(framed);
        let request = request
            .header("content-type", "application/connect+json")
            .header("connect-timeout-ms", "300");
        let (_, end) = Messages::of(request.sent().await).all().await;
        assert_eq!(end["error"]["code"], "deadline_exceeded");
        let listed = async || {
            let listed = world.call(&sandbox, "/process.Process/List", json!({})).await;
            let listed: Value = listed.json().await.unwrap();
            listed["processes"]
                .as_array()
                .unwrap()
                .is_empty()
                .then_some(())
                .ok_or(listed)
        };
        cellblock_testkit::wait::until_ok(listed).await;
        let proto = world.inside(&sandbox, Method::POST, "/process.Process/List");
        let proto = proto.header("content-type", "application/proto").sent().await;
        refused(proto, 415).await;
    });
}

#[test]
fn a_terminal_is_resized_and_ends() {
    block_on(async {
        let world = E2bFixture::start().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let body = json!({
            "process": {"cmd": "/bin/bash", "args": ["-i"], "envs": {"PS1": "$ "}},
            "pty": {"size": {"cols": 80, "rows": 24}}
        });
        let mut terminal = Messages::of(world.stream(&sandbox, "/process.Process/Start", &body).await);
        let (start, _) = terminal.next().await;
        let process = json!({"pid": start["event"]["start"]["pid"]});
        let resize = json!({"process": process, "pty": {"size": {"cols": 101, "rows": 33}}});
        assert_eq!(
            world
                .call(&sandbox, "/process.Process/Update", resize)
                .await
                .status(),
            200
        );
        let input = STANDARD.encode("stty size; exit 0\n");
        let input = json!({"process": process, "input": {"pty": input}});
        assert_eq!(
            world
                .call(&sandbox, "/process.Process/SendInput", input)
                .await
                .status(),
            200
        );
        let (events, _) = terminal.all().await;
        assert!(text(&events, "pty").contains("33 101"), "{events:?}");
    });
}
