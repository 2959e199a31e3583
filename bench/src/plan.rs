//! Probes to run, and the number of their turns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;

use crate::catalog::{CONCURRENT, DEAF, IDLE, LOAD, ONE_SHOTS, WAITING};
use crate::floor::{
    CopyProbe, Echo, EchoMessage, EchoProbe, ForkProbe, ForkWorkload, NamespaceProbe, start_fork,
    start_namespaces,
};
use crate::gateway::{
    Analyses, Burst, Crowd, DeltaStream, Gateways, Load, OneShots, RequestSubject, StalledClients,
};
use crate::peer::{
    IpykernelPart, IpykernelProbe, PeerProgram, ProcessProbe, PythonLauncher, start_ipykernel,
};
use crate::probe::{Probe, ProbePlan};
use crate::progress::note;
use crate::python::Python;
use crate::subject::{
    BindInput, Calls, ChangeSeries, Checkpoints, Concurrent, Create, Deadline, FirstCell, Flood, Forks,
    Frames, IdleSessions, Interrupt, RecordingSubject, SessionState, Stdout, Subject, Throughput, Tries,
    WaitingCalls, WarmCells, WorkbenchTools,
};

/// Groups that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Group {
    /// New sessions until they are ready, and their first cell
    Create,
    /// New sessions until the result of `1+1`
    First,
    /// New sessions until a table and a chart
    Chart,
    /// Cells of a live session
    Warm,
    /// Checkpoints, rollbacks, tries, rescues, forks and records of runs
    Live,
    /// Commands, files and datasets of the workbench
    Workbench,
    /// Stopping what runs
    Interrupt,
    /// 10 MB on stdout
    Stdout,
    /// 100 MB tables, in and out
    Frame,
    /// Tool results in, changes of a population out
    Derive,
    /// Calls of a connector from a cell
    Connector,
    /// 200 sessions at once
    Concurrent,
    /// Create-run-destroy rounds in a second
    Throughput,
    /// Memory of idle sessions
    Memory,
    /// The host's memory under a flood of stdout
    Flood,
    /// `cellblock serve` beside the provider behind it
    Gateway,
}

/// Extent of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent<'a> {
    /// Few turns: to see that everything works.
    pub(crate) quick: bool,
    /// Only these; all if there are none.
    pub(crate) only: &'a [Group],
    /// No peers and no floors.
    pub(crate) alone: bool,
}

/// Collects probes.
struct Planner<'a> {
    extent: Extent<'a>,
    plans: Vec<ProbePlan>,
    missing: BTreeMap<String, String>,
}

/// Everything that a run will do, and what this machine lacks.
pub(crate) fn make(
    subject: &Arc<Subject>,
    extent: Extent<'_>,
) -> Result<(Vec<ProbePlan>, BTreeMap<String, String>)> {
    let mut planner = Planner {
        extent,
        plans: Vec::new(),
        missing: BTreeMap::new(),
    };
    let python = Python::of(&subject.image)?;
    planner.cellblock(subject, &python)?;
    if !extent.alone {
        note("preparing peers and floors");
        python.prepare()?;
        planner.floors(&python);
        planner.processes(&python)?;
        planner.ipykernel(&python);
    }
    Ok((planner.plans, planner.missing))
}

impl Planner<'_> {
    /// Adds a probe with its turns in a full and in a quick run.
    fn add(&mut self, groups: &[Group], full: usize, quick: usize, probe: impl Probe + 'static) {
        if self.wants(groups) {
            self.plans.push(ProbePlan {
                turns: if self.extent.quick { quick } else { full },
                probe: Box::new(probe),
            });
        }
    }

    fn wants(&self, groups: &[Group]) -> bool {
        self.extent.only.is_empty() || groups.iter().any(|group| self.extent.only.contains(group))
    }

    /// Returns the time for which rounds are counted.
    fn while_counting(&self) -> Duration {
        Duration::from_millis(if self.extent.quick { 500 } else { 2000 })
    }

    fn cellblock(&mut self, subject: &Arc<Subject>, python: &Python) -> Result<()> {
        let of = || Arc::clone(subject);
        for pooled in [false, true] {
            self.add(
                &[Group::Create],
                200,
                4,
                Create {
                    subject: of(),
                    pooled,
                },
            );
            let first = |chart| FirstCell {
                subject: of(),
                pooled,
                chart,
            };
            self.add(&[Group::First], 200, 4, first(false));
            self.add(&[Group::Chart], 100, 2, first(true));
        }
        let warm = WarmCells {
            subject: of(),
            cells: 50,
        };
        self.add(&[Group::Warm], 40, 2, warm);
        self.live(subject);
        let tools = WorkbenchTools {
            subject: of(),
            times: 20,
        };
        self.add(&[Group::Workbench], 20, 1, tools);
        let interrupt = Interrupt {
            subject: of(),
            times: 10,
        };
        self.add(&[Group::Interrupt], 20, 1, interrupt);
        for (deaf, full) in [(false, 20), (true, 5)] {
            let deadline = Deadline {
                subject: of(),
                deaf,
                times: if deaf { 4 } else { 10 },
            };
            self.add(&[Group::Interrupt], full, 1, deadline);
        }
        self.add(&[Group::Stdout], 50, 2, Stdout { subject: of() });
        if self.wants(&[Group::Frame]) {
            let frames = Frames {
                subject: of(),
                file: python.frame_file()?,
            };
            self.add(&[Group::Frame], 12, 1, frames);
        }
        for (megabytes, full) in [(1, 50), (10, 20), (100, 6)] {
            let bind = BindInput {
                subject: of(),
                megabytes,
            };
            self.add(&[Group::Derive], full, 1, bind);
        }
        self.add(&[Group::Derive], 6, 1, ChangeSeries { subject: of() });
        let calls = Calls {
            subject: of(),
            small: 200,
            large: 5,
        };
        self.add(&[Group::Connector], 20, 1, calls);
        let waiting = WaitingCalls {
            subject: of(),
            sessions: WAITING,
        };
        self.add(&[Group::Connector], 3, 1, waiting);
        let concurrent = Concurrent {
            subject: of(),
            sessions: CONCURRENT,
        };
        self.add(&[Group::Concurrent], 5, 1, concurrent);
        let throughput = Throughput {
            subject: of(),
            time: self.while_counting(),
        };
        self.add(&[Group::Throughput], 3, 1, throughput);
        for raised in [false, true] {
            self.add(
                &[Group::Flood],
                3,
                1,
                Flood {
                    subject: of(),
                    raised,
                },
            );
        }
        let idle = IdleSessions {
            subject: of(),
            counts: &IDLE,
        };
        self.add(&[Group::Memory], 2, 1, idle);
        self.gateway();
        Ok(())
    }

    fn live(&mut self, subject: &Arc<Subject>) {
        let of = || Arc::clone(subject);
        for (held, full) in [
            (SessionState::Number, 10),
            (SessionState::Array, 10),
            (SessionState::Objects, 3),
            (SessionState::Files, 10),
        ] {
            let kept = Checkpoints {
                subject: of(),
                held,
                times: 10,
            };
            self.add(&[Group::Live], full, 1, kept);
        }
        let tries = Tries {
            subject: of(),
            times: 10,
        };
        self.add(&[Group::Live], 10, 1, tries);
        let forks = Forks {
            subject: of(),
            times: 10,
        };
        self.add(&[Group::Live], 5, 1, forks);
        let recorded = RecordingSubject {
            subject: of(),
            times: 50,
        };
        self.add(&[Group::Live], 10, 1, recorded);
    }

    fn gateway(&mut self) {
        let group = [Group::Gateway];
        let gateways = Gateways::new();
        let of = || Arc::clone(&gateways);
        let requests = RequestSubject {
            gateways: of(),
            times: 20,
        };
        self.add(&group, 20, 1, requests);
        let paced = DeltaStream {
            gateways: of(),
            deltas: 100,
        };
        self.add(&group, 10, 1, paced);
        let burst = Burst {
            gateways: of(),
            deltas: 10_000,
        };
        self.add(&group, 20, 1, burst);
        let analyses = Analyses {
            gateways: of(),
            times: 10,
            counted: self.while_counting(),
        };
        self.add(&group, 5, 1, analyses);
        let crowd = Crowd {
            gateways: of(),
            streams: CONCURRENT,
            deltas: 100,
        };
        self.add(&group, 5, 1, crowd);
        let deaf = StalledClients {
            gateways: of(),
            streams: DEAF,
            bytes: 64 << 20,
        };
        self.add(&group, 2, 1, deaf);
        let load = Load {
            gateways: of(),
            requests: LOAD,
        };
        self.add(&group, 3, 1, load);
        let one_shots = OneShots {
            gateways: of(),
            requests: ONE_SHOTS,
        };
        self.add(&group, 1, 1, one_shots);
    }

    fn floors(&mut self, python: &Python) {
        use Group::{Chart, Concurrent, Create, First, Interrupt, Memory, Stdout, Throughput, Warm};
        if self.wants(&[Create, First, Chart, Concurrent, Throughput, Memory]) {
            match start_fork(python) {
                Ok(driver) => {
                    let forked = |forked| ForkProbe {
                        driver: driver.clone(),
                        forked,
                    };
                    self.add(&[Create, First], 200, 4, forked(ForkWorkload::Sum));
                    self.add(&[Chart], 50, 2, forked(ForkWorkload::Chart));
                    self.add(&[Concurrent], 5, 1, forked(ForkWorkload::Concurrent));
                    let time = self.while_counting() / 2;
                    self.add(&[Throughput], 3, 1, forked(ForkWorkload::Throughput(time)));
                    self.add(&[Memory], 1, 1, forked(ForkWorkload::Idle));
                }
                Err(error) => self.lacks("floor of a bare fork", &error),
            }
        }
        if self.wants(&[Create, First]) {
            match start_namespaces() {
                Ok(driver) => self.add(&[Create, First], 100, 4, NamespaceProbe { driver, times: 5 }),
                Err(error) => self.lacks("floor of bare namespaces", &error),
            }
        }
        let copy = CopyProbe {
            bytes: 10_000_000,
            times: 20,
        };
        self.add(&[Group::Connector], 10, 1, copy);
        match Echo::start(python) {
            Ok(echo) => {
                let said = |said| EchoProbe {
                    echo: echo.clone(),
                    said,
                };
                self.add(&[Create, First, Warm], 40, 2, said(EchoMessage::Sum(50)));
                self.add(&[Interrupt], 20, 1, said(EchoMessage::Loop(10)));
                self.add(&[Stdout], 50, 2, said(EchoMessage::Stdout));
            }
            Err(error) => self.lacks("floor of a bare round trip", &error),
        }
    }

    fn processes(&mut self, python: &Python) -> Result<()> {
        let plain = Arc::new(PythonLauncher::plain(python));
        self.process(&plain, [(200, 4), (20, 1), (50, 2), (5, 1)]);
        if self.wants(&[Group::Frame]) {
            let frame = |program| ProcessProbe {
                wrapped: Arc::clone(&plain),
                program,
            };
            let file = python.frame_file()?;
            let made = file.with_file_name("frame-out.parquet");
            self.add(&[Group::Frame], 6, 1, frame(PeerProgram::FrameIn(file)));
            self.add(&[Group::Frame], 6, 1, frame(PeerProgram::FrameOut(made)));
        }
        if self.wants(&[Group::Derive]) {
            for (megabytes, full) in [(1, 20), (10, 10), (100, 6)] {
                let rows = ProcessProbe {
                    wrapped: Arc::clone(&plain),
                    program: PeerProgram::Rows(python.rows_file(megabytes)?, megabytes),
                };
                self.add(&[Group::Derive], full, 1, rows);
            }
        }
        match PythonLauncher::bwrap(python) {
            Ok(bwrap) => self.process(&Arc::new(bwrap), [(200, 4), (20, 1), (50, 2), (5, 1)]),
            Err(error) => self.lacks("bwrap", &error),
        }
        // It takes so much longer that a few must do; two hundred at once are more than the machine bears.
        match PythonLauncher::runsc(python) {
            Ok(runsc) => self.process(&Arc::new(runsc), [(30, 1), (8, 1), (10, 1), (0, 0)]),
            Err(error) => self.lacks("runsc", &error),
        }
        Ok(())
    }

    /// Probes of one way to start processes; turns of the first result, the chart, stdout and many at once.
    fn process(&mut self, wrapped: &Arc<PythonLauncher>, turns: [(usize, usize); 4]) {
        let probe = |program| ProcessProbe {
            wrapped: Arc::clone(wrapped),
            program,
        };
        let [first, chart, stdout, concurrent] = turns;
        self.add(&[Group::First], first.0, first.1, probe(PeerProgram::First));
        self.add(&[Group::Chart], chart.0, chart.1, probe(PeerProgram::Chart));
        self.add(&[Group::Stdout], stdout.0, stdout.1, probe(PeerProgram::Stdout));
        self.add(
            &[Group::Concurrent],
            concurrent.0,
            concurrent.1,
            probe(PeerProgram::Concurrent),
        );
        let time = self.while_counting();
        self.add(&[Group::Throughput], 3, 1, probe(PeerProgram::Throughput(time)));
        if wrapped.is_walled() {
            self.add(&[Group::Workbench], first.0, first.1, probe(PeerProgram::True));
        }
    }

    fn ipykernel(&mut self, python: &Python) {
        use Group::{Chart, First, Flood, Interrupt, Memory, Stdout, Warm};
        if !self.wants(&[First, Chart, Warm, Interrupt, Stdout, Flood, Memory]) {
            return;
        }
        match start_ipykernel(python) {
            Ok(driver) => {
                let of = |part| IpykernelProbe {
                    driver: driver.clone(),
                    part,
                };
                self.add(&[First], 20, 1, of(IpykernelPart::First));
                self.add(&[Chart], 20, 1, of(IpykernelPart::Chart));
                self.add(&[Warm], 40, 2, of(IpykernelPart::Warm(25)));
                self.add(&[Interrupt], 20, 1, of(IpykernelPart::Interrupt(10)));
                self.add(&[Stdout], 20, 1, of(IpykernelPart::Stdout));
                self.add(&[Flood], 3, 1, of(IpykernelPart::Flood));
                self.add(&[Memory], 2, 1, of(IpykernelPart::Idle));
            }
            Err(error) => self.lacks("ipykernel", &error),
        }
    }

    fn lacks(&mut self, who: &str, error: &anyhow::Error) {
        note(&format!("MISSING {who}: {error:#}"));
        self.missing.insert(who.to_owned(), format!("{error:#}"));
    }
}
