//! Programs of the host that a build runs.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::error::{ImageError, IoResultExt, Result};
use super::stop;

/// Maximum number of output lines that an error repeats.
const KEPT_LINES: usize = 40;

/// Maximum size of an answer.
const MAX_ANSWER: u64 = 16 << 20;

/// Runs a query and returns its stdout if it succeeded in time. What it has started ends with it.
pub(crate) fn output(command: &mut Command, limit: Duration) -> Option<Vec<u8>> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = stop::spawn(command).ok()?.ok()?;
    let reader = child.stdout.take().and_then(|stdout| {
        let read = move || {
            let mut all = Vec::new();
            stdout.take(MAX_ANSWER).read_to_end(&mut all).map(|_| all)
        };
        thread::Builder::new().spawn(read).ok()
    });
    let limit = if reader.is_some() { limit } else { Duration::ZERO };
    let status = stop::wait_within(&mut child, limit).ok()?;
    let all = reader?.join().ok()?.ok()?;
    status.success().then_some(all)
}

/// Runs a program to its end, passing every line of its stderr to `hear`; the caller sets its
/// stdin.
pub(crate) fn run(command: &mut Command, action: &'static str, mut hear: impl FnMut(&str)) -> Result<()> {
    let program = command.get_program().to_owned();
    let path = std::path::Path::new(&program);
    let name = path
        .file_name()
        .unwrap_or(&program)
        .to_string_lossy()
        .into_owned();
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = stop::spawn(command)?.at("start", path)?;
    let mut kept = std::collections::VecDeque::new();
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n') {
            let line = line.at("hear", path)?;
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end();
            hear(line);
            if kept.len() == KEPT_LINES {
                kept.pop_front();
            }
            kept.push_back(line.to_owned());
        }
    }
    let status = stop::wait(&mut child).at("wait for", path)?;
    stop::check()?;
    if status.success() {
        return Ok(());
    }
    let output = kept.into_iter().collect::<Vec<_>>().join("\n").trim().to_owned();
    Err(ImageError::Program {
        action,
        program: name,
        status: format!("exited with {status}"),
        output,
    })
}
