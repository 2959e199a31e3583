//! Probes to run, and the number of their turns.

use std::time::Duration;

use anyhow::{Error, Result};
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::driver::SharedDriver;
use crate::note;
use crate::probe::Probe;
use crate::python::Python;
use crate::results::MissingPrograms;
use crate::samples::ProbeTurn;
use crate::subject::Subject;

mod ours;
mod theirs;

/// Number of sessions, streams or processes that are requested at once.
const CONCURRENT: usize = 200;
/// Idle sessions whose memory is measured. As many forks are measured as in the smaller number, since
/// sharing depends on it.
const IDLE: [u32; 2] = [100, 500];

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
    /// Costs of a standby with each policy of rescue; only if it is named
    Standby,
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

// Extent of a run. A doc comment would be the description of the command.
#[derive(Debug, Args)]
pub(crate) struct Extent {
    /// A few turns of everything, to see that it works
    #[arg(long)]
    quick: bool,
    /// Only these, by name
    #[arg(long, num_args = 1.., value_name = "NAME")]
    only: Vec<Group>,
    /// Leaves out peers and floors
    #[arg(long)]
    alone: bool,
}

/// Collects probes.
struct Planner<'a> {
    extent: &'a Extent,
    probes: Vec<Probe>,
    missing: MissingPrograms,
}

/// Probes of one program, all of which use the same thing.
struct ProbeSet<'p, 'a, C> {
    planner: &'p mut Planner<'a>,
    who: &'static str,
    shared: C,
}

/// Everything that a run will do, and what this machine lacks.
pub(crate) fn make(subject: &Subject, extent: &Extent) -> Result<(Vec<Probe>, MissingPrograms)> {
    let mut planner = Planner {
        extent,
        probes: Vec::new(),
        missing: MissingPrograms::new(),
    };
    let python = Python::of(&subject.image)?;
    planner.cellblock(subject, &python)?;
    planner.gateway();
    if !extent.alone {
        note("preparing peers and floors");
        python.prepare()?;
        planner.floors(&python);
        planner.processes(&python)?;
        planner.ipykernel(&python);
    }
    Ok((planner.probes, planner.missing))
}

impl<C: Clone + 'static> ProbeSet<'_, '_, C> {
    /// Adds a probe with its turns in a full and in a quick run, and with what is special about it.
    fn add<T: Clone + 'static>(
        &mut self,
        groups: &[Group],
        turns: [usize; 2],
        what: &'static str,
        case: T,
        run: impl AsyncFn(&C, &ProbeTurn, T) -> Result<()> + 'static,
    ) {
        if self.planner.wants(groups) {
            let turns = turns[usize::from(self.planner.extent.quick)];
            let shared = self.shared.clone();
            let run = async move |turn: &ProbeTurn| run(&shared, turn, case.clone()).await;
            self.planner.probes.push(Probe::new(turns, self.who, what, run));
        }
    }

    /// Adds a probe that does nothing else while it measures.
    fn block<T: Clone + 'static>(
        &mut self,
        groups: &[Group],
        turns: [usize; 2],
        what: &'static str,
        case: T,
        run: impl Fn(&C, &ProbeTurn, T) -> Result<()> + 'static,
    ) {
        let run = async move |shared: &C, turn: &ProbeTurn, case| run(shared, turn, case);
        self.add(groups, turns, what, case, run);
    }
}

impl ProbeSet<'_, '_, SharedDriver> {
    /// Adds a probe that requests its samples from a driver.
    fn request(&mut self, groups: &[Group], turns: [usize; 2], what: &'static str, request: Value) {
        self.block(groups, turns, what, (), move |driver, turn, ()| {
            driver.borrow_mut().sample(turn, &request)
        });
    }
}

impl<'a> Planner<'a> {
    fn of<C>(&mut self, who: &'static str, shared: C) -> ProbeSet<'_, 'a, C> {
        ProbeSet {
            planner: self,
            who,
            shared,
        }
    }

    fn wants(&self, groups: &[Group]) -> bool {
        match &self.extent.only[..] {
            [] => groups != [Group::Standby],
            only => groups.iter().any(|group| only.contains(group)),
        }
    }

    /// Returns the time for which rounds are counted.
    fn while_counting(&self) -> Duration {
        Duration::from_millis(if self.extent.quick { 500 } else { 2000 })
    }

    /// Returns what was started; if it could not be, the run lacks it.
    fn started<T>(&mut self, who: &str, started: Result<T>) -> Option<T> {
        let lack = |error: Error| {
            note(&format!("MISSING {who}: {error:#}"));
            self.missing.insert(who.to_owned(), format!("{error:#}"));
        };
        started.map_err(lack).ok()
    }
}
