//! Tools that keep a session's state, go back to it, try code, and make several sessions of one.

use serde_json::{Value, json};

use crate::support::{
    Client, McpConnection, answer, block_on, connect, done, newest, refused, server, session, text,
};

async fn client() -> McpConnection {
    let server = server(|options| options.lacks = &[]).await;
    connect(&server, Client::default(), newest()).await
}

async fn run(client: &McpConnection, session: &str, code: &str) -> Value {
    done(client, "run_python", json!({"session_id": session, "code": code})).await
}

async fn shown(client: &McpConnection, session: &str, code: &str) -> Value {
    run(client, session, code).await["outputs"][0]["value"].clone()
}

#[test]
fn a_session_goes_back_to_a_checkpoint() {
    block_on(async {
        let client = client().await;
        let session = session(&client).await;
        run(
            &client,
            &session,
            "x = 1\n_ = open('/workspace/a', 'w').write('one')",
        )
        .await;
        let kept = done(
            &client,
            "checkpoint",
            json!({"session_id": session, "name": "before"}),
        )
        .await;
        assert_eq!(
            (&kept["id"], &kept["name"], &kept["files"]),
            (&json!("c1"), &json!("before"), &json!(1))
        );
        run(
            &client,
            &session,
            "x = 2\n_ = open('/workspace/a', 'w').write('two')",
        )
        .await;
        let back = json!({"session_id": session, "checkpoint": "before"});
        let back = done(&client, "rollback", back).await;
        assert_eq!(
            (&back["checkpoint"]["id"], &back["cell"]),
            (&json!("c1"), &json!(2))
        );
        let state = "f\"{x} {open('/workspace/a').read()}\"";
        assert_eq!(shown(&client, &session, state).await, "1 one");
        let missing = json!({"session_id": session, "checkpoint": "later"});
        let message = refused(&client, "rollback", missing).await;
        assert!(message.contains("it has `c1` (before)"), "{message}");
        let taken = json!({"session_id": session, "name": "before"});
        let message = refused(&client, "checkpoint", taken).await;
        assert!(message.contains("use another name"), "{message}");
    });
}

#[test]
fn code_is_tried_and_then_kept_or_discarded() {
    block_on(async {
        let client = client().await;
        let session = session(&client).await;
        run(&client, &session, "x = 1").await;
        let code = "x = 2\n_ = open('/workspace/a', 'w').write('two')\nprint('tried', x)";
        let arguments = json!({"session_id": session, "code": code});
        let decide = |decision: &str| json!({"session_id": session, "decision": decision});
        let tried = answer(&client, "try_python", arguments.clone()).await;
        let told = text(&tried);
        for part in [
            "tried 2",
            "x (changed)",
            "/workspace/a (created)",
            "Call `decide_try`",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
        let tried = tried.structured_content.unwrap();
        assert_eq!(tried["undecided"], true);
        assert_eq!(tried["changes"]["files"][0]["path"], "/workspace/a");
        let message = refused(&client, "run_python", json!({"session_id": session, "code": "x"})).await;
        assert!(message.contains("undecided try (cell 2)"), "{message}");
        let decided = done(&client, "decide_try", decide("discard")).await;
        assert_eq!(decided, json!({"cell": 2, "kept": false}));
        assert_eq!(shown(&client, &session, "x").await, 1);
        let message = refused(&client, "decide_try", decide("keep")).await;
        assert!(message.contains("no undecided try"), "{message}");
        done(&client, "try_python", arguments).await;
        done(&client, "decide_try", decide("keep")).await;
        assert_eq!(shown(&client, &session, "x").await, 2);
        let raised = json!({"session_id": session, "code": "1 / 0"});
        let raised = answer(&client, "try_python", raised).await;
        assert!(text(&raised).starts_with("ZeroDivisionError: "), "{raised:?}");
        assert_eq!(raised.structured_content.unwrap()["undecided"], true);
    });
}

#[test]
fn a_fork_begins_with_the_variables_and_files_of_its_session() {
    block_on(async {
        let client = client().await;
        let session = session(&client).await;
        run(
            &client,
            &session,
            "x = [1]\n_ = open('/workspace/a', 'w').write('one')",
        )
        .await;
        let forked = done(
            &client,
            "fork_session",
            json!({"session_id": session, "count": 2}),
        )
        .await;
        assert_eq!(forked["parent"], json!(session));
        let forks: Vec<String> = serde_json::from_value(forked["sessions"].clone()).unwrap();
        assert_eq!(forks.len(), 2);
        for fork in &forks {
            let code = "x.append(2)\nf\"{x} {open('/workspace/a').read()}\"";
            assert_eq!(shown(&client, fork, code).await, "[1, 2] one");
        }
        assert_eq!(shown(&client, &session, "str(x)").await, "[1]");
        let message = refused(
            &client,
            "fork_session",
            json!({"session_id": session, "count": 17}),
        )
        .await;
        assert!(message.contains("16"), "{message}");
        let thread = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()";
        run(&client, &session, thread).await;
        let message = refused(&client, "fork_session", json!({"session_id": session})).await;
        assert!(message.contains("thread"), "{message}");
        let listed = done(&client, "list_sessions", json!({})).await;
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 3);
    });
}
