//! The versions of programs that run machines, and whether the processor runs guests for them.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::program;

/// Maximum time for a kernel to reach its first process in KVM.
const KVM_LIMIT: Duration = Duration::from_secs(10);
/// Last message of a kernel without a disk: everything before it has worked.
const KVM_WORKS: &str = "Unable to mount root fs";

/// Returns the version that a program prints after `prefix`, and fails if it is older than `oldest`.
pub(super) async fn version(path: &Path, prefix: &str, oldest: (u32, u32)) -> Result<String, String> {
    let version = program::version(path, prefix).await?;
    if numbers(&version) < oldest {
        return Err(format!(
            "`{}` has the version {version}, which is too old",
            path.display()
        ));
    }
    Ok(version)
}

/// Returns the first two numbers of a version.
pub(super) fn numbers(version: &str) -> (u32, u32) {
    let mut numbers = version.split('.').map(|it| it.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Fails unless `/dev/kvm` opens.
pub(super) fn kvm_opens() -> Result<(), String> {
    let opened = std::fs::File::options().read(true).write(true).open("/dev/kvm");
    opened
        .map(drop)
        .map_err(|error| format!("open `/dev/kvm`: {error}"))
}

/// Runs a command that boots a kernel without a disk, until the kernel looks for its disk. That
/// `/dev/kvm` opens proves nothing: some machines offer it and cannot run ordinary guests.
pub(super) async fn boots(mut command: Command) -> Result<(), String> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("start `{program}`: {error}"))?;
    let (Some(console), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(format!("`{program}` has no output"));
    };
    let reading = async {
        let (mut console, mut errors) = (BufReader::new(console).lines(), BufReader::new(errors).lines());
        let ended = || format!("`{program}` ended before the kernel had started");
        loop {
            tokio::select! {
                line = console.next_line() => match line {
                    Ok(Some(line)) if line.contains(KVM_WORKS) => return Ok(()),
                    Ok(Some(_)) => {}
                    _ => return Err(errors.next_line().await.ok().flatten().unwrap_or_else(ended)),
                },
                Ok(Some(line)) = errors.next_line() => return Err(line),
            }
        }
    };
    tokio::time::timeout(KVM_LIMIT, reading)
        .await
        .unwrap_or_else(|_| Err(format!("a guest did not boot within {} s", KVM_LIMIT.as_secs())))
}
