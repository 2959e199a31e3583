//! E2B's own clients.

use std::process::Command;

use cellblock_dialects::E2bOptions;
use cellblock_testkit::{require, workspace_root};

use super::{KEY, World};
use crate::support::block_on;

/// Runs a program of `tests/clients/dialects/e2b` with variables that lead it to a server.
fn passes(world: &World, program: &str, arguments: &[&str], variables: &[(&str, &str)]) {
    let folder = workspace_root().join("tests/clients/dialects/e2b");
    let mut command = Command::new(if program == "node" {
        "node".into()
    } else {
        folder.join(program)
    });
    command
        .args(arguments)
        .current_dir(&folder)
        .envs(variables.iter().copied())
        // The folder is the repository's; nothing is to be left there.
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let ran = block_on(async { tokio::task::spawn_blocking(move || command.output()).await });
    let ran = ran.unwrap().unwrap();
    let [out, err] = [ran.stdout, ran.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    let address = world.server.address;
    assert!(
        ran.status.success(),
        "{program} {arguments:?} against {address}\n{out}\n{err}"
    );
}

/// Runs a program that finds the server by the addresses of E2B's API and sandboxes.
fn passes_by_address(program: &str, arguments: &[&str]) {
    let world = block_on(World::start());
    let url = world.url("");
    let variables = [
        ("E2B_API_URL", url.as_str()),
        ("E2B_SANDBOX_URL", &url),
        ("E2B_API_KEY", KEY),
    ];
    passes(&world, program, arguments, &variables);
}

#[test]
fn the_clients_of_python_work_unchanged() {
    require!(E2bPython);
    passes_by_address(".venv/bin/python", &["-m", "unittest", "test_e2b"]);
}

#[test]
fn the_client_of_javascript_works_unchanged() {
    require!(E2bNode);
    passes_by_address("node", &["--test", "e2b.test.js"]);
}

#[test]
fn the_client_of_python_works_in_debug_mode_with_one_variable() {
    require!(E2bPython);
    let options = E2bOptions {
        debug: true,
        ..E2bOptions::default()
    };
    let world = block_on(World::with(options));
    // No web page gets there.
    for (name, value) in [("origin", "http://evil.example"), ("host", "evil.example:49999")] {
        let asked = world
            .http
            .post("http://127.0.0.1:49999/execute")
            .header(name, value)
            .body("{}");
        let answer = block_on(asked.send()).unwrap();
        assert_eq!(answer.status(), 403, "{name}");
    }
    let arguments = ["-m", "unittest", "test_debug"];
    passes(&world, ".venv/bin/python", &arguments, &[("E2B_DEBUG", "true")]);
}
