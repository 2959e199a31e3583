//! Good servers over stdio.

use cellblock_agent::{ToolReply, ToolServer};
use cellblock_mcp_client::ServerOptions;
use serde_json::{Map, json};

use crate::support::{
    ScriptedServer, good, names, noted, object, options, refused, result, runs, scripted, scripted_with,
    until,
};

#[tokio::test]
async fn a_server_of_either_revision_lists_its_tools_and_answers() {
    for (arguments, revision) in [(&["good"][..], "a session"), (&["good", "newest"], "2026-07-28")] {
        let scripted = scripted_with(arguments, options());
        let offered = scripted.server.tools().await.unwrap();
        assert_eq!(offered.left_out, []);
        let [tool] = offered.tools.as_slice() else {
            panic!("{offered:?}")
        };
        assert_eq!(
            (tool.name.as_str(), tool.description.as_str()),
            ("work", "Works.")
        );
        assert_eq!(tool.input_schema, object(json!({"type": "object"})));
        let given = result(&scripted.server, "work", json!({"a": 1.0, "b": [null]})).await;
        assert_eq!(given, json!({"a": 1.0, "b": [null], "text": "1"}));
        assert_eq!(good(&scripted.server).await, json!("call 2"));
        // It is one process for all of it.
        assert_eq!(scripted.pids().len(), 1);
        assert_eq!(scripted.notes()[1], format!("called at {revision}"));
    }
}

#[tokio::test]
async fn nothing_is_started_before_it_is_used() {
    let scripted = scripted("good", options());
    assert_eq!(scripted.server.label(), "weather");
    assert_eq!(scripted.notes(), [""; 0]);
}

#[tokio::test]
async fn a_server_that_exits_on_the_newest_revision_gets_the_previous_one() {
    let scripted = scripted("before", options());
    assert_eq!(names(&scripted.server).await, ["work"]);
    assert_eq!(scripted.pids().len(), 2);
}

#[tokio::test]
async fn changed_tools_are_listed_again() {
    let scripted = scripted("changes", options());
    assert_eq!(names(&scripted.server).await, ["work"]);
    assert_eq!(result(&scripted.server, "work", json!({})).await, "changed");
    assert_eq!(names(&scripted.server).await, ["work", "new0"]);
}

#[tokio::test]
async fn a_server_of_the_newest_revision_that_starts_slowly_is_not_taken_for_an_earlier_one() {
    let scripted = scripted_with(&["late", "newest"], options());
    assert_eq!(good(&scripted.server).await, json!("call 1"));
    assert_eq!(scripted.pids().len(), 2);
    assert_eq!(scripted.notes().last().unwrap(), "called at 2026-07-28");
}

#[tokio::test]
async fn failures_of_tools_and_rejections_of_servers_are_reported() {
    let failing = scripted("failed", options());
    let reply = failing.server.call("work", Map::new()).await.unwrap();
    assert_eq!(reply, ToolReply::Failed("no such city".to_owned()));
    let refusing = scripted("refuses", options());
    assert_eq!(
        refused(&refusing.server).await,
        "the server `weather` rejected the request: wrong argument (code -32602)"
    );
    assert_eq!(good(&refusing.server).await, json!("call 2"));
}

#[tokio::test]
async fn only_allowed_tools_are_offered_and_called() {
    let allowed = ServerOptions {
        allowed_tools: Some(vec!["good".to_owned()]),
        ..options()
    };
    let scripted = scripted("names", allowed);
    assert_eq!(names(&scripted.server).await, ["good"]);
    assert_eq!(scripted.server.tools().await.unwrap().left_out, []);
    assert_eq!(
        refused(&scripted.server).await,
        "the server `weather` does not permit its tool `work`, only `good`"
    );
    assert_eq!(scripted.notes().len(), 1);
}

#[tokio::test]
async fn requests_of_a_server_are_rejected() {
    let scripted = scripted("asks", options());
    let told = result(&scripted.server, "work", json!({})).await;
    assert_eq!(told, json!([-32601, -32601, -32601, "answered"]));
}

#[tokio::test]
async fn the_last_handle_ends_the_server_by_the_end_of_its_stdin() {
    let scripted = scripted("good", options());
    good(&scripted.server).await;
    let pid = scripted.pids()[0];
    let ScriptedServer { server, folder } = scripted;
    let other = server.clone();
    drop(server);
    assert!(runs(pid));
    drop(other);
    until("the server ended", || !runs(pid)).await;
    assert_eq!(noted(&folder).last().unwrap(), "end of stdin");
}
