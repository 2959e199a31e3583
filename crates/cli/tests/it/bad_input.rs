//! Code and input that go wrong: the right outcome, a message that says what to do, and a bounded host.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::support::{answer, folder, json, run, text};

/// More than the host process may ever need: its own code, two bounded streams, previews of outputs.
const HOST_MEMORY: u64 = 300 << 20;

#[test]
fn a_syntax_error_is_reported_with_its_line() -> Result<()> {
    let (code, report) = json(["-c", "x = 1\ny = (2"])?;
    assert_eq!((code, text(&report, "/outcome")?), (1, "raised"));
    assert_eq!(report["error"]["type"], "SyntaxError");
    assert_eq!(report["error"]["line"], 2);
    assert_eq!(report["error"]["message"], "'(' was never closed");
    Ok(())
}

#[test]
fn an_exception_is_reported_with_the_user_s_line_and_keeps_earlier_outputs() -> Result<()> {
    let (code, report) = json(["-c", "display(41)\nprint('before')\n1 / 0"])?;
    assert_eq!((code, text(&report, "/outcome")?), (1, "raised"));
    assert_eq!(
        report["error"],
        serde_json::json!({ "type": "ZeroDivisionError", "message": "division by zero", "line": 3 })
    );
    assert_eq!(report["outputs"][0]["value"], 41);
    assert_eq!(report["outputs"][1]["frames"][0]["source"], "1 / 0");
    assert_eq!(report["stdout"], "before\n");
    Ok(())
}

#[test]
fn sys_exit_is_an_exception_and_not_the_exit_code() -> Result<()> {
    let (code, report) = json(["-c", "import sys; sys.exit(3)"])?;
    assert_eq!((code, text(&report, "/outcome")?), (1, "raised"));
    assert_eq!(report["error"]["type"], "SystemExit");
    assert!(text(&report, "/error/message")?.contains("sys.exit(3)"));
    Ok(())
}

#[test]
fn output_of_a_kernel_that_ends_itself_is_kept() -> Result<()> {
    let (code, report) = json(["-c", "import os; print('last words', flush=True); os._exit(7)"])?;
    assert_eq!((code, text(&report, "/outcome")?), (125, "kernel_lost"));
    assert_eq!(report["stdout"], "last words\n");
    let note = text(&report, "/note")?;
    assert!(
        note.contains("exit code 7") && note.contains("variables are gone"),
        "{note}"
    );
    Ok(())
}

#[test]
fn a_crash_in_native_code_is_named() -> Result<()> {
    let (code, report) = json(["-c", "import ctypes; ctypes.string_at(0)"])?;
    assert_eq!((code, text(&report, "/outcome")?), (125, "kernel_lost"));
    assert!(text(&report, "/note")?.contains("SIGSEGV"), "{report:#}");
    Ok(())
}

#[test]
fn memory_beyond_the_limit_is_reported_with_the_limit() -> Result<()> {
    // Where no cgroup bounds memory, the allocation itself fails, which is an exception.
    cellblock_testkit::require!(Root);
    let (code, report) = json(["--memory", "256MiB", "-c", "x = bytearray(1_000_000_000)"])?;
    assert_eq!((code, text(&report, "/outcome")?), (125, "limit_exceeded"));
    assert_eq!(report["limit"]["which"], "memory");
    assert_eq!(report["limit"]["limit"], 256 << 20);
    assert!(text(&report, "/note")?.contains("less data"), "{report:#}");
    Ok(())
}

#[test]
fn an_endless_loop_is_interrupted_at_its_deadline() -> Result<()> {
    let (code, report) = json(["--timeout", "0.5", "-c", "while True: pass"])?;
    assert_eq!((code, text(&report, "/outcome")?), (124, "interrupted"));
    let note = text(&report, "/note")?;
    assert!(
        note.contains("limit of 0.5 s") && note.contains("variables are kept"),
        "{note}"
    );
    Ok(())
}

#[test]
fn native_code_that_never_returns_is_killed() -> Result<()> {
    let deaf =
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.signal(2, ctypes.c_void_p(1))\nlibc.sleep(1000)";
    let (code, report) = json(["--timeout", "0.5", "-c", deaf])?;
    assert_eq!((code, text(&report, "/outcome")?), (125, "kernel_lost"));
    assert!(text(&report, "/note")?.contains("0.5 s"), "{report:#}");
    Ok(())
}

#[test]
fn a_fork_bomb_is_bounded() -> Result<()> {
    let bomb = "import os\nwhile True:\n    os.fork()";
    // Its 256 processes compete with the one that reports the error.
    let (code, report) = json(["--timeout", "120", "-c", bomb])?;
    assert_eq!((code, text(&report, "/outcome")?), (125, "limit_exceeded"));
    assert_eq!(report["limit"]["which"], "processes");
    assert_eq!(report["limit"]["limit"], 256);
    Ok(())
}

#[test]
fn a_flood_on_stdout_is_stopped_and_kept_in_part() -> Result<()> {
    let (code, report, peak) = watched("import sys\nfor _ in range(500): sys.stdout.write('x' * 1_000_000)")?;
    assert_eq!((code, text(&report, "/outcome")?), (125, "limit_exceeded"));
    assert_eq!(report["limit"]["which"], "output_bytes");
    assert_eq!(report["stdout_truncated"], true);
    let kept = text(&report, "/stdout")?.len();
    assert!(
        (1 << 20..(1 << 20) + 200).contains(&kept),
        "{kept} bytes are kept"
    );
    assert!(peak < HOST_MEMORY, "the host used {peak} bytes");
    Ok(())
}

#[test]
fn a_table_of_a_gigabyte_is_shown_in_part() -> Result<()> {
    let (code, report, peak) = watched("pd.DataFrame(np.ones((31_250_000, 4)), columns=list('abcd'))")?;
    assert_eq!((code, text(&report, "/outcome")?), (0, "completed"));
    let table = &report["outputs"][0];
    assert_eq!(table["rows"], 31_250_000);
    assert_eq!(table["complete"], false);
    assert!(
        table["rows_stored"]
            .as_u64()
            .is_some_and(|stored| stored < 10_000),
        "{}",
        table["rows_stored"]
    );
    assert!(peak < HOST_MEMORY, "the host used {peak} bytes");
    Ok(())
}

/// Runs code and watches how much memory the host process ever uses.
fn watched(code: &str) -> Result<(i32, Value, u64)> {
    let running = run(["--json", "-c", code])?.start()?;
    let status = format!("/proc/{}/status", running.id());
    let watch = thread::spawn(move || {
        let mut peak = 0;
        while let Some(now) = fs::read_to_string(&status).ok().as_deref().and_then(high_water) {
            peak = peak.max(now);
            thread::sleep(Duration::from_millis(5));
        }
        peak
    });
    let (code, report) = answer(&running.finish()?)?;
    let peak = watch
        .join()
        .ok()
        .filter(|peak| *peak > 0)
        .context("the host process was never seen")?;
    Ok((code, report, peak))
}

fn high_water(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

#[test]
fn a_full_disk_is_reported_with_its_limit() -> Result<()> {
    let fill =
        "for n in range(40):\n    with open(f'/workspace/{n}', 'wb') as file: file.write(bytes(50_000_000))";
    // A gigabyte takes longer than usual beside others.
    let filled = run(["--json", "-c", fill])?.limit(Duration::from_mins(5)).run()?;
    let (code, report) = answer(&filled)?;
    assert_eq!((code, text(&report, "/outcome")?), (125, "limit_exceeded"));
    assert_eq!(report["limit"]["which"], "disk");
    assert!(text(&report, "/note")?.contains("Remove files"), "{report:#}");
    Ok(())
}

#[test]
fn an_input_that_cannot_be_bound_is_reported_with_a_repair() -> Result<()> {
    let (_folder, path) = folder(&[
        ("empty.csv", b""),
        ("open.csv", b"a,b\n1,2\n\"x"),
        ("latin.csv", b"a\nna\xc3\xafve\xff\n"),
        ("cut.json", b"{\"a\": "),
        ("fake.parquet", b"not parquet"),
    ])?;
    for (file, told) in [
        ("missing.csv", "No such file"),
        ("empty.csv", "the csv input is empty; give a file with content"),
        ("open.csv", "malformed"),
        ("latin.csv", "not UTF-8"),
        ("cut.json", "malformed at line 1"),
        ("fake.parquet", "not parquet"),
        (".", "not a regular file"),
    ] {
        let finished = run(["--json", "-c", "data", "--input", &format!("data={file}")])?
            .folder(&path)
            .run()?;
        let (code, report) = answer(&finished)?;
        assert_eq!(
            (code, text(&report, "/outcome")?, text(&report, "/error/code")?),
            (2, "error", "bad_request"),
            "{file}"
        );
        let message = text(&report, "/error/message")?;
        assert!(
            message.starts_with("bind input `data`: ") && message.contains(told),
            "{file}: {message}"
        );
    }
    Ok(())
}

#[test]
fn an_unavailable_requirement_is_named() -> Result<()> {
    for requirement in ["cellblock-there-is-no-such-package", "numpy==0.0.1"] {
        let (code, report) = json(["--require", requirement, "-c", "1"])?;
        assert_eq!(
            (code, text(&report, "/error/code")?),
            (2, "bad_request"),
            "{report:#}"
        );
        let name = requirement.split("==").next().unwrap_or_default();
        assert!(text(&report, "/error/message")?.contains(name), "{report:#}");
    }
    Ok(())
}
