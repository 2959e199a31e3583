//! Processes beside code.

use serde_json::json;

use crate::support::{Client, block_on, connect, done, newest, ordinary, refused, run, server};

#[test]
fn a_server_that_a_model_starts_answers_its_code_until_it_is_stopped() {
    block_on(async {
        let client = ordinary().await;
        let script = "import socket\nlistener = socket.socket(socket.AF_UNIX)\nlistener.bind('/tmp/it')\n\
                      listener.listen()\n\
                      print('ready', flush=True)\nwhile True:\n    peer, _ = listener.accept()\n    \
                      peer.sendall(b'hello')\n    peer.close()";
        let started = done(
            &client,
            "start_process",
            json!({"command": ["python", "-c", script]}),
        )
        .await;
        let session = started["session_id"].as_str().unwrap();
        let process = started["process"]["id"].as_str().unwrap();
        assert_eq!(started["process"]["state"], "running");
        let read = json!({"session_id": session, "action": "output", "process": process, "timeout": 60});
        let read = done(&client, "use_process", read).await;
        assert_eq!(
            read["output"],
            json!({"text": "ready\n", "next_offset": 6, "lost": 0, "total": 6, "eof": false})
        );
        let code = "import socket\npeer = socket.socket(socket.AF_UNIX)\npeer.connect('/tmp/it')\n\
                    print(peer.recv(5))";
        assert_eq!(run(&client, Some(session), code).await["stdout"], "b'hello'\n");
        let signal = json!({"session_id": session, "action": "signal", "process": process});
        done(&client, "use_process", signal).await;
        let wait = json!({"session_id": session, "action": "wait", "process": process, "timeout": 60});
        let ended = done(&client, "use_process", wait).await;
        assert_eq!(ended["processes"][0]["signal"], "SIGTERM");
        let list = done(
            &client,
            "use_process",
            json!({"session_id": session, "action": "list"}),
        )
        .await;
        assert_eq!(list["processes"], ended["processes"]);
    });
}

#[test]
fn input_is_sent_and_mistakes_are_told_with_a_repair() {
    block_on(async {
        let client = ordinary().await;
        let started = done(
            &client,
            "start_process",
            json!({"command": ["cat"], "stdin": true}),
        )
        .await;
        let session = started["session_id"].as_str().unwrap();
        let input = json!({"session_id": session, "action": "input", "process": "p1", "input": "one\n",
            "close": true});
        done(&client, "use_process", input).await;
        let wait = json!({"session_id": session, "action": "wait", "process": "p1", "timeout": 60});
        assert_eq!(
            done(&client, "use_process", wait).await["processes"][0]["exit_code"],
            0
        );
        let read = json!({"session_id": session, "action": "output", "process": "p1", "offset": 1});
        let output = &done(&client, "use_process", read).await["output"];
        assert_eq!((&output["text"], &output["eof"]), (&json!("ne\n"), &json!(true)));
        for (arguments, told) in [
            (json!({"action": "wait"}), "`process` is missing: "),
            (json!({"action": "wait", "process": "p7"}), "find process `p7`: "),
            (
                json!({"action": "wait", "process": "p1", "timeout": 61}),
                "`timeout` is 61: give between 0 and 60 seconds",
            ),
            (
                json!({"action": "signal", "process": "p1", "signal": "STOPPED"}),
                "`STOPPED` is not the name of a signal; ",
            ),
            (
                json!({"action": "signal", "process": "p1"}),
                "send a signal to process `p1`: it has ended",
            ),
            (
                json!({"action": "input", "process": "p1", "input": "x"}),
                "send input to process `p1`: its standard input is closed",
            ),
        ] {
            let mut arguments = arguments;
            arguments["session_id"] = json!(session);
            let message = refused(&client, "use_process", arguments).await;
            assert!(message.starts_with(told), "{message}");
        }
    });
}

#[test]
fn a_server_that_only_derives_offers_no_processes() {
    block_on(async {
        let server = server(|options| options.toolsets.retain(|kind| kind.on_results)).await;
        let client = connect(&server, Client::default(), newest()).await;
        let listed = client.list_tools(None).await.unwrap().tools;
        assert!(listed.iter().all(|tool| !tool.name.contains("process")));
    });
}
