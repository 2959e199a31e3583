//! Programs that run beside the tools of a session.

use anyhow::Result;
use serde_json::{Value, json};

use crate::support::World;

#[test]
fn a_script_runs_a_program_beside_the_tools_of_a_session() -> Result<()> {
    let world = World::new()?;
    let script = r#"
id=$("$cellblock" session start --image "$image" 2>/dev/null)
"$cellblock" session ps "$id"
"$cellblock" session exec -d -i -e GREETING='good day' -w /tmp "$id" -- sh -c 'echo "$GREETING"; pwd; while read line; do echo "got $line"; done; exit 3'
"$cellblock" tools call sandbox_exec --session "$id" --args '{"command": ["echo", "meanwhile"]}' | grep -o meanwhile
"$cellblock" session input "$id" p1 one
printf 'two\nthree' | "$cellblock" session input --close "$id" p1
"$cellblock" session output --follow "$id" p1
"$cellblock" session wait "$id" p1 || echo "code $?"
"$cellblock" session output --offset 9 "$id" p1 | head -n 1
"$cellblock" session exec -d "$id" -- sleep 1000
"$cellblock" session wait --timeout 0 "$id" p2 || echo "code $?"
"$cellblock" session signal "$id" p2
"$cellblock" session wait "$id" p2 || echo "code $?"
"$cellblock" session ps "$id"
"$cellblock" session ps --json "$id"
"$cellblock" session stop "$id"
"#;
    let (code, stdout, stderr) = world.script(script)?;
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let lines: Vec<_> = stdout.lines().collect();
    let (listed, others): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| line.starts_with('{'));
    assert_eq!(
        others[..others.len() - 1],
        [
            "no process; `cellblock session exec --detach` starts one",
            "p1",
            "meanwhile",
            "good day",
            "/tmp",
            "got one",
            "got two",
            "p1 exited with code 3",
            "code 1",
            "/tmp",
            "p2",
            "p2 running",
            "code 124",
            "p2 killed by SIGTERM",
            "code 1",
            "p1  exited with code 3  sh -c echo \"$GREETING\"; pwd; while read line; do echo \"got \
             $line\"; done; exit 3",
            "p2  killed by SIGTERM  sleep 1000",
        ]
    );
    let listed: Value = serde_json::from_str(listed[0])?;
    assert_eq!(
        (&listed["processes"][0]["id"], &listed["processes"][1]["signal"]),
        (&json!("p1"), &json!("SIGTERM"))
    );
    Ok(())
}

#[test]
fn a_program_in_the_foreground_has_its_streams_and_exit_code() -> Result<()> {
    let world = World::new()?;
    let script = r#"
id=$("$cellblock" session start --image "$image" 2>/dev/null)
printf 'a\nb\nc\n' | "$cellblock" session exec -i "$id" -- wc -l
"$cellblock" session exec "$id" -- sh -c 'echo bad; exit 5' || echo "code $?"
"$cellblock" session exec "$id" -- nonesuch || echo "code $?"
"$cellblock" session wait "$id" p9 || echo "code $?"
"$cellblock" session stop "$id"
"$cellblock" session ps "$id" || echo "code $?"
"#;
    let (code, stdout, stderr) = world.script(script)?;
    assert_eq!(code, 0, "{stderr}");
    let lines: Vec<_> = stdout.lines().map(str::trim).collect();
    assert_eq!(lines[0], "3");
    assert_eq!(lines[1..3], ["bad", "code 1"]);
    assert!(lines[3].starts_with("nonesuch: "), "{}", lines[3]);
    assert_eq!(lines[4..6], ["code 1", "code 2"]);
    assert_eq!(lines[7], "code 2");
    for told in [
        "the program exited with code 5",
        "find process `p9`: this session has no such process",
    ] {
        assert!(stderr.contains(told), "{told:?} is not in {stderr}");
    }
    Ok(())
}
