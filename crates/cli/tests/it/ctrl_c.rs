//! Ctrl-C: the first interrupts the cell, the second ends the command.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result};
use cellblock_testkit::{binary, home};

use crate::support::{small_image, warm_setting};

/// Starts a run and waits until its code says that it is busy.
fn busy(code: &str) -> Result<(Child, BufReader<ChildStdout>)> {
    let mut child = Command::new(binary()?)
        .args(["run", "--image", small_image()?, "--timeout", "60", "-c", code])
        .env("CELLBLOCK_HOME", home()?)
        .env("CELLBLOCK_WARM", warm_setting())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdout = BufReader::new(child.stdout.take().context("take stdout")?);
    let mut line = String::new();
    stdout.read_line(&mut line)?;
    assert_eq!(line, "busy\n");
    Ok((child, stdout))
}

fn press(child: &Child) -> Result<()> {
    Ok(rustix::process::kill_process(
        rustix::process::Pid::from_child(child),
        rustix::process::Signal::INT,
    )?)
}

#[test]
fn the_first_ctrl_c_interrupts_the_cell() -> Result<()> {
    let code = "import time\ntry:\n    print('busy', flush=True)\n    time.sleep(60)\n\
                finally:\n    print('cleaned up')";
    let (mut child, mut stdout) = busy(code)?;
    press(&child)?;
    let mut rest = String::new();
    stdout.read_to_string(&mut rest)?;
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .context("take stderr")?
        .read_to_string(&mut stderr)?;
    assert_eq!(child.wait()?.code(), Some(124), "{stderr}");
    assert_eq!(rest, "cleaned up\n");
    assert!(
        stderr.contains("interrupted: the cell was interrupted; variables are kept"),
        "{stderr}"
    );
    Ok(())
}

#[test]
fn the_second_ctrl_c_ends_the_command() -> Result<()> {
    // Native code that ignores the signal holds out for as long as the grace allows.
    let code = "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.signal(2, ctypes.c_void_p(1))\n\
                print('busy', flush=True)\nlibc.sleep(60)";
    let (mut child, _stdout) = busy(code)?;
    let mut stderr = BufReader::new(child.stderr.take().context("take stderr")?);
    press(&child)?;
    let mut line = String::new();
    stderr.read_line(&mut line)?;
    assert_eq!(
        line,
        "note: interrupting the cell; press Ctrl-C again to end at once\n"
    );
    press(&child)?;
    assert_eq!(child.wait()?.code(), Some(130));
    let mut rest = String::new();
    stderr.read_to_string(&mut rest)?;
    assert_eq!(rest, "error: ended by Ctrl-C\n");
    Ok(())
}
