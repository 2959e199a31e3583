//! Refused operations, and their messages.

use std::fs;

use anyhow::Result;
use serde_json::json;

use crate::support::World;
use cellblock_testkit::small_image;

#[test]
fn an_invalid_id_is_rejected_before_any_lookup() -> Result<()> {
    let world = World::new()?;
    let (long, foreign) = ("../".repeat(6) + "ab", "0123456789abcdef0123");
    for (id, told) in [
        (
            "nonsense",
            "is not a session's id, which has 20 characters of 0-9 and a-f",
        ),
        (&*long, "is not a session's id"),
        ("..", "is not a session's id"),
        (foreign, "there is no session `0123456789abcdef0123`"),
    ] {
        for arguments in [
            vec!["tools", "call", "sandbox_exec", "--session", id],
            vec!["session", "stop", id],
            vec!["session", "prompt", id],
            vec!["session", "add-dataset", id, "x=/dev/null"],
        ] {
            if arguments[1] == "add-dataset" && id == foreign {
                // The file is looked at first.
                continue;
            }
            let finished = world.cli(arguments.iter().copied()).run()?;
            assert_eq!(
                (finished.code(), finished.stdout.as_str()),
                (2, ""),
                "{arguments:?}"
            );
            assert!(
                finished.stderr.contains(told),
                "{arguments:?}: {}",
                finished.stderr
            );
        }
    }
    Ok(())
}

#[test]
fn arguments_that_are_not_an_object_reach_no_tool() -> Result<()> {
    let world = World::new()?;
    let id = world.start(&[])?;
    fs::write(world.work().join("args.json"), "{\"command\": [")?;
    for (given, told) in [
        ("{", "error: `--args` is not JSON: "),
        ("[\"ls\"]", "error: `--args` is JSON but no object; "),
        ("@args.json", "error: `args.json` is not JSON: "),
        ("@none.json", "error: read `none.json`"),
        ("-", "error: stdin is not JSON: "),
    ] {
        let call = ["tools", "call", "sandbox_exec", "--session", &id, "--args", given];
        let finished = world.cli(call).stdin("nothing").run()?;
        assert_eq!((finished.code(), finished.stdout.as_str()), (2, ""), "{given}");
        assert!(finished.stderr.starts_with(told), "{given}: {}", finished.stderr);
    }
    assert_eq!(world.listed(&id)?.unwrap_or_default()["calls"], 0);
    fs::write(
        world.work().join("args.json"),
        json!({"command": ["echo", "read"]}).to_string(),
    )?;
    for (given, stdin) in [("@args.json", ""), ("-", r#"{"command": ["echo", "read"]}"#)] {
        let call = ["tools", "call", "sandbox_exec", "--session", &id, "--args", given];
        assert_eq!(world.cli(call).stdin(stdin).run()?.json()?["stdout"], "read\n");
    }
    Ok(())
}

#[test]
fn a_session_that_cannot_be_started_says_why_and_leaves_nothing() -> Result<()> {
    let world = World::new()?;
    fs::create_dir(world.work().join("folder"))?;
    let image = small_image()?;
    for (options, code, told) in [
        (vec!["--dataset", "x=none.csv"], 2, "error: read `none.csv`"),
        (
            vec!["--dataset", "x=folder"],
            2,
            "error: `folder` is not a file, which a dataset has to be",
        ),
        (vec!["--dataset", "x"], 2, "`x` is not NAME=PATH; "),
        (
            vec!["--idle-timeout", "0"],
            2,
            "a session cannot be idle for 0 seconds; ",
        ),
        (
            vec!["--memory", "1"],
            2,
            "1 byte is less than the 32 MiB that a kernel needs",
        ),
        (vec!["--protection", "seccomp=off"], 2, "`off` is not `strict`"),
    ] {
        let start = ["session", "start", "--image", image];
        let finished = world
            .cli(start.into_iter().chain(options.iter().copied()))
            .run()?;
        assert_eq!(
            (finished.code(), finished.stdout.as_str()),
            (code, ""),
            "{options:?}: {}",
            finished.stderr
        );
        assert!(finished.stderr.contains(told), "{options:?}: {}", finished.stderr);
    }
    let unknown = world.cli(["session", "start", "--image", "unheard-of"]).run()?;
    assert_eq!((unknown.code(), unknown.stdout.as_str()), (2, ""));
    let listed = world.cli(["session", "list"]).run()?;
    assert_eq!(
        listed.stdout,
        "no session is running; `cellblock session start` starts one\n"
    );
    assert!(world.places()?.is_empty());
    Ok(())
}

#[test]
fn a_host_that_fails_to_start_reports_to_its_waiter() -> Result<()> {
    let world = World::new()?;
    let image = small_image()?;
    // Its store cannot be made where a file is.
    fs::write(world.home().join("artifacts"), "")?;
    let finished = world.cli(["session", "start", "--image", image]).run()?;
    assert_eq!((finished.code(), finished.stdout.as_str()), (70, ""));
    assert!(
        finished.stderr.contains("error: open the store of artifacts"),
        "{}",
        finished.stderr
    );
    assert!(world.places()?.is_empty());
    Ok(())
}

#[test]
fn a_host_is_not_started_by_hand() -> Result<()> {
    let world = World::new()?;
    let finished = world.cli(["session", "host", "0123456789abcdef0123"]).run()?;
    assert_eq!((finished.code(), finished.stdout.as_str()), (2, ""));
    assert!(
        finished
            .stderr
            .contains("a host is started by `cellblock session start`, not by itself"),
        "{}",
        finished.stderr
    );
    Ok(())
}

#[test]
fn sessions_that_others_could_reach_are_rejected() -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let world = World::new()?;
    let sessions = world.home().join("sessions");
    fs::create_dir(&sessions)?;
    fs::set_permissions(&sessions, fs::Permissions::from_mode(0o755))?;
    let finished = world.cli(["session", "list"]).run()?;
    assert_eq!(finished.code(), 78, "{}", finished.stderr);
    assert!(
        finished
            .stderr
            .contains("is not a directory that only the caller, user "),
        "{}",
        finished.stderr
    );
    fs::set_permissions(&sessions, fs::Permissions::from_mode(0o700))?;
    Ok(())
}
