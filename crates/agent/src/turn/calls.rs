//! The calls of one step: code in different containers and tools of servers run concurrently, code
//! of one container one after the other.

use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::connector::Connector;
use futures_util::FutureExt as _;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::builder::{ResponseBuilder, Stop};
use super::call_result::CallResult;
use super::chart::{ChartOutcome, ChartRequest};
use super::code_call::{ClientFunctions, CodeCall};
use super::fetch::{self, Fetch, FetchResult};
use super::runner::{CallSandbox, Runner};
use super::shell::{self, ShellMoment};
use super::step::{self, Call, CallPurpose};
use super::toolset::ToolsetCall;
use crate::arguments::ArgumentsError;
use crate::tools::{Callee, ServerTool};
use crate::wire::{
    CallKind, CodeInterpreterCall, FunctionCall, FunctionCallOutput, FunctionOutput, InterpreterSlot, Item,
    ItemStatus, McpError, McpSlot, PausedProgram, Program, SearchOutput, ShellCall, ShellSlot, ToolCaller,
};

/// Maximum number of concurrent calls; a model may make any number of them.
const AT_ONCE: usize = 8;

/// Minimum time without another call before code waits for the client, so that calls that it makes at the
/// same time are in one response.
const SETTLE: Duration = Duration::from_millis(50);

const NONE_LEFT: &str = "no calls are left; answer with what there is";

/// An event of a running call.
enum Moment {
    Begins(usize),
    Ended(usize, Box<CallResult>),
    Fetched(usize, FetchResult),
    Drawn(usize, Box<ChartOutcome>),
    Called(usize, Box<CallResult>),
    Shell(usize, ShellMoment),
}

/// The work of a call.
enum Work {
    Fetch(Fetch),
    Draw(Box<ChartRequest>),
    Call(Arc<dyn Runner>, Box<ToolsetCall>),
}

impl Work {
    async fn run(self, index: usize) -> Moment {
        match self {
            Self::Fetch(fetch) => Moment::Fetched(index, fetch.run().await),
            Self::Draw(drawing) => Moment::Drawn(index, Box::new(drawing.run().await)),
            Self::Call(runner, call) => {
                let place = runner.place(0).await;
                let mut ran = place.run(*call).await;
                place.container().clone_into(&mut ran.report.container);
                Moment::Called(index, Box::new(ran))
            }
        }
    }
}

/// Code of one container, in order.
type ContainerCalls = Vec<(usize, Arc<dyn CallSandbox>, ToolsetCall)>;

/// The calls of one step, by their index in it.
#[derive(Default)]
struct CallTable {
    /// The id of each call, and that of its result item.
    ids: Vec<(String, String)>,
    results: Vec<Option<FunctionOutput>>,
    running: Vec<Option<ActiveCall>>,
    lines: Vec<ContainerCalls>,
    works: Vec<(usize, Work)>,
    /// Outputs of programs that have ended, and calls of those that wait.
    programs: Vec<Item>,
    /// Results of searches, which have items of their own.
    searches: HashMap<usize, SearchOutput>,
}

/// A running call, as the client sees it.
enum ActiveCall {
    /// Code, with the id of its item, and whether it has begun.
    Code(InterpreterSlot, String, bool),
    Tool(McpSlot),
    /// Commands of a shell, with their outputs once they have begun.
    Shell(ShellCall, Option<ShellSlot>),
    /// A program, with whether it has begun.
    Program(Program, bool),
    /// Code that has outlived the response in which it was called.
    Left(CodeInterpreterCall),
}

/// The running calls of one step. Dropping this stops them.
pub(super) struct StepCalls {
    calls: CallTable,
    moments: BoxStream<'static, Moment>,
    /// Calls that code makes of the client's functions.
    pub(super) asked: mpsc::Receiver<CodeCall>,
    /// Those that have no answer, each with its id once the client knows it.
    pub(super) open: Vec<(Option<String>, CodeCall)>,
}

/// Outcome of the calls of a step.
pub(super) enum StepOutcome {
    /// All have results, for the model, in the order of the calls.
    Done(Vec<Item>),
    /// Code waits for the client.
    Waits(Box<StepCalls>),
}

/// Runs the calls of code and of servers' tools among these, at most `left` of them.
pub(super) async fn serve(
    asked: Vec<Call>,
    left: &mut u64,
    telling: &mut ResponseBuilder<'_>,
) -> Result<StepOutcome, Stop> {
    let mut calls = CallTable::default();
    let (sender, of_code) = mpsc::channel(AT_ONCE);
    for call in asked {
        calls.ids.push((call.id.clone(), telling.ids.mint("fco")));
        calls.results.push(None);
        calls.running.push(None);
        calls.begin(call, left, telling, &sender);
    }
    calls.start(of_code, telling).await
}

/// Runs programs again whose calls have been answered.
pub(super) async fn resume_programs(
    paused: Vec<PausedProgram>,
    telling: &mut ResponseBuilder<'_>,
) -> Result<StepOutcome, Stop> {
    let mut calls = CallTable::default();
    for PausedProgram { program, calls: made } in paused {
        let place = telling.runner.place(calls.ids.len()).await;
        calls.ids.push((program.call_id.clone(), String::new()));
        calls.results.push(None);
        calls.running.push(None);
        calls.run_program(program, &made, place, telling);
    }
    let (_, of_code) = mpsc::channel(1);
    calls.start(of_code, telling).await
}

impl CallTable {
    /// Runs the calls.
    async fn start(
        mut self,
        of_code: mpsc::Receiver<CodeCall>,
        telling: &mut ResponseBuilder<'_>,
    ) -> Result<StepOutcome, Stop> {
        telling.flush().await?;
        let lines: Vec<_> = std::mem::take(&mut self.lines).into_iter().map(follow).collect();
        let code = stream::iter(lines).flatten_unordered(AT_ONCE);
        // Results are taken in the order of the calls, so that aliases are numbered in it.
        let works = stream::iter(std::mem::take(&mut self.works))
            .map(|(index, work)| work.run(index))
            .buffered(AT_ONCE);
        let serving = StepCalls {
            calls: self,
            moments: stream::select(code, works.boxed()).boxed(),
            asked: of_code,
            open: Vec::new(),
        };
        serving.follow(telling).await
    }
}

impl StepCalls {
    /// Follows the calls until all have ended, or until what has not waits for the client.
    pub(super) async fn follow(mut self, telling: &mut ResponseBuilder<'_>) -> Result<StepOutcome, Stop> {
        loop {
            // Dropping the running calls stops them.
            let moment = tokio::select! {
                moment = self.moments.next() => moment,
                Some(call) = self.asked.recv() => {
                    self.open.push((None, call));
                    continue;
                }
                () = sleep(SETTLE), if self.waits() => {
                    self.leave(telling).await?;
                    return Ok(StepOutcome::Waits(Box::new(self)));
                }
                () = telling.events.closed() => return Err(Stop::Gone),
            };
            let Some(moment) = moment else {
                return Ok(StepOutcome::Done(self.calls.items()));
            };
            self.calls.take(moment, telling).await;
            telling.flush().await?;
        }
    }

    /// Returns whether all that runs is code that waits for the client.
    fn waits(&self) -> bool {
        let open = || self.open.iter().filter(|(_, call)| !call.answer.is_closed());
        let waits = |running: &ActiveCall| match running {
            ActiveCall::Code(_, id, true) => open().any(|(_, call)| call.caller == *id),
            // It waits for other code in its container.
            ActiveCall::Code(_, _, false) | ActiveCall::Shell(_, None) | ActiveCall::Program(_, false) => {
                true
            }
            ActiveCall::Shell(_, Some(_))
            | ActiveCall::Tool(_)
            | ActiveCall::Left(_)
            | ActiveCall::Program(_, true) => false,
        };
        open().next().is_some() && self.calls.running.iter().flatten().all(waits)
    }

    /// Tells the client what the code calls, and ends the items of the code in this response.
    async fn leave(&mut self, telling: &mut ResponseBuilder<'_>) -> Result<(), Stop> {
        for running in &mut self.calls.running {
            *running = match running.take() {
                Some(ActiveCall::Code(slot, ..)) => {
                    telling.draft.leave_interpreter(slot).map(ActiveCall::Left)
                }
                other => other,
            };
        }
        self.open.retain(|(_, call)| !call.answer.is_closed());
        for (id, call) in &mut self.open {
            let call_id = id.insert(telling.ids.mint("call")).clone();
            telling.draft.whole_function_call(FunctionCall {
                id: telling.ids.mint("fc"),
                status: ItemStatus::Completed,
                call_id,
                name: call.name.clone(),
                namespace: call.namespace.clone(),
                arguments: call.arguments.clone(),
                caller: Some(ToolCaller::Program {
                    caller_id: call.caller.clone(),
                }),
            });
        }
        telling.flush().await
    }

    /// Goes on in another response.
    pub(super) async fn resume(mut self, telling: &mut ResponseBuilder<'_>) -> Result<StepOutcome, Stop> {
        for running in &mut self.calls.running {
            *running = match running.take() {
                Some(ActiveCall::Left(call)) => {
                    let (id, begun) = (call.id.clone(), call.status == ItemStatus::Interpreting);
                    Some(ActiveCall::Code(
                        telling.draft.resume_interpreter(call),
                        id,
                        begun,
                    ))
                }
                Some(ActiveCall::Shell(call, _)) => {
                    // Its outputs come in this response, and clients find the call there.
                    telling.draft.whole_shell_call(call.clone());
                    Some(ActiveCall::Shell(call, None))
                }
                other => other,
            };
        }
        telling.flush().await?;
        self.follow(telling).await
    }

    /// Takes the outputs of programs that have ended, and the calls of those that wait.
    pub(super) fn take_programs(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.calls.programs)
    }

    /// Returns the ids of the model's calls that have no result yet.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = &str> {
        let ids = self.calls.ids.iter().map(|(id, _)| id.as_str());
        ids.zip(&self.calls.running)
            .filter_map(|(id, running)| running.as_ref().map(|_| id))
    }

    /// Follows the calls to their end without a client: code's calls of the client's functions fail.
    pub(super) async fn finish(mut self) {
        self.asked.close();
        self.open.clear();
        while self.asked.recv().await.is_some() {}
        while self.moments.next().await.is_some() {}
    }
}

impl CallTable {
    /// Starts the last call; one that cannot be run is ended immediately.
    fn begin(
        &mut self,
        call: Call,
        left: &mut u64,
        telling: &mut ResponseBuilder<'_>,
        calls: &mpsc::Sender<CodeCall>,
    ) {
        let index = self.ids.len() - 1;
        match call.wants {
            CallPurpose::Client(_)
            | CallPurpose::Form(_)
            | CallPurpose::HandedOver(_)
            // It has become one that has started, or was refused.
            | CallPurpose::Program { .. } => {}
            CallPurpose::Searched(search) => {
                self.searches.insert(index, search.1);
            }
            CallPurpose::Approval { .. } => {
                if let Some(request) = call.approval() {
                    telling.draft.whole_approval_request(request);
                }
            }
            CallPurpose::Started { program, .. } if *left == 0 => {
                let why = format!("The program was not run: {NONE_LEFT}.");
                self.programs.push(telling.fail_program(&program, why));
            }
            CallPurpose::Started { program, place } => {
                *left -= 1;
                self.run_program(program, &[], place, telling);
            }
            CallPurpose::Refused(why) => self.results[index] = Some(FunctionOutput::Text(why)),
            CallPurpose::Nothing => {
                self.results[index] = Some(FunctionOutput::Text(format!(
                    "There is no tool named `{}`.",
                    call.name
                )));
            }
            CallPurpose::Shell { id, place } => match shell::arguments(&call.arguments) {
                Err(why) => self.results[index] = Some(FunctionOutput::Text(why)),
                Ok(_) if *left == 0 => {
                    let why = format!("The commands were not run: {NONE_LEFT}.");
                    self.results[index] = Some(FunctionOutput::Text(why));
                }
                Ok(arguments) => {
                    *left -= 1;
                    let commands = ToolsetCall::commands(&arguments, telling.max_timeout);
                    let item = telling.shell_call(id, &call.id, place.container(), arguments);
                    self.running[index] = Some(ActiveCall::Shell(item, None));
                    self.enqueue(index, place, commands);
                }
            },
            CallPurpose::Tool { slot, bound, .. } => {
                telling.draft.call_mcp(&slot);
                let work = match bound {
                    Some(bound) => {
                        fetch::read(&call.arguments).map(|arguments| telling.work(bound, arguments))
                    }
                    None => telling
                        .drawing(&call.arguments)
                        .map(|drawing| Work::Draw(Box::new(drawing))),
                };
                match work {
                    Ok(work) if *left > 0 => {
                        *left -= 1;
                        self.running[index] = Some(ActiveCall::Tool(slot));
                        self.works.push((index, work));
                    }
                    Ok(_) => self.results[index] = Some(telling.failed(slot, McpError::protocol(NONE_LEFT))),
                    Err(error) => self.results[index] = Some(telling.failed(slot, error)),
                }
            }
            CallPurpose::Code {
                id,
                slot,
                place,
                decoder,
                writes,
            } => match telling.code(decoder.finish()) {
                Err(refused) => self.results[index] = Some(telling.end(slot, *refused)),
                Ok(_) if *left == 0 => {
                    let why = format!("The code was not run: {NONE_LEFT}.");
                    self.results[index] = Some(telling.end(slot, CallResult::refused(why)));
                }
                Ok(mut code) => {
                    *left -= 1;
                    code.lent = telling.lent(&id, calls);
                    code.terms.writes = writes;
                    self.running[index] = Some(ActiveCall::Code(slot, id, false));
                    self.enqueue(index, place, code);
                }
            },
        }
    }

    /// Runs the last call, a program that has made these calls.
    fn run_program(
        &mut self,
        program: Program,
        made: &[(FunctionCall, Option<FunctionOutput>)],
        place: Arc<dyn CallSandbox>,
        telling: &mut ResponseBuilder<'_>,
    ) {
        match telling.program(&program, made) {
            Ok(call) => {
                let index = self.ids.len() - 1;
                self.running[index] = Some(ActiveCall::Program(program, false));
                self.enqueue(index, place, call);
            }
            Err(why) => self.programs.push(telling.fail_program(&program, why)),
        }
    }

    /// Adds a call to those of its container.
    fn enqueue(&mut self, index: usize, place: Arc<dyn CallSandbox>, call: ToolsetCall) {
        let same = |line: &&mut ContainerCalls| line[0].1.container() == place.container();
        match self.lines.iter_mut().find(same) {
            Some(line) => line.push((index, place, call)),
            None => self.lines.push(vec![(index, place, call)]),
        }
    }

    async fn take(&mut self, moment: Moment, telling: &mut ResponseBuilder<'_>) {
        match moment {
            Moment::Begins(index) => match &mut self.running[index] {
                Some(ActiveCall::Code(slot, _, begun)) => {
                    *begun = true;
                    telling.draft.interpret(slot);
                }
                Some(ActiveCall::Program(_, begun)) => *begun = true,
                Some(ActiveCall::Shell(call, slot)) => {
                    let id = telling.ids.mint(CallKind::Shell.output_prefix());
                    *slot = Some(telling.draft.shell_output(id, call));
                }
                _ => {}
            },
            Moment::Shell(index, ShellMoment::Progress(event)) => {
                if let Some(ActiveCall::Shell(_, Some(slot))) = &mut self.running[index] {
                    telling.shell_progress(slot, event);
                }
            }
            Moment::Shell(index, ShellMoment::Ended(ran)) => {
                if let Some(ActiveCall::Shell(_, Some(slot))) = self.running[index].take() {
                    self.results[index] = Some(telling.end_shell(slot, *ran));
                }
            }
            Moment::Ended(index, ran) => match self.running[index].take() {
                Some(ActiveCall::Code(slot, ..)) => self.results[index] = Some(telling.end(slot, *ran)),
                Some(ActiveCall::Program(program, _)) => {
                    self.programs.extend(telling.end_program(&program, &ran));
                }
                _ => {}
            },
            Moment::Drawn(index, drawn) => {
                if let Some(ActiveCall::Tool(slot)) = self.running[index].take() {
                    self.results[index] = Some(telling.end_drawing(slot, *drawn));
                }
            }
            Moment::Called(index, ran) => {
                if let Some(ActiveCall::Tool(slot)) = self.running[index].take() {
                    self.results[index] = Some(telling.end_call(slot, *ran));
                }
            }
            Moment::Fetched(index, fetched) => {
                if let Some(ActiveCall::Tool(slot)) = self.running[index].take() {
                    let item = &self.ids[index].1;
                    self.results[index] = Some(telling.end_fetch(slot, fetched, item).await);
                }
            }
        }
    }

    /// Returns the results for the model, in the order of the calls.
    fn items(mut self) -> Vec<Item> {
        let programs = self.programs;
        let results = self.ids.into_iter().zip(self.results).enumerate();
        let item = |(index, ((call_id, id), output)): (usize, ((String, String), Option<FunctionOutput>))| {
            if let Some(search) = self.searches.remove(&index) {
                return Some(Item::ToolSearchOutput(search));
            }
            Some(Item::FunctionCallOutput(FunctionCallOutput {
                caller: None,
                id,
                status: ItemStatus::Completed,
                call_id,
                output: output?,
            }))
        };
        results.filter_map(item).chain(programs).collect()
    }
}

fn follow(line: ContainerCalls) -> BoxStream<'static, Moment> {
    stream::iter(line)
        .flat_map(|(index, place, call)| {
            let run = if call.is_shell() {
                let run = |call| async move { place.run(call).await }.boxed();
                let moments = shell::follow(call, run);
                moments.map(move |moment| Moment::Shell(index, moment)).boxed()
            } else {
                let run = async move { Moment::Ended(index, Box::new(place.run(call).await)) };
                stream::once(run).boxed()
            };
            stream::once(ready(Moment::Begins(index))).chain(run)
        })
        .boxed()
}

impl ResponseBuilder<'_> {
    /// Returns what the code of a call can call in addition to the connectors of its session.
    fn lent(&self, id: &str, calls: &mpsc::Sender<CodeCall>) -> Vec<Arc<dyn Connector>> {
        let mut lent = self.lent.to_vec();
        if !self.of_code.is_empty() {
            let functions = ClientFunctions::new(Arc::clone(&self.of_code), id, calls);
            lent.push(Arc::new(functions));
        }
        lent
    }

    /// Returns the work of a call of a tool.
    fn work(&self, bound: Box<ServerTool>, arguments: Map<String, Value>) -> Work {
        match bound.callee.clone() {
            Callee::Server(server) => Work::Fetch(Fetch {
                server,
                bound,
                arguments,
            }),
            Callee::Toolset(toolset) => {
                let call = ToolsetCall {
                    kind: toolset.kind,
                    tool: bound.tool.name,
                    arguments: arguments.into(),
                    terms: toolset.terms,
                    lent: Vec::new(),
                };
                Work::Call(Arc::clone(&self.runner), Box::new(call))
            }
        }
    }

    /// Returns the work of complete arguments, or the reason why nothing is run.
    fn code(
        &self,
        arguments: Result<Map<String, Value>, ArgumentsError>,
    ) -> Result<ToolsetCall, Box<CallResult>> {
        let refused = |why: String| Box::new(CallResult::refused(why).misused());
        let arguments = step::arguments(arguments).map_err(refused)?;
        let derives = match self.research.and_then(|it| Some((it, it.deriving.as_ref()?))) {
            Some((research, deriving)) => deriving.code(&arguments, &research.evidence, &self.attempts),
            None => Ok(None),
        };
        match derives {
            Ok(None) => step::code(arguments).map_err(refused),
            Ok(Some(call)) => Ok(call),
            Err(derivation) => Err(Box::new(CallResult {
                derivation: Some(*derivation.clone()),
                ..CallResult::refused(derivation.told.text)
            })),
        }
    }

    /// Ends a call of code, and returns the result for the model.
    fn end(&mut self, slot: InterpreterSlot, ran: CallResult) -> FunctionOutput {
        self.draft.report_run(&slot, ran.report());
        let outputs = self.outputs.then_some(ran.outputs);
        self.draft.end_interpreter(slot, ran.status, outputs);
        self.keep(ran.made, ran.derivation);
        if let Some(arguments) = ran.asks {
            self.ask(arguments);
        }
        ran.result
    }
}
