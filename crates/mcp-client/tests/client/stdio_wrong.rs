//! Servers over stdio that do something wrong: each is bounded and named, and the next call works where it can.

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

/// Answers that are useless, and what is told of them. After each the server is asked for something good.
const WRONG: [(&str, &str); 7] = [
    (
        "large",
        "the server `weather` answered with more than 1 MiB, which are the most; ask for less, such as fewer rows or columns",
    ),
    (
        "endless",
        "the server `weather` answered with more than 1 MiB, which are the most; ask for less, such as fewer rows or columns",
    ),
    (
        "invalid",
        "the server `weather` sent what is no message of the Model Context Protocol: it is not valid JSON of such a message",
    ),
    (
        "binary",
        "the server `weather` sent what is no message of the Model Context Protocol: it is not UTF-8",
    ),
    (
        "noise",
        "the server `weather` sent what is no message of the Model Context Protocol: 1000 lines of its stdout were no JSON objects; it has to \
         log to stderr",
    ),
    (
        "dies",
        "the server `weather` ended before it answered; it is started again when it is used next",
    ),
    (
        "floods",
        "the server `weather` asked its client 32 things at once without waiting for an answer; it was cut off",
    ),
];

#[tokio::test]
async fn a_server_that_breaks_the_connection_is_named_and_started_again() {
    for (how, told) in WRONG {
        let scripted = scripted(how, small());
        assert_eq!(
            refused_with(&scripted.server, json!({"mib": 2})).await,
            told,
            "{how}"
        );
        // Another process counts anew.
        assert_eq!(good(&scripted.server).await, "call 1", "{how}");
        assert_eq!(scripted.pids().len(), 2, "{how}");
    }
}

#[tokio::test]
async fn a_result_of_no_use_leaves_the_connection_standing() {
    for (how, told) in [
        (
            "deep",
            "the server `weather` answered with JSON that is nested more than 100 levels deep; ask for something flatter",
        ),
        (
            "input",
            "the server `weather` asks a person for more, which nobody here can answer",
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
        "the server `weather` answered with JSON of more than 37500 values; ask for less, such as fewer rows or columns"
    );
    assert_eq!(good(&scripted.server).await, "call 2");
}

#[tokio::test]
async fn some_lines_that_are_no_messages_do_no_harm() {
    let scripted = scripted("noisy", options());
    assert_eq!(result(&scripted.server, "work", json!({})).await, "done");
}

#[tokio::test]
async fn one_broken_tool_leaves_the_others_standing() {
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
                "its name is none of the protocol: 1 to 128 letters, digits and `_`, `-`, `.`, `/`"
            ),
            (
                "schema",
                "its input schema is none: `/properties` is no object of schemas"
            ),
            (
                "away",
                "its input schema is none: `/properties/a/$ref` leads out of the schema, where nothing is fetched"
            ),
        ]
    );
}

#[tokio::test]
async fn a_list_without_an_end_is_cut() {
    let scripted = scripted("pages", options());
    let offered = scripted.server.tools().await.unwrap();
    assert_eq!(offered.tools.len(), 32);
    assert_eq!(
        offered.left_out[0].reason,
        "the list of tools has more than 32 pages, which are the most"
    );
}

/// Asks for tools twice: the second time costs nothing, and the server is left alone.
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
    // One that is killed at once had no time to say so.
    assert!(scripted.pids().len() <= most_started, "{how}");
}

#[tokio::test]
async fn a_server_that_hangs_or_ends_before_it_is_ready_does_not_cost_every_turn_its_time() {
    let silent = "the server `weather` was not ready within 0.4 s, the limit `connect_timeout`; go on without it, or try again later";
    useless("connect", SHORT, silent, 1).await;
    let ended = "the server `weather` ended before it was ready; it is started again when it is used next";
    useless("starts", options().connect_timeout, ended, 2).await;
}

#[tokio::test]
async fn a_server_that_hangs_while_it_lists_its_tools_is_left_alone() {
    // Long enough to begin on a busy machine, and it is waited for once.
    let limit = std::time::Duration::from_secs(5);
    let silent = "the server `weather` did not list its tools within 5 s, the limit `connect_timeout`; go on without it, or try again later";
    useless("list", limit, silent, 1).await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_without_its_path() {
    let program = cellblock_mcp_client::Program {
        command: vec!["/nowhere/secret/server".to_owned(), "--key=hunter2".to_owned()],
        environment: vec![("KEY".to_owned(), "hunter2".to_owned())],
    };
    assert!(!format!("{program:?}").contains("hunter2"), "{program:?}");
    let transport = cellblock_mcp_client::Transport::Stdio(program);
    let server = cellblock_mcp_client::ForeignServer::new("weather", transport, options());
    assert_eq!(
        refused(&server).await,
        "the server `weather` could not be started; its operator finds the reason in the log, go on without it"
    );
    let error = server.tools().await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("No such file"), "{cause}");
}

#[tokio::test]
async fn a_call_that_hangs_ends_at_its_limit_and_the_next_one_finds_a_server_that_answers() {
    let limits = ServerOptions {
        timeout: SHORT,
        ..options()
    };
    let told = "the server `weather` did not answer the call of `work` within 0.4 s, the limit `timeout`; ask for less, or try again later";
    // Its one thread is stuck: after a sign of life was waited for, another process is asked.
    let stuck = scripted("hang", limits.clone());
    assert_eq!(names(&stuck.server).await, ["work"]);
    assert_eq!(refused(&stuck.server).await, told);
    assert_eq!(names(&stuck.server).await, ["work"]);
    let again: Value = good(&stuck.server).await;
    assert_eq!(again, "call 1");
    assert_eq!(stuck.pids().len(), 2);
    // It only takes long: it is the same process that goes on.
    for revision in ["before", "newest"] {
        let slow = scripted_with(&["slow", revision], limits.clone());
        assert_eq!(names(&slow.server).await, ["work"]);
        assert_eq!(refused(&slow.server).await, told);
        assert_eq!(good(&slow.server).await, "call 2", "{revision}");
        assert_eq!(slow.pids().len(), 1, "{revision}");
    }
}

#[tokio::test]
async fn a_server_that_ended_since_the_last_call_is_started_again_without_a_word() {
    let scripted = scripted("leaves", options());
    for _ in 0..3 {
        assert_eq!(result(&scripted.server, "work", json!({})).await, "gone");
        // What it is sent until then may be lost, and nobody can say whether it was.
        let pid = *scripted.pids().last().unwrap();
        until("it ended", || !runs(pid)).await;
    }
    assert_eq!(scripted.pids().len(), 3);
}
