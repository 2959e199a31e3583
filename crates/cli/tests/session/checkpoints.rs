//! Cells of a session, and going back in it.

use anyhow::Result;
use serde_json::{Value, json};

use crate::support::World;

#[test]
fn a_script_rolls_a_session_back() -> Result<()> {
    let world = World::new()?;
    let script = r#"
id=$("$cellblock" session start --image "$image" 2>/dev/null)
"$cellblock" session checkpoints "$id"
"$cellblock" session run "$id" -c 'x = 1; _ = open("/workspace/a.txt","w").write("one")'
"$cellblock" session checkpoint "$id" before
"$cellblock" session run "$id" -c 'x = 2; _ = open("/workspace/a.txt","w").write("two")'
"$cellblock" session rollback "$id" before 2>&1
"$cellblock" session run "$id" -c 'x, open("/workspace/a.txt").read()'
printf 'print("from stdin")' | "$cellblock" session run "$id" -c -
"$cellblock" session run "$id" -c '1 / 0' >/dev/null || echo "code $?"
"$cellblock" session rollback "$id" nonesuch 2>&1 || echo "code $?"
"$cellblock" session checkpoints --json "$id"
"$cellblock" session remove-checkpoint "$id" before
"$cellblock" session checkpoints "$id"
"$cellblock" session stop "$id" >/dev/null
"#;
    let (code, stdout, stderr) = world.script(script)?;
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let (listed, others): (Vec<&str>, Vec<&str>) = stdout.lines().partition(|line| line.starts_with('{'));
    let none = "no checkpoint; `cellblock session checkpoint` makes one";
    assert_eq!(
        others,
        [
            none,
            "c1",
            "note: variables and files are as they were at c1 (before)",
            "(1, 'one')",
            "from stdin",
            "code 1",
            "error: find checkpoint `nonesuch`: this session has no such checkpoint; it has `c1` (before)",
            "code 2",
            none,
        ]
    );
    let listed: Value = serde_json::from_str(listed[0])?;
    let kept = &listed["checkpoints"][0];
    assert_eq!(
        (&kept["id"], &kept["name"], &kept["cell"]),
        (&json!("c1"), &json!("before"), &json!(1))
    );
    Ok(())
}

#[test]
fn a_note_of_a_session_has_no_control_characters() -> Result<()> {
    let world = World::new()?;
    let script = r#"
id=$("$cellblock" session start --image "$image" 2>/dev/null)
"$cellblock" session run "$id" -c 'x = 1'
"$cellblock" session hibernate "$id" 2>/dev/null
"$cellblock" session run "$id" -c '1' 2>&1
"$cellblock" session stop "$id" >/dev/null
"#;
    let (code, stdout, stderr) = world.script(script)?;
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(stdout.lines().any(|line| line.starts_with("note: ")), "{stdout}");
    assert!(
        !stdout.contains("\\x1b") && !stdout.contains('\u{1b}'),
        "{stdout}"
    );
    Ok(())
}

#[test]
fn a_script_tries_a_cell_and_discards_or_keeps_it() -> Result<()> {
    let world = World::new()?;
    let script = r#"
id=$("$cellblock" session start --image "$image" 2>/dev/null)
"$cellblock" session run "$id" -c 'x = 1'
"$cellblock" session try "$id" -c 'x = 2; y = 3; _ = open("/workspace/a.txt","w").write("two"); x' 2>&1 | sed "s/$id/ID/g"
"$cellblock" session run "$id" -c 'x' 2>&1 || echo "code $?"
"$cellblock" session discard "$id" 2>&1
"$cellblock" session run "$id" -c 'x'
"$cellblock" session keep "$id" 2>&1 || echo "code $?"
"$cellblock" session try "$id" -c '1 / 0' >/dev/null 2>&1 || echo "code $?"
"$cellblock" session keep "$id" 2>&1
"$cellblock" session stop "$id" >/dev/null
"#;
    let (code, stdout, stderr) = world.script(script)?;
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert_eq!(
        stdout.lines().collect::<Vec<_>>(),
        [
            "x: 2",
            "changed variable x",
            "created variable y",
            "created /workspace/a.txt",
            "note: decide with `cellblock session keep ID` or `cellblock session discard ID`",
            "error: this session has an undecided try (cell 2), of which nothing counts yet: keep it or \
             discard it first",
            "code 2",
            "note: variables and files are as they were before cell 2",
            "x: 1",
            "error: decide a try: this session has no undecided try; try a cell first",
            "code 2",
            "code 1",
            "note: the try of cell 4 is kept",
        ]
    );
    Ok(())
}

#[test]
fn a_script_forks_a_session() -> Result<()> {
    let world = World::new()?;
    let script = r#"
id=$("$cellblock" session start --image "$image" 2>/dev/null)
"$cellblock" session run "$id" -c 'x = [1]; _ = open("/workspace/a.txt","w").write("one")'
"$cellblock" session fork "$id" 3 > forks
"$cellblock" session stop "$id" >/dev/null
for fork in $(cat forks); do
    "$cellblock" session run "$fork" -c "x.append(len(x) + 1); x, open('/workspace/a.txt').read()"
done
set -- $(cat forks)
"$cellblock" session stop "$1" >/dev/null
"$cellblock" session run "$1" -c 1 >/dev/null 2>&1 || echo "code $?"
"$cellblock" session fork "$2" > one
"$cellblock" session run "$(cat one)" -c x
"$cellblock" session fork "$2" 17 2>&1 || echo "code $?"
"$cellblock" session run "$2" -c 'import socket; held = socket.socketpair()'
"$cellblock" session fork "$2" 2>/dev/null || echo "code $?"
"$cellblock" session stop --all >/dev/null
"$cellblock" session list
"#;
    let (code, stdout, stderr) = world.script(script)?;
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert_eq!(
        stdout.lines().collect::<Vec<_>>(),
        [
            "([1, 2], 'one')",
            "([1, 2], 'one')",
            "([1, 2], 'one')",
            "code 2",
            "x: [1, 2]",
            "error: invalid count `17`: a fork makes 1 to 16 sessions",
            "code 2",
            "code 2",
            "no session is running; `cellblock session start` starts one",
        ]
    );
    Ok(())
}
