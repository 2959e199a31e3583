//! Programs of the host that a build runs.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::error::{At, ImageError, Result};
use super::stop;

/// Maximum number of output lines that an error repeats.
const KEPT_LINES: usize = 40;

/// Runs a short query and returns its stdout if it succeeded in time.
pub(crate) fn output(command: &mut Command, limit: Duration) -> Option<Vec<u8>> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let stdout = child.stdout.take()?;
    let reader = thread::Builder::new().spawn(move || {
        let mut all = Vec::new();
        stdout.take(1 << 20).read_to_end(&mut all).map(|_| all)
    });
    let Ok(reader) = reader else {
        let _ = child.kill();
        let _ = child.wait();
        return None;
    };
    let succeeded = within(&mut child, limit);
    let all = reader.join().ok()?.ok()?;
    succeeded.then_some(all)
}

fn within(child: &mut Child, limit: Duration) -> bool {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if start.elapsed() < limit => thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
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
