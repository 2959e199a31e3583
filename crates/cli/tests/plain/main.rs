//! The plainest uses: a chart, a table and an exception, typed in each way that people type them,
//! over each face.
//!
//! A program that shows nothing is the worst fault of a code interpreter, since nobody learns of
//! it. So each of these programs runs over each face, and each has to show its result once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod command;
mod program;
mod server;
mod shown;
mod stdio;

use program::{Program, ProgramResult, programs};
use shown::FaceSummary;

/// Runs all programs over a face, and fails with the list of those that did not show what they should, once.
fn check(face: &str, mut run: impl FnMut(&Program) -> FaceSummary) {
    let mut wrong = Vec::new();
    let mut passed = 0;
    for program in programs() {
        let shown = run(&program);
        match shown.compare(&program.expected) {
            Ok(()) => passed += 1,
            Err(difference) => wrong.push(format!("{}: {difference}\n{}\n", program.name, program.code)),
        }
    }
    assert!(
        wrong.is_empty(),
        "over {face}, {passed} programs showed their result, and {} did not:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn code_of_an_option_shows_its_result() {
    check("`run -c`", |program| command::run_code(&program.code));
}

#[test]
fn a_file_of_one_cell_shows_its_result() {
    check("a file", |program| command::run_file(&program.code));
}

#[test]
fn the_last_of_two_cells_shows_its_result() {
    check("the second of two cells", |program| {
        command::run_file(&format!("# %%\nbefore = 1\n# %%\n{}", program.code))
    });
}

#[test]
fn the_first_of_two_cells_shows_its_result() {
    // A run ends with the first cell that fails, which then is the last one.
    check("the first of two cells", |program| {
        command::run_file(&format!("# %%\n{}\n# %%\nafter = 1\n", program.code))
    });
}

#[test]
fn standard_input_shows_its_result() {
    check("standard input", |program| command::run_stdin(&program.code));
}

#[test]
fn a_session_of_the_command_line_shows_its_result() {
    check("a session", |program| command::run_session(&program.code));
}

#[test]
fn a_warm_host_shows_its_result() {
    let host = command::WarmHost::start();
    check("a warm host", |program| host.run(&program.code));
}

#[test]
fn mcp_shows_its_result() {
    let mut client = stdio::McpClient::start();
    check("MCP", |program| client.run(&program.code));
}

#[test]
fn a_server_shows_its_result_over_each_protocol() {
    let server = server::PlainServer::start();
    check("REST", |program| server.rest(&program.code));
    check("Responses", |program| server.responses(&program.code));
    check("E2B", |program| server.e2b(&program.code));
    check("LibreChat", |program| server.librechat(&program.code));
}

#[test]
fn there_is_a_program_of_each_way() {
    let names: std::collections::BTreeSet<_> = programs().map(|it| it.name).collect();
    // Five ways to get at a library of charts, four to show a chart; a table and an exception.
    assert_eq!(names.len(), 5 * 4 + 2 * 2 + 2, "{names:?}");
    let raising = programs().filter(|it| matches!(it.expected, ProgramResult::Exception(_)));
    assert_eq!(raising.count(), 2);
}
