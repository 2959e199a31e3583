//! A bare set of namespaces: made with a mounted tmpfs by a process that does nothing else, and gone with it.

use std::io::{BufRead, Write};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use cellblock_sandbox::jail::error::SyscallResult;
use cellblock_sandbox::jail::process::{NAMESPACES, spawn};
use rustix::mount::{MountFlags, mount};
use serde_json::{Value, json};

use crate::driver::{Driver, SharedDriver};

/// The argument with which this program is started in this role. Only a process with one thread may clone.
pub(crate) const ROLE: &str = "floor-namespaces";

/// `linux/sched.h`: `CLONE_NEWCGROUP`, which the jail takes in a step of its own.
const CGROUP_NAMESPACE: i32 = 0x0200_0000;

/// Answers requests for so many sets on stdin until there are no more. Runs in a process of its own.
pub(crate) fn serve() -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{}", json!({"answer": null}))?;
    for line in std::io::stdin().lock().lines() {
        let times: Value = serde_json::from_str(&line?).context("read the request")?;
        let times = times.as_u64().context("read the request")?;
        let answer = match (0..times).map(|_| one()).collect::<Result<Vec<f64>>>() {
            Ok(times) => json!({"answer": {"namespaces": times}}),
            Err(error) => json!({"error": format!("{error:#}")}),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

/// Milliseconds until the namespaces were made, a tmpfs was mounted and the process was reaped.
fn one() -> Result<f64> {
    let started = Instant::now();
    let child = spawn(NAMESPACES | CGROUP_NAMESPACE, None, || {
        mount("tmpfs", "/tmp", "tmpfs", MountFlags::NOSUID, None).during("mount a tmpfs")
    })
    .context("make namespaces")?;
    let status = child.wait()?;
    let elapsed = started.elapsed();
    ensure!(status == 0, "the process in the namespaces ended with {status}");
    Ok(elapsed.as_secs_f64() * 1000.0)
}

/// Starts that process.
pub(crate) fn start() -> Result<SharedDriver> {
    let program = std::env::current_exe().context("find this program")?;
    Driver::start(Command::new(program).arg(ROLE))
}
