//! Files of a session.

use cellblock_mcp::Server;
use rmcp::model::ReadResourceRequestParams;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{
    Client, answer, block_on, call, connect, done, newest, ordinary, read, refused, run, server, session,
    text, until,
};

#[test]
fn an_uploaded_file_is_there_for_code_and_comes_back() {
    block_on(async {
        let client = ordinary().await;
        let up = done(
            &client,
            "upload_file",
            json!({"path": "in/a.csv", "content": "a,b\n1,2\n"}),
        )
        .await;
        assert_eq!(up["path"], "/workspace/in/a.csv");
        assert_eq!(up["bytes"], 8);
        let session = up["session_id"].as_str().unwrap();
        let sum = run(
            &client,
            Some(session),
            "import pandas as pd; int(pd.read_csv('in/a.csv').b.sum())",
        )
        .await;
        assert_eq!(sum["outputs"][0]["value"], 2);
        let listed = done(&client, "list_files", json!({"session_id": session})).await;
        assert_eq!(listed["files"][0]["path"], "/workspace/in/a.csv");
        assert_eq!(listed["total"], 1);
        let down = answer(
            &client,
            "download_file",
            json!({"session_id": session, "path": "in/a.csv"}),
        )
        .await;
        let uri = up["uri"].as_str().unwrap();
        let header = format!(
            "[session_id] {session}\n[path] /workspace/in/a.csv\n[file] a.csv (text/csv, 8 bytes) {uri}\n"
        );
        assert_eq!(text(&down), format!("{header}a,b\n1,2\n"));
        assert_eq!(down.content.len(), 1);
        assert_eq!(down.structured_content.unwrap()["truncated"], false);
        let (content, media_type) = read(&client, up["uri"].as_str().unwrap()).await;
        assert_eq!((&*content, &*media_type), ("a,b\n1,2\n", "text/csv"));
    });
}

#[test]
fn bytes_go_in_as_base64_and_come_out_as_base64() {
    block_on(async {
        let client = ordinary().await;
        let up = json!({"path": "/tmp/b.bin", "content": "AP8B", "encoding": "base64"});
        let session = done(&client, "upload_file", up).await["session_id"].clone();
        let down = json!({"session_id": session, "path": "/tmp/b.bin", "embed": true});
        let down = answer(&client, "download_file", down).await;
        assert!(text(&down).ends_with("\nAP8B"), "{}", text(&down));
        assert_eq!(down.content.len(), 1);
        let data = down.structured_content.unwrap();
        assert_eq!((&data["text"], &data["base64"]), (&json!(null), &json!("AP8B")));
    });
}

#[test]
fn a_long_file_is_shown_in_part_and_read_whole_by_its_uri() {
    block_on(async {
        let client = ordinary().await;
        let made = run(&client, None, "open('long.txt', 'w').write('line\\n' * 100_000)").await;
        let session = made["session_id"].as_str().unwrap();
        let down = answer(
            &client,
            "download_file",
            json!({"session_id": session, "path": "long.txt"}),
        )
        .await;
        assert!(text(&down).chars().count() < 33_000, "{}", text(&down).len());
        let data = down.structured_content.unwrap();
        assert_eq!(
            (&data["truncated"], &data["bytes"]),
            (&json!(true), &json!(500_000))
        );
        assert_eq!(
            read(&client, data["uri"].as_str().unwrap()).await.0.len(),
            500_000
        );
    });
}

#[test]
fn paths_that_lead_elsewhere_are_rejected() {
    block_on(async {
        let client = ordinary().await;
        for path in ["/etc/passwd", "../../etc/x", "/workspace/../etc/x", "/tmp/data/x"] {
            let told = refused(&client, "upload_file", json!({"path": path, "content": "x"})).await;
            assert!(!told.is_empty(), "{path}");
        }
        let session =
            run(&client, None, "import os; os.symlink('/etc/passwd', 'link')").await["session_id"].clone();
        let told = refused(
            &client,
            "download_file",
            json!({"session_id": session, "path": "link"}),
        )
        .await;
        assert!(!told.contains("root:"), "{told}");
        let told = refused(
            &client,
            "download_file",
            json!({"session_id": session, "path": "none.txt"}),
        )
        .await;
        assert!(told.contains("none.txt"), "{told}");
    });
}

#[test]
fn missing_files_are_not_resources() {
    block_on(async {
        let client = ordinary().await;
        for uri in [
            "cellblock://artifacts/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "cellblock://sessions/sess_0/files/workspace/a",
            "file:///etc/passwd",
        ] {
            let error = client
                .read_resource(ReadResourceRequestParams::new(uri))
                .await
                .unwrap_err();
            assert!(
                error.to_string().contains("there is no such resource"),
                "{uri}: {error}"
            );
        }
    });
}

/// A server with a dataset, and the folder in which it is.
async fn with_dataset() -> (Server, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wine.csv");
    std::fs::write(&path, "a,b\n1,2\n").unwrap();
    let server = server(|options| {
        options.datasets.insert("wine".to_owned(), path);
    });
    (server.await, folder)
}

#[test]
fn the_link_to_a_dataset_leads_to_its_data() {
    block_on(async {
        let (server, _folder) = with_dataset().await;
        let client = connect(&server, Client::default(), newest()).await;
        let ran = run(&client, None, "open('/tmp/data/wine.csv').read()").await;
        assert_eq!(ran["outputs"][0]["value"], "a,b\n1,2\n");
        let file = json!({"session_id": ran["session_id"], "path": "/tmp/data/wine.csv"});
        let got = done(&client, "download_file", file).await;
        assert_eq!(got["text"], "a,b\n1,2\n");
        let (text, _) = read(&client, got["uri"].as_str().unwrap()).await;
        assert_eq!(text, "a,b\n1,2\n");
    });
}

#[test]
fn a_dataset_is_read_while_code_runs() {
    block_on(async {
        let (server, _folder) = with_dataset().await;
        let client = Client::default();
        let connected = connect(&server, client.clone(), newest()).await;
        let session = session(&connected).await;
        let peer = connected.peer().clone();
        let endless = json!({"code": "print('on', flush=True)\nwhile True: pass", "session_id": session});
        let running = tokio::spawn(async move { peer.call_tool_once(call("run_python", endless)).await });
        until("the code runs", async || client.heard().contains("on")).await;
        let file = json!({"session_id": session, "path": "/tmp/data/wine.csv"});
        let got = done(&connected, "download_file", file).await;
        assert_eq!(got["text"], "a,b\n1,2\n");
        let (text, _) = read(&connected, got["uri"].as_str().unwrap()).await;
        assert_eq!(text, "a,b\n1,2\n");
        assert!(!running.is_finished());
        done(&connected, "interrupt_session", json!({"session_id": session})).await;
        running.await.unwrap().unwrap();
    });
}

#[test]
fn a_list_of_files_has_as_many_as_a_model_has_room_for() {
    block_on(async {
        let server = server(|options| options.max_tokens = 500).await;
        let client = connect(&server, Client::default(), newest()).await;
        let ran = run(
            &client,
            None,
            "for i in range(90): open('a' * 200 + f'{i:02}', 'w').close()",
        )
        .await;
        let end = json!({"session_id": ran["session_id"]});
        let result = answer(&client, "list_files", end).await;
        assert!(text(&result).len() <= 500 * 4, "{}", text(&result).len());
        let listed = result.structured_content.unwrap();
        assert_eq!(listed["total"], 90);
        assert!(!listed["files"].as_array().unwrap().is_empty());
        // And what stands below a cell's outputs.
        let listed = answer(
            &client,
            "run_python",
            json!({"code": "for i in range(90): open('b' * 200 + f'{i:02}', 'w').close()",
                "session_id": ran["session_id"]}),
        )
        .await;
        let told = text(&listed);
        assert!(told.len() <= 500 * 4, "{}", told.len());
        assert!(told.ends_with(ran["session_id"].as_str().unwrap()), "{told}");
    });
}
