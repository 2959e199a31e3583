//! Bare forks of a Python process that has imported what the template has; see `floors/fork.py`.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::WHO;
use crate::catalog::{CONCURRENT, WIDTHS, throughput_name};
use crate::driver::Driver;
use crate::memory::Memory;
use crate::probe::{Probe, SampleFuture};
use crate::programs::{PRINT_CHART, SUM};
use crate::python::Python;
use crate::samples::Samples;

const DRIVER: &str = include_str!("../../floors/fork.py");
/// The kernel package, whose template prepares the process.
const PACKAGE: &str = "crates/guest/python";
/// The template's settings: memory in large pages, so that a fork copies fewer page table entries.
const SETTINGS: [(&str, &str); 2] = [
    ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
    ("PYTHONMALLOC", "malloc"),
];
/// Children whose memory is measured together: as many as sessions in the smaller measurement,
/// since sharing depends on it.
const IDLE: u64 = 100;

/// Starts the process and waits until it has imported everything.
pub(crate) fn start(python: &Python) -> Result<Rc<RefCell<Driver>>> {
    let package = Path::new(PACKAGE)
        .canonicalize()
        .context("find the kernel package; run in the workspace's root")?;
    let mut command = python.command();
    command
        .args(["-c", DRIVER])
        .arg(package)
        .arg(serde_json::to_string(&python.preload)?)
        .envs(SETTINGS);
    let mut driver = Driver::start(&mut command)?;
    driver.hear()?;
    Ok(Rc::new(RefCell::new(driver)))
}

/// Kind of process that is forked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ForkWorkload {
    /// A child that adds two numbers.
    Sum,
    /// A child that makes a table's summary and a chart.
    Chart,
    /// Many at once.
    Concurrent,
    /// As many as can be in this time, at several numbers at a time.
    Throughput(Duration),
    /// Children that wait.
    Idle,
}

/// One thing that is measured of it.
pub(crate) struct ForkProbe {
    pub(crate) driver: Rc<RefCell<Driver>>,
    pub(crate) forked: ForkWorkload,
}

impl ForkProbe {
    fn run(&self, samples: &mut Samples) -> Result<()> {
        let mut driver = self.driver.borrow_mut();
        match self.forked {
            ForkWorkload::Sum => {
                let times = driver.times(&json!({"do": "one", "code": SUM}))?;
                let [answered, reaped] = times[..].try_into().context("two times for one child")?;
                samples.time(WHO, "fork", answered);
                samples.time(WHO, "fork_and_reap", reaped);
            }
            ForkWorkload::Chart => {
                let times = driver.times(&json!({"do": "one", "code": PRINT_CHART}))?;
                samples.times(WHO, "fork_chart", times.into_iter().take(1));
            }
            ForkWorkload::Concurrent => {
                let answer = driver.ask(&json!({"do": "many", "children": CONCURRENT}))?;
                samples.add(
                    WHO,
                    "concurrent",
                    answer["all"].as_f64().context("a time of all")?,
                );
                for each in answer["each"].as_array().into_iter().flatten() {
                    samples.add(
                        WHO,
                        "concurrent_session",
                        each.as_f64().context("a time of each")?,
                    );
                }
            }
            ForkWorkload::Throughput(time) => {
                for width in WIDTHS {
                    let request = json!({"do": "throughput", "width": width, "seconds": time.as_secs_f64()});
                    let rate = driver.ask(&request)?.as_f64().context("a rate")?;
                    samples.add(WHO, &throughput_name(width), rate);
                }
            }
            ForkWorkload::Idle => {
                let answer = driver.ask(&json!({"do": "idle", "children": IDLE}))?;
                let pids: Vec<u32> = serde_json::from_value(answer).context("read the children's ids")?;
                let memory = Memory::of(pids);
                driver.ask(&json!({"do": "release"}))?;
                ensure!(
                    memory.processes == IDLE,
                    "{} of {IDLE} children waited",
                    memory.processes
                );
                #[expect(clippy::cast_precision_loss, reason = "bytes of memory fit a double")]
                let kib = |bytes: u64| (bytes / IDLE) as f64 / 1024.0;
                samples.add(WHO, "idle_uss", kib(memory.private));
                samples.add(WHO, "idle_pss", kib(memory.proportional));
            }
        }
        Ok(())
    }
}

impl Probe for ForkProbe {
    fn who(&self) -> &'static str {
        WHO
    }

    fn what(&self) -> &'static str {
        match self.forked {
            ForkWorkload::Sum => "fork",
            ForkWorkload::Chart => "fork_chart",
            ForkWorkload::Concurrent => "concurrent",
            ForkWorkload::Throughput(_) => "throughput",
            ForkWorkload::Idle => "idle",
        }
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(async move { self.run(samples) })
    }
}
