//! The configuration's limits hold for sessions of `/mcp`.

use serde_json::json;

use super::client::{answer, block_on, connect, refused, run};
use crate::server::ServerHome;

#[test]
fn limits_of_the_configuration_hold() {
    let place = ServerHome::new();
    let server = place.serve_with(
        &[],
        &[
            ("CELLBLOCK_SERVE__LIMITS__OPEN_FILES", "99"),
            ("CELLBLOCK_SERVE__LIMITS__CELL_TIMEOUT", "1"),
            ("CELLBLOCK_SERVE__LIMITS__MAX_CELL_TIMEOUT", "20"),
            (
                "CELLBLOCK_SERVE__MCP__TOOLSETS",
                "[interpreter, workbench, derivation]",
            ),
            ("CELLBLOCK_SERVE__MCP__MAX_SESSIONS_PER_KEY", "2"),
        ],
    );
    block_on(async {
        let client = connect(&server, None).await;
        let tools = client.list_tools(None).await.unwrap().tools;
        assert_eq!(tools.len(), 26);
        let schema = serde_json::to_value(&*tools[0].input_schema).unwrap();
        let timeout = &schema["properties"]["timeout_seconds"];
        assert_eq!(timeout["maximum"], 20.0);
        assert_eq!(
            timeout["description"],
            "Seconds after which the code is interrupted: 1 by default, 20 at most."
        );
        let ran = run(
            &client,
            None,
            "import resource; resource.getrlimit(resource.RLIMIT_NOFILE)[0]",
        )
        .await;
        assert_eq!(ran["outputs"][0]["value"], 99);
        let session = ran["session_id"].clone();
        let told = refused(
            &client,
            "run_python",
            json!({"code": "1", "session_id": session, "timeout_seconds": 21}),
        )
        .await;
        assert_eq!(told, "`timeout_seconds` is 21: give more than 0 and at most 20");
        let endless = json!({"code": "while True: pass", "session_id": session});
        let stopped = answer(&client, "run_python", endless)
            .await
            .structured_content
            .unwrap();
        assert_eq!(stopped["outcome"], "interrupted", "{stopped}");
        run(&client, None, "1").await;
        // The session that was idle for the longest time makes room.
        run(&client, None, "1").await;
        let told = refused(&client, "run_python", json!({"code": "1", "session_id": session})).await;
        assert!(told.starts_with("there is no session"), "{told}");
    });
}
