//! Tests of the command runner against a shell.

use super::*;
use crate::wait::block_until;

fn shell(script: &str, limit: Duration) -> Result<RunningCli> {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    spawn(command, b"from stdin".to_vec(), limit)
}

const AMPLE: Duration = Duration::from_secs(30);

#[test]
fn status_and_both_streams_are_captured() {
    let finished = shell("cat; echo oops >&2; exit 7", AMPLE)
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(
        (
            finished.code(),
            finished.stdout.as_str(),
            finished.stderr.as_str()
        ),
        (7, "from stdin", "oops\n")
    );
}

#[test]
fn a_signal_reads_as_a_shell_would_report_it() {
    let finished = shell("kill -TERM $$", AMPLE).unwrap().finish().unwrap();
    assert_eq!(finished.code(), 143);
}

#[test]
fn a_late_command_is_killed_with_its_children_and_its_output_reported() {
    let running = shell("echo started; sleep 1000 & wait", Duration::from_millis(300)).unwrap();
    let group = running.group();
    let error = running.finish().unwrap_err().to_string();
    assert!(
        error.ends_with("exceeded 300ms\nstdout: started\n\nstderr: "),
        "{error}"
    );
    // The orphaned child is reaped by init, soon after the signal.
    block_until("the process group is gone", || {
        rustix::process::test_kill_process_group(group).is_err()
    });
}

#[test]
fn a_command_that_leaves_a_child_with_its_output_is_an_error() {
    let error = shell("sleep 2 & exit 0", Duration::from_millis(300))
        .unwrap()
        .finish()
        .unwrap_err();
    assert!(
        error.to_string().contains("left a process that holds its output"),
        "{error}"
    );
}

#[test]
fn output_beyond_the_pipe_does_not_block_the_command() {
    let finished = shell("head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero", AMPLE).unwrap();
    let finished = finished.finish().unwrap();
    assert_eq!(
        (finished.stdout.len(), finished.stderr.len()),
        (3_000_000, 3_000_000)
    );
}

#[test]
fn the_last_line_is_parsed_as_json() {
    let finished = shell(r#"echo text; echo '{"outcome":"completed"}'"#, AMPLE)
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(
        finished.json().unwrap(),
        serde_json::json!({ "outcome": "completed" })
    );
}
