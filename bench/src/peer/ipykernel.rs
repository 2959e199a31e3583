//! ipykernel through `jupyter_client`, in an environment that sees the image's packages.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::driver::Driver;
use crate::memory::Memory;
use crate::probe::{Probe, SampleFuture};
use crate::programs::{ANNOUNCED_LOOP, CHART, FLOOD, SHOUT, SHOUT_BYTES, SUM};
use crate::progress::note;
use crate::python::Python;
use crate::samples::Samples;

const WHO: &str = "ipykernel";

/// The driver, which does in Python what a Jupyter front end does.
const DRIVER: &str = include_str!("../../peers/ipykernel_driver.py");

/// A running driver, shared by its probes.
pub(crate) type Ipykernel = Rc<RefCell<Driver>>;

/// Part that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IpykernelPart {
    /// A new kernel until the result of a sum.
    First,
    /// A new kernel until a table and a chart.
    Chart,
    /// So many sums in a live kernel.
    Warm(usize),
    /// A loop stopped so many times.
    Interrupt(usize),
    /// Ten megabytes on stdout.
    Stdout,
    /// The client's memory while as much is written as Cellblock lets through by default.
    Flood,
    /// A kernel that has run one cell and waits.
    Idle,
}

/// Installs ipykernel if it is not there yet, and starts the driver.
pub(crate) fn start(python: &Python) -> Result<Ipykernel> {
    let packages = python.place.join("ipykernel");
    if !packages.join("complete").exists() {
        install(python, &packages)?;
    }
    let mut command = python.command();
    command.args(["-c", DRIVER]).env("PYTHONPATH", packages);
    // The notebook's own backend draws, as it does for people.
    command.env_remove("MPLBACKEND");
    Ok(Rc::new(RefCell::new(Driver::start(&mut command)?)))
}

/// Installs beside the image, once, with whatever pip the machine has, and compiles as an installation does.
fn install(python: &Python, packages: &Path) -> Result<()> {
    note("installing ipykernel");
    let status = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:"])
        .args(["--no-compile", "--python-version", &python.version])
        .arg("--target")
        .arg(packages)
        .args(["ipykernel", "jupyter_client"])
        .status()
        .context("run `python3 -m pip`")?;
    ensure!(
        status.success(),
        "`python3 -m pip install ipykernel` ended with {status}"
    );
    python.run(
        "import compileall, sys; compileall.compile_dir(sys.argv[1], quiet=2)",
        &[packages],
    )?;
    std::fs::write(packages.join("complete"), "").context("mark ipykernel as installed")
}

/// One thing that is measured of it.
pub(crate) struct IpykernelProbe {
    pub(crate) driver: Ipykernel,
    pub(crate) part: IpykernelPart,
}

impl IpykernelProbe {
    fn run(&self, samples: &mut Samples) -> Result<()> {
        let mut driver = self.driver.borrow_mut();
        match self.part {
            IpykernelPart::First => {
                samples.times(WHO, "first", driver.times(&json!({"do": "first", "code": SUM}))?);
            }
            IpykernelPart::Chart => samples.times(
                WHO,
                "chart",
                driver.times(&json!({"do": "first", "code": CHART}))?,
            ),
            IpykernelPart::Warm(cells) => {
                let request = json!({"do": "warm", "code": SUM, "cells": cells});
                samples.times(WHO, "warm", driver.times(&request)?);
            }
            IpykernelPart::Interrupt(times) => {
                let request = json!({"do": "interrupt", "code": ANNOUNCED_LOOP, "times": times});
                samples.times(WHO, "interrupt", driver.times(&request)?);
            }
            IpykernelPart::Stdout => {
                let request = json!({"do": "stdout", "code": SHOUT, "bytes": SHOUT_BYTES});
                samples.times(WHO, "stdout", driver.times(&request)?);
            }
            IpykernelPart::Flood => {
                let request = json!({"do": "flood", "code": FLOOD.replace("TIMES", "64"), "bytes": 64 << 20});
                let growth = driver.ask(&request)?;
                samples.add(WHO, "flood", number(&growth)? / f64::from(1 << 20));
            }
            IpykernelPart::Idle => {
                let pid = number(&driver.ask(&json!({"do": "idle", "code": SUM}))?)?;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a process id"
                )]
                let memory = Memory::of([pid as u32]);
                driver.ask(&json!({"do": "release"}))?;
                ensure!(memory.processes == 1, "ipykernel's process is not there");
                #[expect(clippy::cast_precision_loss, reason = "bytes of memory fit a double")]
                let kib = |bytes: u64| bytes as f64 / 1024.0;
                samples.add(WHO, "idle_uss", kib(memory.private));
                samples.add(WHO, "idle_pss", kib(memory.proportional));
            }
        }
        Ok(())
    }
}

fn number(answer: &Value) -> Result<f64> {
    answer.as_f64().context("the driver answered something else")
}

impl Probe for IpykernelProbe {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        match self.part {
            IpykernelPart::First => "first",
            IpykernelPart::Chart => "chart",
            IpykernelPart::Warm(_) => "warm",
            IpykernelPart::Interrupt(_) => "interrupt",
            IpykernelPart::Stdout => "stdout",
            IpykernelPart::Flood => "flood",
            IpykernelPart::Idle => "idle",
        }
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(async move { self.run(samples) })
    }
}
