//! Code, commands and shells of a sandbox.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{events, of, open, text};
use crate::support::{RequestExt, block_on};

#[test]
fn code_that_raises_says_so_after_its_output() {
    block_on(async {
        let opened = open().await;
        let events = opened
            .code("print('before')\nimport sys; print('bad', file=sys.stderr)\n1 / 0")
            .await;
        assert_eq!(text(&events, "stdout"), "before\n");
        assert_eq!(text(&events, "stderr"), "bad\n");
        let error = &of(&events, "error").unwrap()["error"];
        assert_eq!(
            (&error["ename"], &error["evalue"]),
            (&json!("ZeroDivisionError"), &json!("division by zero"))
        );
        assert!(error["traceback"].as_array().unwrap().len() > 1, "{error}");
        let empty = opened
            .request(Method::POST, "/code")
            .json(&json!({"code": " "}))
            .sent()
            .await;
        assert_eq!(empty.status(), StatusCode::BAD_REQUEST);
        let other = json!({"code": "x", "context": {"language": "java"}});
        let other = opened.request(Method::POST, "/code").json(&other).sent().await;
        let other: Value = other.json().await.unwrap();
        assert_eq!(other["code"], "UNSUPPORTED");
        for (language, code) in [
            ("bash", "x=3; echo $((x + 4))"),
            ("javascript", "console.log(3 + 4)"),
        ] {
            let events = opened
                .events("/code", json!({"code": code, "context": {"language": language}}))
                .await;
            assert_eq!(text(&events, "stdout"), "7\n", "{events:?}");
        }
    });
}

#[test]
fn contexts_have_names_of_their_own_and_share_files() {
    block_on(async {
        let opened = open().await;
        let make = async || -> String {
            let made = opened
                .request(Method::POST, "/code/context")
                .json(&json!({"language": "python"}));
            let made: Value = made.read().await;
            made["id"].as_str().unwrap().to_owned()
        };
        let run = async |id: &str, code: &str| {
            let request = json!({"code": code, "context": {"id": id, "language": "python"}});
            opened.events("/code", request).await
        };
        let (one, other) = (make().await, make().await);
        opened.code("x = 'default'").await;
        run(
            &one,
            "x = 'one'\ndef get():\n    return x\nopen('shared', 'w').write('both')",
        )
        .await;
        let events = run(&other, "print('x' in globals(), open('shared').read())").await;
        assert_eq!(text(&events, "stdout"), "False both\n", "{events:?}");
        let events = run(&one, "print(x, get())").await;
        assert_eq!(text(&events, "stdout"), "one one\n", "{events:?}");
        assert_eq!(of(&events, "execution_count").unwrap()["execution_count"], 2);
        assert_eq!(text(&opened.code("print(x)").await, "stdout"), "default\n");

        let list = async || -> Value {
            let listed = opened.request(Method::GET, "/code/contexts?language=python");
            listed.read().await
        };
        assert_eq!(list().await.as_array().unwrap().len(), 2);
        let path = format!("/code/contexts/{one}");
        assert_eq!(
            opened.request(Method::DELETE, &path).status().await,
            StatusCode::OK
        );
        assert_eq!(
            opened.request(Method::GET, &path).status().await,
            StatusCode::NOT_FOUND
        );
        let gone = json!({"code": "x", "context": {"id": one}});
        let gone = opened.request(Method::POST, "/code").json(&gone).sent().await;
        assert_eq!(gone.status(), StatusCode::NOT_FOUND);
        let all = opened
            .request(Method::DELETE, "/code/contexts?language=python")
            .sent()
            .await;
        assert_eq!(all.status(), StatusCode::OK);
        assert_eq!(list().await, json!([]));
    });
}

#[test]
fn a_run_of_code_is_interrupted_by_its_id() {
    block_on(async {
        let opened = open().await;
        let request = json!({"code": "import time\nprint('on', flush=True)\ntime.sleep(100)"});
        let mut answer = opened.request(Method::POST, "/code").json(&request).sent().await;
        let mut seen = String::new();
        while !seen.contains("on\\n") {
            seen.push_str(std::str::from_utf8(&answer.chunk().await.unwrap().unwrap()).unwrap());
        }
        let id = events(&seen)[0]["text"].as_str().unwrap().to_owned();
        let path = format!("/code?id={id}");
        assert_eq!(
            opened.request(Method::DELETE, &path).status().await,
            StatusCode::OK
        );
        let rest = events(&answer.text().await.unwrap());
        assert_eq!(
            of(&rest, "error").unwrap()["error"]["ename"],
            "KeyboardInterrupt",
            "{rest:?}"
        );
        assert_eq!(
            opened.request(Method::DELETE, &path).status().await,
            StatusCode::NOT_FOUND
        );
        assert_eq!(
            text(&opened.code("print(time.__name__)").await, "stdout"),
            "time\n"
        );
    });
}

#[test]
fn a_command_has_its_streams_apart_and_its_exit_code() {
    block_on(async {
        let opened = open().await;
        let request = json!({"command": "echo $COLOR $EXTRA; echo bad >&2; pwd; exit 3",
            "envs": {"EXTRA": "x"}, "cwd": "/tmp"});
        let events = opened.events("/command", request).await;
        assert_eq!(text(&events, "stdout"), "blue x\n/tmp\n");
        assert_eq!(text(&events, "stderr"), "bad\n");
        assert_eq!(of(&events, "error").unwrap()["error"]["evalue"], "3");
        let id = events[0]["text"].as_str().unwrap().to_owned();
        let status: Value = opened
            .request(Method::GET, &format!("/command/status/{id}"))
            .read()
            .await;
        assert_eq!(
            (&status["running"], &status["exit_code"]),
            (&json!(false), &json!(3))
        );
        let argv = opened
            .events("/command", json!({"argv": ["printf", "%s|", "a b", "c"]}))
            .await;
        assert_eq!(text(&argv, "stdout"), "a b|c|");
        assert!(of(&argv, "error").is_none());
        let late = opened
            .events("/command", json!({"command": "sleep 100", "timeout": 200}))
            .await;
        assert_eq!(of(&late, "error").unwrap()["error"]["evalue"], "124");
        let missing = opened.request(Method::GET, "/command/status/p999").sent().await;
        assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    });
}

#[test]
fn a_command_in_the_background_keeps_its_output() {
    block_on(async {
        let opened = open().await;
        let request = json!({"command": "echo one; echo two >&2; sleep 100", "background": true});
        let begun = opened.events("/command", request).await;
        assert_eq!(begun.last().unwrap()["type"], "execution_complete");
        let id = begun[0]["text"].as_str().unwrap().to_owned();
        let logs = async |cursor: u64| {
            let path = format!("/command/{id}/logs?cursor={cursor}");
            let answer = opened.request(Method::GET, &path).sent().await;
            let next: u64 = answer.headers()["execd-commands-tail-cursor"]
                .to_str()
                .unwrap()
                .parse()
                .unwrap();
            (answer.text().await.unwrap(), next)
        };
        let mut read = logs(0).await;
        while read.0 != "one\ntwo\n" {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            read = logs(0).await;
        }
        assert_eq!(logs(read.1).await, (String::new(), read.1));
        let stop = opened
            .request(Method::DELETE, &format!("/command?id={id}"))
            .sent()
            .await;
        assert_eq!(stop.status(), StatusCode::OK);
        loop {
            let path = format!("/command/status/{id}");
            let status: Value = opened.request(Method::GET, &path).read().await;
            if status["running"] == false {
                assert_ne!(status["exit_code"], 0);
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
}

#[test]
fn a_shell_keeps_its_variables_until_it_is_deleted() {
    block_on(async {
        let opened = open().await;
        let made = opened
            .request(Method::POST, "/session")
            .json(&json!({"cwd": "/tmp"}))
            .sent()
            .await;
        let made: Value = made.json().await.unwrap();
        let id = made["session_id"].as_str().unwrap().to_owned();
        let run = async |command: &str| {
            opened
                .events(&format!("/session/{id}/run"), json!({"command": command}))
                .await
        };
        let first = run("x='a b'; mkdir -p d; cd d; echo no newline >&2; printf 1").await;
        assert_eq!(
            (text(&first, "stdout"), text(&first, "stderr")),
            ("1".to_owned(), "no newline\n".to_owned())
        );
        let second = run("echo \"$x\"; pwd; cat; false").await;
        assert_eq!(text(&second, "stdout").trim_end(), "a b\n/tmp/d");
        assert_eq!(of(&second, "error").unwrap()["error"]["evalue"], "1");
        assert!(of(&run("true").await, "error").is_none());
        let path = format!("/session/{id}");
        assert_eq!(
            opened.request(Method::DELETE, &path).status().await,
            StatusCode::OK
        );
        let gone = opened
            .request(Method::POST, &format!("{path}/run"))
            .json(&json!({"command": "x"}))
            .sent()
            .await;
        assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    });
}
