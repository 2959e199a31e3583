//! The part of a session that lives and ends with its sandbox.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cellblock_protocol::{Bundle, KernelOutcome, Reference, ToKernel};
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Kernel, Sandbox, Usage};
use tokio::sync::{mpsc, oneshot};

use crate::base::HeldLayer;
use crate::cell::Cell;
use crate::error::{Error, Result};
use crate::execution::{Event, Execution};
use crate::lineage::VariableOrigin;
use crate::session::branches::checkpoints::{Checkpoints, Trial};
use crate::session::branches::dormancy::{HibernationFlag, StoredMachine};
use crate::session::contents::Contents;
use crate::session::interrupts::InterruptReceiver;
use crate::session::journal::Journal;
use crate::session::journal::timeline::TimelineEvent;
use crate::session::options::SessionOptions;
use crate::session::processes::Table;
use crate::session::runtime::calls::{BuiltIn, CallLimits, HostMethods};
use crate::session::runtime::run::{CellTerms, End, RequestResult, run};
use crate::session::runtime::standby::Standby;
use crate::session::runtime::way_out::WayOut;
use crate::shared::InterpreterState;

pub(in crate::session) mod calls;
pub(in crate::session) mod capture;
pub(in crate::session) mod check;
pub(in crate::session) mod command;
pub(in crate::session) mod environment;
pub(in crate::session) mod evidence;
pub(in crate::session) mod judge;
pub(in crate::session) mod kept;
pub(in crate::session) mod lent;
pub(in crate::session) mod rescue;
pub(in crate::session) mod run;
pub(in crate::session) mod sandbox;
pub(in crate::session) mod setup;
pub(in crate::session) mod shown;
pub(in crate::session) mod standby;
pub(in crate::session) mod usage;
pub(in crate::session) mod variables;
#[cfg(feature = "egress")]
pub(in crate::session) mod way_out;
#[cfg(not(feature = "egress"))]
#[path = "no_way_out.rs"]
pub(in crate::session) mod way_out;

/// Maximum time for binding an input, resetting and the like; none of them runs a user's loop.
const HOUSEKEEPING: Duration = Duration::from_mins(2);

/// A session's sandbox and kernel, and the terms on which they are made: lost and made again as one.
#[derive(Debug)]
pub(in crate::session) struct Runtime {
    pub(in crate::session) shared: Arc<InterpreterState>,
    pub(in crate::session) limits: Limits,
    pub(in crate::session) options: SessionOptions,
    pub(in crate::session) interrupts: InterruptReceiver,
    /// Processes beside cells.
    pub(in crate::session) processes: Arc<Table>,
    /// The sandbox, made on first use.
    pub(in crate::session) sandbox: Option<Box<dyn Sandbox>>,
    pub(in crate::session) kernel: Option<Kernel>,
    /// Sandbox on disk while the session is hibernated, if the backend can write it there.
    pub(in crate::session) asleep: Option<StoredMachine>,
    pub(in crate::session) resting: Arc<HibernationFlag>,
    pub(in crate::session) standby: Standby,
    /// Kept copies of kernels, with their checkpoints, which live in the sandbox and end with it.
    pub(in crate::session) kept: Checkpoints,
    /// The try that runs or is undecided.
    pub(in crate::session) trial: Option<Trial>,
    /// Whether the inputs' files are in the sandbox.
    pub(in crate::session) furnished: bool,
    /// Tool results that are in the sandbox.
    pub(in crate::session) bound: Option<BoundInputs>,
    /// Whether a cell has run in the kernel that is there, so that its loss is one of variables.
    pub(in crate::session) has_variables: bool,
    /// Whether a cell has run in the sandbox that is there, so that its loss is one of files.
    pub(in crate::session) has_files: bool,
    /// Note for the next command after the sandbox with its files was lost.
    pub(in crate::session) lost_files: Option<String>,
    /// Layers of packages that it has required.
    pub(in crate::session) layers: Vec<HeldLayer>,
    /// Setup code that has ended a kernel, by its place.
    pub(in crate::session) unusable_setup: BTreeSet<usize>,
    /// Messages that the kernel was to answer; their numbers tell its answers apart.
    messages: u64,
    /// Usage of the sandbox at the last look.
    pub(in crate::session) usage: Usage,
    /// Bundles of connectors that the current kernel has bound.
    pub(in crate::session) bundles: Vec<Bundle>,
    /// Its way out, with `network: egress`.
    pub(in crate::session) way_out: WayOut,
}

/// The tool results that are in a sandbox.
#[derive(Debug)]
pub(in crate::session) struct BoundInputs {
    pub(in crate::session) key: String,
    pub(in crate::session) references: Vec<Reference>,
}

/// Terms of a message for which a kernel runs code.
pub(in crate::session) struct RunTerms<'a> {
    pub(in crate::session) timeout: Duration,
    /// Receiver of its output as it comes.
    pub(in crate::session) events: Option<mpsc::Sender<Event>>,
    /// Caller that waits for the answer; a cell whose caller has gone is stopped.
    pub(in crate::session) asker: Option<&'a mut oneshot::Sender<Result<Execution>>>,
    /// Whether an interrupt of the request stops it.
    pub(in crate::session) stoppable: bool,
    /// Methods that the code can call.
    pub(in crate::session) host: &'a dyn HostMethods,
}

impl<'a> RunTerms<'a> {
    /// Terms of a cell, which an interrupt stops.
    pub(in crate::session) fn watched(
        timeout: Duration,
        events: Option<mpsc::Sender<Event>>,
        asker: Option<&'a mut oneshot::Sender<Result<Execution>>>,
        host: &'a dyn HostMethods,
    ) -> Self {
        Self {
            timeout,
            events,
            asker,
            stoppable: true,
            host,
        }
    }

    /// Terms of code that nobody watches, and that an interrupt does not stop.
    pub(in crate::session) fn alone(timeout: Duration) -> Self {
        Self {
            timeout,
            events: None,
            asker: None,
            stoppable: false,
            host: &BuiltIn,
        }
    }
}

impl Runtime {
    /// A runtime without a sandbox.
    pub(in crate::session) fn new(
        shared: Arc<InterpreterState>,
        options: SessionOptions,
        interrupts: InterruptReceiver,
        processes: Arc<Table>,
    ) -> Self {
        let way_out = WayOut::of(&options);
        Self {
            limits: options.limits.clone().unwrap_or_else(|| shared.limits.clone()),
            shared,
            options,
            interrupts,
            processes,
            sandbox: None,
            kernel: None,
            asleep: None,
            resting: Arc::default(),
            standby: Standby::default(),
            kept: Checkpoints::default(),
            trial: None,
            furnished: false,
            bound: None,
            has_variables: false,
            has_files: false,
            lost_files: None,
            layers: Vec::new(),
            unusable_setup: BTreeSet::new(),
            messages: 0,
            usage: Usage::default(),
            bundles: Vec::new(),
            way_out,
        }
    }

    /// Returns the origins of the variables that are there.
    pub(in crate::session) fn origins(&self, journal: &Journal) -> BTreeMap<String, VariableOrigin> {
        let there = self.kernel.as_ref().map(|_| journal.lineage.origins().clone());
        there.unwrap_or_default()
    }

    /// Returns a number for the next message.
    pub(in crate::session) fn number(&mut self) -> u64 {
        self.messages += 1;
        self.messages
    }

    /// Makes the message that runs a cell, and takes its code.
    pub(in crate::session) fn cell_message(
        &mut self,
        journal: &Journal,
        cell: &mut Cell,
        references: Vec<Reference>,
    ) -> ToKernel {
        ToKernel::Execute {
            cell: self.number(),
            name: cell
                .name
                .take()
                .unwrap_or_else(|| format!("<cell {}>", journal.cells)),
            code: std::mem::take(&mut cell.code),
            line: cell.line,
            language: cell.language,
            argv: std::mem::take(&mut cell.argv),
            mode: cell.mode,
            echo: cell.echo,
            store: cell.store,
            last: cell.last,
            references,
            report_names: cell.language.is_python()
                && (self.trial.is_some() || journal.lineage.needs_names(cell.producer.as_deref())),
            grace_ms: (!cell.language.is_python())
                .then(|| u64::try_from(self.limits.grace.as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// Sends a message to the kernel and waits for its result. A kernel that ends meanwhile is
    /// replaced by its standby, if it has one.
    pub(in crate::session) async fn run(
        &mut self,
        journal: &mut Journal,
        message: &ToKernel,
        terms: RunTerms<'_>,
    ) -> Result<RequestResult> {
        let kernel = self.kernel.as_mut().ok_or(Error::Closed)?;
        let terms = CellTerms {
            limits: &self.limits,
            timeout: terms.timeout,
            interrupts: terms.stoppable.then_some(&mut self.interrupts),
            events: terms.events,
            asker: terms.asker,
            decoding: &self.shared.decoding,
            standby: &mut self.standby,
            host: terms.host,
            calls: CallLimits::default(),
        };
        terms.standby.sent(message, journal.cells);
        let mut ran = run(kernel, message, terms).await?;
        self.interrupts.unseen = ran.stopped.is_some();
        if matches!(ran.end, End::Lost(_)) {
            ran.aftermath = self.rescue(journal).await;
        }
        Ok(ran)
    }

    /// A request that user code has no part in: anything but completion is an error, given as its
    /// message. What is done for the sake of another request is not `stoppable`: an interrupt is
    /// meant for that one.
    pub(in crate::session) async fn housekeeping(
        &mut self,
        journal: &mut Journal,
        message: &ToKernel,
        stoppable: bool,
    ) -> Result<Result<RequestResult, String>> {
        let terms = RunTerms {
            stoppable,
            ..RunTerms::alone(HOUSEKEEPING)
        };
        let mut ran = self.run(journal, message, terms).await?;
        if let (End::Done { .. }, Some(unkept)) = (&ran.end, ran.unkept.pop()) {
            return Err(unkept.error);
        }
        Ok(match &ran.end {
            End::Done {
                outcome: KernelOutcome::Completed,
                ..
            } => Ok(ran),
            End::Done {
                error: Some(error), ..
            } => Err(error.message.clone()),
            End::Done { .. } => Err("it was interrupted".to_owned()),
            End::Lost(_) => {
                self.lose_kernel(journal);
                Err("the kernel ended meanwhile".to_owned())
            }
        })
    }

    /// Drops all variables but the inputs, and ends what runs beside cells.
    pub(in crate::session) async fn reset(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
    ) -> Result<()> {
        self.processes.end_all().await;
        self.hear_out(journal).await?;
        contents.grants.forget();
        if self.kernel.is_none() {
            return Ok(());
        }
        let message = ToKernel::Reset { cell: self.number() };
        match self.housekeeping(journal, &message, true).await? {
            Ok(_) => {
                journal.note_event(TimelineEvent::Reset);
                journal.lineage.clear();
                self.set_up(journal).await.map(drop)
            }
            Err(reason) => Err(Error::Request(format!("reset the session: {reason}"))),
        }
    }
}
