//! E2B's own clients.

use std::process::Command;

use cellblock_testkit::{require, workspace_root};

use super::{KEY, World};
use crate::support::block_on;

/// Runs a program of `tests/clients/dialects/e2b` against a server.
fn passes(program: &str, arguments: &[&str]) {
    let folder = workspace_root().join("tests/clients/dialects/e2b");
    block_on(async {
        let world = World::start().await;
        let url = world.url("");
        let mut command = Command::new(if program == "node" {
            "node".into()
        } else {
            folder.join(program)
        });
        command
            .args(arguments)
            .current_dir(&folder)
            .env("E2B_API_URL", &url)
            .env("E2B_SANDBOX_URL", &url)
            .env("E2B_API_KEY", KEY)
            // The folder is the repository's; nothing is to be left there.
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let ran = tokio::task::spawn_blocking(move || command.output())
            .await
            .unwrap()
            .unwrap();
        let [out, err] = [ran.stdout, ran.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        assert!(ran.status.success(), "{program} {arguments:?}\n{out}\n{err}");
    });
}

#[test]
fn the_clients_of_python_work_unchanged() {
    require!(E2bPython);
    passes(".venv/bin/python", &["-m", "unittest", "test_e2b"]);
}

#[test]
fn the_client_of_javascript_works_unchanged() {
    require!(E2bNode);
    passes("node", &["--test", "e2b.test.js"]);
}
