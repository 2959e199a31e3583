//! Long calls as tasks, where the client declared them.

use std::time::Duration;

use rmcp::ClientLifecycleMode;
use rmcp::model::{CallToolResponse, CancelTaskParams, GetTaskParams, TaskPayload};
use serde_json::json;

use crate::support::{Client, McpConnection, block_on, call, connect, newest, run, server, session, until};

async fn declared(after: Duration) -> McpConnection {
    declared_at(after, newest()).await
}

async fn declared_at(after: Duration, revision: ClientLifecycleMode) -> McpConnection {
    let server = server(|options| options.task_after = after).await;
    let client = Client {
        tasks: true,
        ..Client::default()
    };
    connect(&server, client, revision).await
}

#[test]
fn a_long_call_is_a_task_with_the_answer_at_its_end() {
    block_on(async {
        let client = declared(Duration::from_millis(50)).await;
        let slow = call(
            "run_python",
            json!({"code": "import time; time.sleep(1.5); 6 * 7"}),
        );
        let CallToolResponse::Task(begun) = client.call_tool_once(slow).await.unwrap() else {
            panic!("not a task")
        };
        let id = begun.task.task_id;
        let mut result = None;
        until("the task is completed", async || {
            let task = client
                .get_task(GetTaskParams::new(id.clone()))
                .await
                .unwrap()
                .task;
            match task.payload {
                TaskPayload::Completed { result: answer } => {
                    result = Some(answer);
                    true
                }
                TaskPayload::Working => false,
                other => panic!("{other:?}"),
            }
        })
        .await;
        assert_eq!(result.unwrap()["structuredContent"]["outputs"][0]["value"], 42);
    });
}

#[test]
fn a_short_call_is_answered_at_once() {
    block_on(async {
        let client = declared(Duration::from_mins(1)).await;
        assert_eq!(run(&client, None, "6 * 7").await["outputs"][0]["value"], 42);
    });
}

#[test]
fn a_cancelled_task_stops_its_code() {
    block_on(async {
        let client = declared(Duration::from_millis(50)).await;
        let session = session(&client).await;
        let endless = call(
            "run_python",
            json!({"code": "while True: pass", "session_id": session}),
        );
        let CallToolResponse::Task(begun) = client.call_tool_once(endless).await.unwrap() else {
            panic!("not a task")
        };
        let id = begun.task.task_id;
        client
            .cancel_task(CancelTaskParams::new(id.clone()))
            .await
            .unwrap();
        until("the task is cancelled", async || {
            let task = client
                .get_task(GetTaskParams::new(id.clone()))
                .await
                .unwrap()
                .task;
            matches!(task.payload, TaskPayload::Cancelled)
        })
        .await;
    });
}

#[test]
fn a_client_that_did_not_declare_tasks_gets_none() {
    block_on(async {
        let server = server(|options| options.task_after = Duration::ZERO).await;
        let client = connect(&server, Client::default(), newest()).await;
        assert_eq!(run(&client, None, "6 * 7").await["outputs"][0]["value"], 42);
    });
}

#[test]
fn a_client_that_declared_tasks_at_a_revision_without_them_gets_none() {
    block_on(async {
        let client = declared_at(Duration::ZERO, ClientLifecycleMode::Initialize).await;
        assert_eq!(run(&client, None, "6 * 7").await["outputs"][0]["value"], 42);
    });
}
