//! Probes of peers that start a process per run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::PythonLauncher;
use crate::catalog::{CONCURRENT, PEER_WIDTH, throughput_name};
use crate::probe::{Probe, SampleFuture};
use crate::programs::{FRAME_ROWS, MAKE_FRAME, PRINT_CHART, PRINT_SUM, SHOUT, SHOUT_BYTES};
use crate::samples::Samples;

/// Program of a process.
#[derive(Clone, Debug)]
pub(crate) enum PeerProgram {
    /// Does nothing, without Python.
    True,
    /// Prints a sum.
    First,
    /// A table's summary and a chart.
    Chart,
    /// Ten megabytes on stdout.
    Stdout,
    /// Reads this Parquet file.
    FrameIn(PathBuf),
    /// Writes a table as Parquet to this file.
    FrameOut(PathBuf),
    /// Reads this JSON file of so many megabytes.
    Rows(PathBuf, usize),
    /// Many at once.
    Concurrent,
    /// Rounds in a second, for this long.
    Throughput(Duration),
}

/// A way to start a process, and what it does.
pub(crate) struct ProcessProbe {
    pub(crate) wrapped: Arc<PythonLauncher>,
    pub(crate) program: PeerProgram,
}

impl ProcessProbe {
    fn run(&self, samples: &mut Samples) -> Result<()> {
        let wrapped = &self.wrapped;
        let who = wrapped.who;
        match &self.program {
            PeerProgram::True => samples.time(who, "exec", wrapped.time_true()?),
            PeerProgram::First => samples.time(who, "first", wrapped.time(PRINT_SUM, 2)?),
            PeerProgram::Chart => samples.time(who, "chart", wrapped.time(PRINT_CHART, 200)?),
            PeerProgram::Stdout => {
                let bytes = usize::try_from(SHOUT_BYTES)?;
                samples.time(who, "stdout", wrapped.time(SHOUT, bytes)?);
            }
            PeerProgram::FrameIn(file) => {
                // A JSON string is one of Python's.
                let file = serde_json::to_string(file)?;
                let code = format!(
                    "import time, pandas\nstarted = time.perf_counter()\n\
                     frame = pandas.read_parquet({file})\n\
                     assert len(frame) == {FRAME_ROWS}\nprint((time.perf_counter() - started) * 1000)"
                );
                self.frame(&code, "frame_in", samples)?;
            }
            PeerProgram::FrameOut(path) => {
                let file = serde_json::to_string(path)?;
                let code = format!(
                    "import time\n{MAKE_FRAME}started = time.perf_counter()\nframe.to_parquet({file})\n\
                     print((time.perf_counter() - started) * 1000)"
                );
                let result = self.frame(&code, "frame_out", samples);
                std::fs::remove_file(path).context("remove the peer's table")?;
                result?;
            }
            PeerProgram::Rows(file, megabytes) => {
                let file = serde_json::to_string(file)?;
                let code = format!(
                    "import json, time\nstarted = time.perf_counter()\nrows = json.load(open({file}))\n\
                     assert rows[-1]['number'] == len(rows) - 1\n\
                     print((time.perf_counter() - started) * 1000)"
                );
                self.frame(&code, &format!("bind_{megabytes}"), samples)?;
            }
            PeerProgram::Concurrent => self.concurrent(samples)?,
            PeerProgram::Throughput(time) => self.throughput(*time, samples)?,
        }
        Ok(())
    }

    /// The whole process is the peer; the call alone, in a process that has imported everything, is
    /// the floor.
    fn frame(&self, code: &str, what: &str, samples: &mut Samples) -> Result<()> {
        let started = Instant::now();
        let output = self.wrapped.run(code, 1)?;
        let elapsed = started.elapsed();
        let call: f64 = String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse()
            .context("read the peer's time")?;
        samples.time(self.wrapped.who, what, elapsed);
        samples.add("floor", what, call);
        Ok(())
    }

    fn concurrent(&self, samples: &mut Samples) -> Result<()> {
        let started = Instant::now();
        let times = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CONCURRENT)
                .map(|_| {
                    scope.spawn(|| {
                        self.wrapped.run(PRINT_SUM, 2)?;
                        anyhow::Ok(started.elapsed())
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .expect("a thread that only runs a process does not panic")
                })
                .collect::<Result<Vec<_>>>()
        })?;
        samples.time(self.wrapped.who, "concurrent", started.elapsed());
        samples.times(self.wrapped.who, "concurrent_session", times);
        Ok(())
    }

    fn throughput(&self, time: Duration, samples: &mut Samples) -> Result<()> {
        let started = Instant::now();
        let done = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..PEER_WIDTH)
                .map(|_| {
                    scope.spawn(|| {
                        let mut done = 0_u32;
                        while started.elapsed() < time {
                            self.wrapped.run(PRINT_SUM, 2)?;
                            done += 1;
                        }
                        anyhow::Ok(done)
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .expect("a thread that only runs processes does not panic")
                })
                .sum::<Result<u32>>()
        })?;
        ensure!(done > 0, "not one round was done");
        samples.add(
            self.wrapped.who,
            &throughput_name(PEER_WIDTH),
            f64::from(done) / started.elapsed().as_secs_f64(),
        );
        Ok(())
    }
}

impl Probe for ProcessProbe {
    fn who(&self) -> &'static str {
        self.wrapped.who
    }

    fn what(&self) -> &'static str {
        match self.program {
            PeerProgram::True => "exec",
            PeerProgram::First => "first",
            PeerProgram::Chart => "chart",
            PeerProgram::Stdout => "stdout",
            PeerProgram::FrameIn(_) => "frame_in",
            PeerProgram::FrameOut(_) => "frame_out",
            PeerProgram::Rows(..) => "bind",
            PeerProgram::Concurrent => "concurrent",
            PeerProgram::Throughput(_) => "throughput",
        }
    }

    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a> {
        Box::pin(async move { self.run(samples) })
    }
}
