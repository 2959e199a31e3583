//! Use of sessions in scripts.

use std::fs;

use anyhow::{Context as _, Result};
use cellblock_testkit::{Schema, require};
use serde_json::{Value, json};

use crate::support::World;

#[test]
fn a_shell_script_drives_a_session_from_its_start_to_its_end() -> Result<()> {
    let world = World::new()?;
    fs::write(
        world.work().join("sales.csv"),
        "region,revenue\nnorth,40\nsouth,2\n",
    )?;
    let script = r#"
id=$("$cellblock" session start --image "$image" --dataset "q1 sales=sales.csv" --memory 512MiB 2>/dev/null)
call() { "$cellblock" tools call "$1" --session "$id" --args "$2" || echo "code $?"; }
call sandbox_write_file '{"file_path": "/tmp/sum.py", "content": "import csv\nrows = csv.DictReader(open(\"/tmp/data/q1.csv\"))\nprint(sum(int(row[\"revenue\"]) for row in rows))\n"}'
call sandbox_exec '{"command": ["python", "/tmp/sum.py"]}'
call sandbox_edit_file '{"file_path": "/tmp/sum.py", "old_string": "q1.csv", "new_string": "q1_sales.csv"}'
call sandbox_exec '{"command": ["sh", "-c", "mkdir -p /tmp/output; python /tmp/sum.py > /tmp/output/sum.txt"]}'
call sandbox_exec '{"command": ["ls", "/tmp/output"]}'
"$cellblock" session stop "$id"
cat "cellblock-out/session_$id/sum.txt"
"#;
    let (code, stdout, stderr) = world.script(script)?;
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let lines: Vec<_> = stdout.lines().collect();
    let json = |line: usize| -> Result<Value> { Ok(serde_json::from_str(lines[line])?) };
    assert_eq!(json(0)?["success"], true);
    let failed = json(1)?;
    assert_eq!(failed["exit_code"], 1);
    let traceback = failed["stderr"].as_str().context("no stderr")?;
    assert!(
        traceback.contains("FileNotFoundError: [Errno 2] No such file or directory: '/tmp/data/q1.csv'"),
        "{traceback}"
    );
    assert_eq!(lines[2], "code 1");
    assert_eq!(json(3)?["success"], true);
    let done = json(4)?;
    assert_eq!(
        (&done["exit_code"], &done["output_files"]),
        (&json!(0), &json!(["sum.txt"]))
    );
    assert_eq!(json(5)?["stdout"], "sum.txt\n");
    assert!(lines[6].starts_with("stopped "), "{}", lines[6]);
    assert_eq!(lines[7], "42");
    Ok(())
}

#[test]
fn a_session_keeps_nothing_of_the_shell_that_starts_it() -> Result<()> {
    let world = World::new()?;
    // A pipe that stays open would keep `$(…)` waiting, and descriptor 9 the lock.
    let script = r#"
exec 9> lock
flock 9
id=$("$cellblock" session start --image "$image")
host=$("$cellblock" session list --json | grep -o '"process":[0-9]*' | cut -d: -f2)
exec 9>&-
flock -n lock echo free
readlink "/proc/$host/cwd"
for number in 0 1 2; do readlink "/proc/$host/fd/$number"; done
cut -d' ' -f 5-7 "/proc/$host/stat"
echo "$host"
"#;
    let (code, stdout, stderr) = world.script(script)?;
    assert_eq!(code, 0, "{stderr}");
    let lines: Vec<_> = stdout.lines().collect();
    assert_eq!(lines[..4], ["free", "/", "/dev/null", "/dev/null"]);
    assert!(lines[4].ends_with("/log"), "{}", lines[4]);
    // A session and a group of its own, and no terminal.
    let host = lines[6];
    assert_eq!(lines[5], format!("{host} {host} 0"));
    Ok(())
}

#[test]
fn an_ordinary_user_has_sessions_of_their_own() -> Result<()> {
    require!(OrdinaryUser);
    require!(UserNamespaces);
    let world = World::of_an_ordinary_user()?;
    fs::write(world.work().join("a.csv"), "a\n1\n")?;
    let id = world.start(&["--dataset", "a=a.csv"])?;
    assert_eq!(world.exec(&id, &["cat", "/tmp/data/a.csv"])?["stdout"], "a\n1\n");
    let host = fs::read_to_string(format!("/proc/{}/status", world.host(&id)?))?;
    let uid = host.lines().find(|line| line.starts_with("Uid:"));
    assert!(
        uid.is_some_and(|line| !line.split_whitespace().any(|it| it == "0")),
        "{uid:?}"
    );
    assert_eq!(world.said(["session", "stop", &id])?, format!("stopped {id}"));
    assert!(world.places()?.is_empty());
    Ok(())
}

#[test]
fn two_sessions_share_no_files() -> Result<()> {
    let world = World::new()?;
    let (one, other) = (world.start(&[])?, world.start(&[])?);
    assert_ne!(one, other);
    assert_eq!(
        world.exec(&one, &["touch", "/tmp/secret", "/workspace/secret"])?["exit_code"],
        0
    );
    let seen = world.exec(&other, &["ls", "/tmp", "/workspace"])?;
    let seen = seen["stdout"].as_str().context("no stdout")?;
    assert!(!seen.contains("secret"), "{seen}");
    assert_ne!(world.host(&one)?, world.host(&other)?);
    assert_eq!(
        world.said(["session", "stop", "--all"])?.lines().count(),
        2,
        "both are stopped"
    );
    assert_eq!(world.listed(&one)?, None);
    Ok(())
}

#[test]
fn calls_at_once_are_all_answered() -> Result<()> {
    let world = World::new()?;
    let sessions = [world.start(&[])?, world.start(&[])?];
    let running: Vec<_> = (0..8)
        .map(|number| {
            let arguments = json!({ "command": ["echo", number.to_string()] });
            world
                .calling(&sessions[number % 2], "sandbox_exec", &arguments, &[])
                .start()
        })
        .collect::<Result<_>>()?;
    for (number, running) in running.into_iter().enumerate() {
        assert_eq!(running.finish()?.json()?["stdout"], format!("{number}\n"));
    }
    for session in &sessions {
        assert_eq!(world.listed(session)?.context("gone")?["calls"], 4);
    }
    Ok(())
}

#[test]
fn the_exit_code_tells_what_came_of_a_call() -> Result<()> {
    let world = World::new()?;
    let id = world.start(&[])?;
    let exec = |arguments: Value| world.call(&id, "sandbox_exec", &arguments);
    for (finished, code) in [
        (exec(json!({"command": ["true"]}))?, 0),
        (exec(json!({"command": ["sh", "-c", "exit 7"]}))?, 1),
        (exec(json!({"command": ["sleep", "250"], "timeout": 0.2}))?, 124),
        (exec(json!({"command": ["true"], "timeout": 301}))?, 2),
        (exec(json!({"cmd": "true"}))?, 2),
        (world.call(&id, "sandbox_format", &json!({}))?, 2),
        (
            world.call(
                &id,
                "sandbox_write_file",
                &json!({"file_path": "/etc/passwd", "content": ""}),
            )?,
            2,
        ),
    ] {
        assert_eq!(finished.code(), code, "{finished:?}");
        assert_eq!(finished.stdout.lines().count(), 1, "{finished:?}");
        assert_eq!(finished.json()?["success"] == false, code == 2, "{finished:?}");
        assert_eq!(finished.stderr, "");
    }
    Ok(())
}

#[test]
fn what_a_command_writes_is_shown_on_stderr_where_that_is_asked_for() -> Result<()> {
    let world = World::new()?;
    let id = world.start(&[])?;
    let code = "import sys; print('\\x1b[2Jout'); print('err', file=sys.stderr)";
    let arguments = json!({ "command": ["python", "-c", code] });
    let call = |more: &[&str]| world.calling(&id, "sandbox_exec", &arguments, more).run();
    let quiet = call(&[])?;
    assert_eq!(quiet.stderr, "");
    let watched = call(&["--watch"])?;
    assert_eq!(watched.stdout.lines().count(), 1);
    assert!(!watched.stderr.contains('\x1b'), "{:?}", watched.stderr);
    for line in ["out\n", "err\n"] {
        assert!(watched.stderr.contains(line), "{:?}", watched.stderr);
    }
    assert!(!quiet.stdout.contains('\x1b') && quiet.json()?["stdout"] == "\x1b[2Jout\n");
    Ok(())
}

#[test]
fn a_dataset_is_added_to_a_live_session_and_told_to_the_model() -> Result<()> {
    let world = World::new()?;
    let id = world.start(&[])?;
    assert_eq!(world.exec(&id, &["ls", "/tmp/data"])?["stdout"], "");
    fs::write(world.work().join("late.csv"), "city,people\nOslo,1\n")?;
    let path = world.said(["session", "add-dataset", &id, "late/one=late.csv"])?;
    assert_eq!(path, "/tmp/data/late_one.csv");
    assert_eq!(
        world.exec(&id, &["cat", &path])?["stdout"],
        "city,people\nOslo,1\n"
    );
    let prompt = world.said(["session", "prompt", &id])?;
    assert!(prompt.contains("`/tmp/data/late_one.csv`"), "{prompt}");
    assert_eq!(
        world.listed(&id)?.context("gone")?["datasets"],
        json!(["late/one"])
    );
    Ok(())
}

#[test]
fn tools_are_listed_with_schemas_that_are_schemas() -> Result<()> {
    let world = World::new()?;
    let listed = world.cli(["tools", "list", "--json"]).run()?.json()?;
    let tools = listed["tools"].as_array().context("no tools")?;
    assert_eq!(tools.len(), 5);
    for tool in tools {
        Schema::new(&tool["input_schema"])?;
        if tool["toolset"] == "workbench" {
            Schema::new(&tool["output_schema"])?;
        }
    }
    let id = world.start(&[])?;
    let result = world.exec(&id, &["true"])?;
    let schema = Schema::new(&tools[0]["output_schema"])?;
    schema.check(&result)
}
