//! Messages of `cellblock serve` and `cellblock config` about what they cannot use.

use cellblock_testkit::{Cli, CommandOutput, require};
use tempfile::TempDir;

use crate::support::serve;

fn folder(config: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    if !config.is_empty() {
        std::fs::write(folder.path().join("cellblock.yaml"), config).unwrap();
    }
    folder
}

fn run(config: &str, args: &[&str]) -> CommandOutput {
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
fn both_commands_report_a_broken_configuration_with_its_line() {
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
            "error: read the configuration: cellblock.yaml:4:5: `providers.local.base_ur`: unknown key; \
             did you mean `base_url`?\n"
        );
    }
}

#[test]
fn a_valid_configuration_is_confirmed() {
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
fn a_port_or_state_in_use_is_reported() {
    require!(UserNamespaces);
    let server = serve("", &["--demo"], &[]);
    let told = run("", &["serve", "--demo", "--listen", &server.address.to_string()]);
    assert_eq!(told.code(), 2);
    let expected = format!(
        "error: listen on {}\n  caused by: Address already in use (os error 98)\n\
         hint: end what listens there, or name another port; port 0 takes one that is free\n",
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

#[test]
fn the_configuration_check_rejects_the_same_as_serve() {
    require!(UserNamespaces);
    let demo = "providers: {demo: {type: demo}}\n";
    for (config, code) in [
        // No model to answer with.
        ("limits: {cell_timeout: 5s}\n".to_owned(), 2),
        // Other machines would reach it, and there is no API key.
        (format!("{demo}listen: 0.0.0.0:0\n"), 78),
        (
            format!("{demo}http: {{origins: ['https://app.example.com/chat']}}\n"),
            2,
        ),
        (
            format!("{demo}listen: 127.0.0.1:4317\nmetrics: {{listen: '127.0.0.1:4317'}}\n"),
            2,
        ),
        (
            format!("{demo}tls: {{certificates: none.pem, key: none.pem}}\n"),
            2,
        ),
        (format!("{demo}image: none-such\n"), 2),
    ] {
        let served = run(&config, &["serve"]);
        assert_eq!(served.code(), code, "{config}{}", served.stderr);
        for args in [
            &["config", "check"][..],
            &["config", "check", "cellblock.yaml"],
            &["config", "check", "--config", "cellblock.yaml"],
        ] {
            let checked = run(&config, args);
            assert_eq!(
                (checked.code(), checked.stdout.as_str()),
                (code, ""),
                "{args:?} {config}"
            );
            assert_eq!(checked.stderr, served.stderr, "{args:?} {config}");
        }
    }
    // With the options of `serve` it checks what these options would serve.
    for args in [
        &["config", "check", "--demo"][..],
        &["config", "check", "--no-model"],
    ] {
        let checked = run("limits: {cell_timeout: 5s}\n", args);
        assert_eq!(
            (checked.code(), checked.stdout.as_str()),
            (0, "cellblock.yaml: nothing is wrong\n"),
            "{}",
            checked.stderr
        );
    }
    let shown = run(demo, &["config", "show", "--config", "cellblock.yaml"]);
    assert_eq!(shown.code(), 0, "{}", shown.stderr);
}

#[test]
fn damaged_records_are_reported_with_their_file_and_a_way_out_before_anything_is_served() {
    require!(UserNamespaces);
    let folder = folder("providers: {demo: {type: demo}}\n");
    let state = folder.path().join("state");
    let cli = |args: &[&str]| {
        let cli = Cli::new(args.iter().copied()).folder(folder.path());
        cli.env("CELLBLOCK_SERVE__STATE", &state).run().unwrap()
    };
    assert_eq!(cli(&["key", "create", "ci"]).code(), 0);
    let path = state.join("records.sqlite");
    let whole = std::fs::read(&path).unwrap();
    let mut middle = whole.clone();
    let page = whole.len() / 4096 / 2 * 4096;
    middle[page..].fill(0xa5);
    for damaged in [middle, vec![0xa5; 8192]] {
        std::fs::write(&path, damaged).unwrap();
        for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["config", "check"]] {
            let told = cli(args);
            assert_eq!(
                (told.code(), told.stdout.as_str()),
                (70, ""),
                "{args:?} {}",
                told.stderr
            );
            let expected = format!(
                "error: use the records at `{}`: the file is damaged: ",
                path.display()
            );
            assert!(told.stderr.starts_with(&expected), "{args:?} {}", told.stderr);
            for way_out in ["restore the file from a backup", ".recover", "move it away"] {
                assert!(told.stderr.contains(way_out), "{args:?} {}", told.stderr);
            }
        }
    }
    std::fs::write(&path, whole).unwrap();
    assert_eq!(cli(&["config", "check"]).code(), 0);
}
