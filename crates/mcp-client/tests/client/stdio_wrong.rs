//! Servers over stdio that misbehave: each is limited and named, and the next call works if
//! possible.

use cellblock_agent::ToolServer;
use cellblock_mcp_client::ServerOptions;
use serde_json::{Value, json};

use crate::support::{
    SHORT, good, names, options, refused, refused_with, result, runs, scripted, scripted_with, until,
};

fn small() -> ServerOptions {
    ServerOptions {
        max_result: 1 << 20,
        ..options()
    }
}

/// Useless responses, with the expected errors. Each is followed by a valid call.
const WRONG: [(&str, &str); 7] = [
    (
        "large",
        "the server `weather` returned more than the limit of 1 MiB; request less, such as fewer \
         rows or columns",
    ),
    (
        "endless",
        "the server `weather` returned more than the limit of 1 MiB; request less, such as fewer \
         rows or columns",
    ),
    (
        "invalid",
        "the server `weather` sent an invalid message of the Model Context Protocol: it is not valid JSON",
    ),
    (
        "binary",
        "the server `weather` sent an invalid message of the Model Context Protocol: it is not UTF-8",
    ),
    (
        "noise",
        "the server `weather` sent an invalid message of the Model Context Protocol: 1000 lines of its \
         stdout were not JSON objects; it must log to stderr",
    ),
    (
        "dies",
        "the server `weather` exited before it responded; it is started again for the next call",
    ),
    (
        "floods",
        "the server `weather` sent its client 32 requests at once without reading a response; \
         it was disconnected",
    ),
];

#[tokio::test]
async fn a_server_that_breaks_the_connection_is_restarted() {
    for (how, told) in WRONG {
        let scripted = scripted(how, small());
        assert_eq!(
            refused_with(&scripted.server, json!({"mib": 2})).await,
            told,
            "{how}"
        );
        // The new process starts counting again.
        assert_eq!(good(&scripted.server).await, "call 1", "{how}");
        assert_eq!(scripted.pids().len(), 2, "{how}");
    }
}

#[tokio::test]
async fn a_useless_result_keeps_the_connection() {
    for (how, told) in [
        (
            "deep",
            "the server `weather` returned JSON that is nested more than 100 levels deep; request \
             something flatter",
        ),
        (
            "input",
            "the server `weather` requests input from a person, which is not supported here",
        ),
    ] {
        let scripted = scripted(how, options());
        assert_eq!(refused(&scripted.server).await, told);
        assert_eq!(good(&scripted.server).await, "call 2");
    }
    let scripted = scripted(
        "many",
        ServerOptions {
            max_result: 300_000,
            ..options()
        },
    );
    assert_eq!(
        refused(&scripted.server).await,
        "the server `weather` returned JSON with more than 37500 values; request less, such as fewer rows \
         or columns"
    );
    assert_eq!(good(&scripted.server).await, "call 2");
}

#[tokio::test]
async fn some_lines_that_are_not_messages_are_ignored() {
    let scripted = scripted("noisy", options());
    assert_eq!(result(&scripted.server, "work", json!({})).await, "done");
}

#[tokio::test]
async fn one_broken_tool_does_not_affect_the_others() {
    let scripted = scripted("names", options());
    assert_eq!(names(&scripted.server).await, ["good"]);
    let offered = scripted.server.tools().await.unwrap();
    let left_out: Vec<_> = offered
        .left_out
        .iter()
        .map(|it| (it.name.as_str(), it.reason.as_str()))
        .collect();
    assert_eq!(
        left_out,
        [
            ("work", "2 tools of the server have this name"),
            (
                "a b",
                "its name is invalid: must be 1 to 128 letters, digits and `_`, `-`, `.`, `/`"
            ),
            (
                "schema",
                "its input schema is invalid: `/properties` is not an object of schemas"
            ),
            (
                "away",
                "its input schema is invalid: `/properties/a/$ref` refers to another document, which is \
                 not fetched"
            ),
        ]
    );
}

#[tokio::test]
async fn an_endless_list_is_cut() {
    let scripted = scripted("pages", options());
    let offered = scripted.server.tools().await.unwrap();
    assert_eq!(offered.tools.len(), 32);
    assert_eq!(
        offered.left_out[0].reason,
        "the list of tools has more than the limit of 32 pages"
    );
}

/// Lists the tools twice: the second attempt is not sent and takes no time.
async fn useless(how: &str, connect_timeout: std::time::Duration, told: &str, most_started: usize) {
    let limits = ServerOptions {
        connect_timeout,
        ..options()
    };
    let scripted = scripted(how, limits);
    let why = || async { scripted.server.tools().await.unwrap_err().to_string() };
    assert_eq!(why().await, told);
    let again = why().await;
    assert!(
        again.starts_with(told) && again.contains(" s ago; it is tried again in "),
        "{again}"
    );
    assert!(refused(&scripted.server).await.starts_with(told));
    // A process that is killed immediately cannot report it.
    assert!(scripted.pids().len() <= most_started, "{how}");
}

#[tokio::test]
async fn a_server_that_is_never_ready_does_not_delay_every_turn() {
    let silent = "the server `weather` was not ready within 0.4 s, the limit `connect_timeout`; continue \
                  without it, or try again later";
    useless("connect", SHORT, silent, 1).await;
    let ended = "the server `weather` exited before it was ready; it is started again for the next call";
    useless("starts", options().connect_timeout, ended, 2).await;
}

#[tokio::test]
async fn a_server_that_hangs_while_listing_tools_is_not_retried_immediately() {
    // Long enough to start on a busy machine, and it is waited for only once.
    let limit = std::time::Duration::from_secs(5);
    let silent = "the server `weather` did not list its tools within 5 s, the limit `connect_timeout`; \
                  continue without it, or try again later";
    useless("list", limit, silent, 1).await;
}

#[tokio::test]
async fn a_missing_program_is_reported_without_its_path() {
    let program = cellblock_mcp_client::StdioProgram {
        command: vec!["/nowhere/secret/server".to_owned(), "--key=hunter2".to_owned()],
        environment: vec![("KEY".to_owned(), "hunter2".to_owned())],
    };
    assert!(!format!("{program:?}").contains("hunter2"), "{program:?}");
    let transport = cellblock_mcp_client::Transport::Stdio(program);
    let server = cellblock_mcp_client::ForeignServer::new("weather", transport, options());
    assert_eq!(
        refused(&server).await,
        "the server `weather` could not be started (the operator's log has the reason); continue without it"
    );
    let error = server.tools().await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("No such file"), "{cause}");
}

#[tokio::test]
async fn a_hanging_call_ends_at_its_limit_and_the_next_one_works() {
    let limits = ServerOptions {
        timeout: SHORT,
        ..options()
    };
    let told = "the server `weather` did not answer the call of `work` within 0.4 s, the limit `timeout`; \
                request less, or try again later";
    // Its only thread is stuck: after waiting for a sign of life, another process is used.
    let stuck = scripted("hang", limits.clone());
    assert_eq!(names(&stuck.server).await, ["work"]);
    assert_eq!(refused(&stuck.server).await, told);
    assert_eq!(names(&stuck.server).await, ["work"]);
    let again: Value = good(&stuck.server).await;
    assert_eq!(again, "call 1");
    assert_eq!(stuck.pids().len(), 2);
    // It is only slow: the same process continues.
    for revision in ["before", "newest"] {
        let slow = scripted_with(&["slow", revision], limits.clone());
        assert_eq!(names(&slow.server).await, ["work"]);
        assert_eq!(refused(&slow.server).await, told);
        assert_eq!(good(&slow.server).await, "call 2", "{revision}");
        assert_eq!(slow.pids().len(), 1, "{revision}");
    }
}

#[tokio::test]
async fn a_server_that_exited_between_calls_is_restarted_silently() {
    let scripted = scripted("leaves", options());
    for _ in 0..3 {
        assert_eq!(result(&scripted.server, "work", json!({})).await, "gone");
        // Messages sent until then may be lost, and it is unknown whether they were.
        let pid = *scripted.pids().last().unwrap();
        until("it ended", || !runs(pid)).await;
    }
    assert_eq!(scripted.pids().len(), 3);
}
