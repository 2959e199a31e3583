//! A bare set of namespaces: made with a mounted tmpfs by a process that does nothing else, and gone with it.

use std::cell::RefCell;
use std::io::{BufRead, Write};
use std::process::Command;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use cellblock_sandbox::jail::error::SyscallResult;
use cellblock_sandbox::jail::process::{NAMESPACES, spawn};
use rustix::mount::{MountFlags, mount};
use serde::Deserialize;
use serde_json::json;

use super::WHO;
use crate::driver::Driver;
use crate::probe::{Probe, SampleFuture};
use crate::samples::Samples;

/// The argument with which this program is started in this role. Only a process with one thread may clone.
pub(crate) const ROLE: &str = "floor-namespaces";

/// `linux/sched.h`: `CLONE_NEWCGROUP`, which the jail takes in a step of its own.
const CGROUP_NAMESPACE: i32 = 0x0200_0000;

#[derive(Deserialize)]
struct Request {
    times: usize,
}

/// Answers requests on stdin until there are no more. Runs in a process of its own.
#[expect(clippy::print_stdout, reason = "stdout is where this role answers")]
pub(crate) fn serve() -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?).context("read the request")?;
        let answer = match (0..request.times).map(|_| one()).collect::<Result<Vec<f64>>>() {
            Ok(times) => json!({"answer": times}),
            Err(error) => json!({"error": format!("{error:#}")}),
        };
        println!("{answer}");
        std::io::stdout().flush()?;
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
pub(crate) fn start() -> Result<Rc<RefCell<Driver>>> {
    let program = std::env::current_exe().context("find this program")?;
    let driver = Driver::start(Command::new(program).arg(ROLE))?;
    Ok(Rc::new(RefCell::new(driver)))
}

/// Makes some sets, one after the other.
pub(crate) struct NamespaceProbe {
    pub(crate) driver: Rc<RefCell<Driver>>,
    pub(crate) times: usize,
}

impl Probe for NamespaceProbe {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        "namespaces"
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(async move {
            let times = self.driver.borrow_mut().times(&json!({"times": self.times}))?;
            samples.times(WHO, "namespaces", times);
            Ok(())
        })
    }
}
