//! The workbench's tools, over the sandbox of the session's cells.

use cellblock_mcp::ImageDisplay;
use rmcp::model::ContentBlock;
use serde_json::json;

use crate::support::{
    Client, all, answer, block_on, connect, done, newest, refused, run, server, text, with_all,
};

#[test]
fn commands_and_cells_of_a_session_see_the_same_files() {
    block_on(async {
        let client = with_all().await;
        let written = json!({"file_path": "/workspace/a.py", "content": "print(6 * 7)\n"});
        let session = done(&client, "sandbox_write_file", written).await["session_id"].clone();
        let session = session.as_str().unwrap();
        let edit = json!({"session_id": session, "file_path": "/workspace/a.py", "old_string": "6 * 7",
            "new_string": "6 * 8"});
        done(&client, "sandbox_edit_file", edit).await;
        let ran = done(
            &client,
            "sandbox_exec",
            json!({"session_id": session, "command": ["python", "/workspace/a.py"]}),
        )
        .await;
        assert_eq!(ran["stdout"], "48\n");
        assert_eq!(ran["session_id"], session);
        let there = run(&client, Some(session), "open('/workspace/a.py').read()").await;
        assert_eq!(there["outputs"][0]["value"], "print(6 * 8)\n");
    });
}

#[test]
fn a_picture_in_the_output_folder_is_named_and_shown() {
    block_on(async {
        let server = server(|options| {
            all(options);
            options.images = ImageDisplay::Always;
        });
        let client = connect(&server.await, Client::default(), newest()).await;
        let script = "import matplotlib; matplotlib.use('Agg')\nimport matplotlib.pyplot as plt\n\
                      plt.plot([1, 2])\n\
                      plt.savefig('/tmp/output/plot.png')";
        let result = answer(
            &client,
            "sandbox_exec",
            json!({"command": ["python", "-c", script]}),
        )
        .await;
        assert_eq!(result.is_error, Some(false), "{}", text(&result));
        let picture = result.content.iter().find_map(ContentBlock::as_image).unwrap();
        assert!(picture.data.starts_with("iVBORw0KGgo"));
        let uri = result.structured_content.as_ref().unwrap()["resources"][0]["uri"]
            .as_str()
            .unwrap();
        assert!(uri.ends_with("/files/tmp/output/plot.png"), "{uri}");
        assert!(text(&result).contains(uri), "{}", text(&result));
    });
}

#[test]
fn a_long_stream_is_cut_to_the_budget_and_said_to_be() {
    block_on(async {
        let server = server(|options| {
            all(options);
            options.max_tokens = 1000;
        })
        .await;
        let client = connect(&server, Client::default(), newest()).await;
        let ran = done(&client, "sandbox_exec", json!({"command": ["seq", "1", "1000"]})).await;
        assert_eq!(ran["stdout_truncated"], true);
        assert_eq!(ran["stderr_truncated"], false);
        let stdout = ran["stdout"].as_str().unwrap();
        assert!(
            stdout.chars().count() <= 2000 && stdout.ends_with("\n1000"),
            "{}",
            stdout.len()
        );
    });
}

#[test]
fn a_refused_call_is_an_error_with_its_hint() {
    block_on(async {
        let client = with_all().await;
        let told = refused(&client, "sandbox_exec", json!({"command": "ls"})).await;
        assert!(told.contains("command") && told.contains("\"hint\""), "{told}");
        let told = refused(&client, "sandbox_edit_file", json!({"file_path": "/tmp/a"})).await;
        assert_eq!(
            told,
            "`session_id` is missing: give the handle of the session that `sandbox_edit_file` goes on in"
        );
    });
}
