//! What `cellblock serve` and `cellblock config` say of what they cannot use.

use cellblock_testkit::{Cli, Finished, require};
use tempfile::TempDir;

use crate::support::serve;

fn folder(config: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    if !config.is_empty() {
        std::fs::write(folder.path().join("cellblock.yaml"), config).unwrap();
    }
    folder
}

fn run(config: &str, args: &[&str]) -> Finished {
    let folder = folder(config);
    let state = folder.path().join("state");
    let cli = Cli::new(args.iter().copied()).folder(folder.path());
    cli.env("CELLBLOCK_SERVE__STATE", state).run().unwrap()
}

#[test]
fn without_a_model_it_says_what_to_write() {
    let told = run("", &["serve"]);
    assert_eq!(told.code(), 2);
    insta::assert_snapshot!(told.stderr);
}

#[test]
fn a_broken_configuration_is_told_with_its_line_by_both_commands() {
    let config = "providers:\n  local:\n    type: chat\n    base_ur: http://127.0.0.1:1/v1\n";
    for args in [
        &["serve"][..],
        &["config", "check"],
        &["config", "show"],
        &["serve", "--demo"],
    ] {
        let told = run(config, args);
        assert_eq!(told.code(), 2, "{args:?}");
        assert_eq!(told.stdout, "");
        assert_eq!(
            told.stderr,
            "error: read the configuration: cellblock.yaml:4:5: `providers.local.base_ur`: there is no such key; did you mean `base_url`?\n"
        );
    }
}

#[test]
fn a_configuration_that_can_be_served_is_said_to_be_right() {
    let config = "providers: {local: {type: chat, base_url: 'http://127.0.0.1:1/v1', key_env: MY_KEY}}";
    let told = run(config, &["config", "check", "cellblock.yaml"]);
    assert_eq!(told.code(), 2);
    assert!(
        told.stderr
            .contains("the environment variable `MY_KEY` is not set"),
        "{}",
        told.stderr
    );
    let folder = folder(config);
    let cli = |args: &[&str]| {
        let cli = Cli::new(args.iter().copied()).folder(folder.path());
        cli.env("MY_KEY", "sk-secret").run().unwrap()
    };
    let told = cli(&["config", "check"]);
    assert_eq!(
        (told.code(), told.stdout.as_str()),
        (0, "cellblock.yaml: nothing is wrong\n")
    );
    let told = cli(&["config", "show"]);
    assert!(told.stdout.contains("    key_env: MY_KEY"), "{}", told.stdout);
    assert!(!told.stdout.contains("sk-secret"));
    let told = cli(&["config", "schema"]);
    let schema: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(schema["title"], "cellblock.yaml");
}

#[test]
fn a_file_that_is_named_has_to_be_there() {
    let told = run("", &["serve", "--config", "none.yaml"]);
    assert_eq!(told.code(), 2);
    assert_eq!(
        told.stderr,
        "error: read the configuration `none.yaml`\n  caused by: No such file or directory (os error 2)\n"
    );
}

#[test]
fn a_port_or_a_state_that_is_taken_is_told() {
    require!(UserNamespaces);
    let server = serve("", &["--demo"], &[]);
    let told = run("", &["serve", "--demo", "--listen", &server.address.to_string()]);
    assert_eq!(told.code(), 2);
    let expected = format!(
        "error: listen on {}\n  caused by: Address already in use (os error 98)\nhint: end what listens there, or name another port; port 0 takes one \
         that is free\n",
        server.address
    );
    assert_eq!(told.stderr, expected);
    let state = server.folder.path().join("state");
    let cli = Cli::new(["serve", "--demo", "--listen", "127.0.0.1:0"]).env("CELLBLOCK_SERVE__STATE", &state);
    let told = cli.run().unwrap();
    assert_eq!(told.code(), 2);
    let expected = format!(
        "error: serve: another server has its state in `{}`; ",
        state.display()
    );
    assert!(told.stderr.starts_with(&expected), "{}", told.stderr);
}
