//! The calls of one step: code in different containers and tools of servers run concurrently, code
//! of one container one after the other.

use std::future::ready;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use serde_json::{Map, Value};

use super::chart::{Drawing, Drawn};
use super::fetch::{self, Fetch, Fetched};
use super::step::{self, Call, Stop, Wants};
use super::toolset::ToolsetCall;
use super::{Place, Ran, Runner, Telling};
use crate::arguments::ArgumentsError;
use crate::tools::{Bound, Callee};
use crate::wire::{FunctionCallOutput, FunctionOutput, InterpreterSlot, Item, ItemStatus, McpError, McpSlot};

/// Maximum number of concurrent calls; a model may make any number of them.
const AT_ONCE: usize = 8;

const NONE_LEFT: &str = "no calls are left; answer with what there is";

/// An event of a running call.
enum Moment {
    Begins(usize),
    Ended(usize, Box<Ran>),
    Fetched(usize, Fetched),
    Drawn(usize, Box<Drawn>),
    Called(usize, Box<Ran>),
}

/// The work of a call.
enum Work {
    Fetch(Fetch),
    Draw(Box<Drawing>),
    Call(Arc<dyn Runner>, Box<ToolsetCall>),
}

impl Work {
    async fn run(self, index: usize) -> Moment {
        match self {
            Self::Fetch(fetch) => Moment::Fetched(index, fetch.run().await),
            Self::Draw(drawing) => Moment::Drawn(index, Box::new(drawing.run().await)),
            Self::Call(runner, call) => {
                let place = runner.place(0).await;
                Moment::Called(index, Box::new(place.run(*call).await))
            }
        }
    }
}

/// Code of one container, in order.
type Line = Vec<(usize, Arc<dyn Place>, ToolsetCall)>;

/// The calls of one step, by their index in it.
#[derive(Default)]
struct Calls {
    /// The id of each call, and that of its result item.
    ids: Vec<(String, String)>,
    results: Vec<Option<FunctionOutput>>,
    running: Vec<Option<Running>>,
    lines: Vec<Line>,
    works: Vec<(usize, Work)>,
}

/// A running call, as the client sees it.
enum Running {
    Code(InterpreterSlot),
    Tool(McpSlot),
}

/// Runs the calls of code and of servers' tools among these, at most `left` of them, and returns
/// the results for the model in the order of the calls.
pub(super) async fn serve(
    asked: Vec<Call>,
    left: &mut u64,
    telling: &mut Telling<'_>,
) -> Result<Vec<Item>, Stop> {
    let mut calls = Calls::default();
    for call in asked {
        calls.ids.push((call.id.clone(), telling.ids.mint("fco")));
        calls.results.push(None);
        calls.running.push(None);
        calls.begin(call, left, telling);
    }
    telling.flush().await?;
    let lines: Vec<_> = std::mem::take(&mut calls.lines).into_iter().map(follow).collect();
    let code = stream::iter(lines).flatten_unordered(AT_ONCE);
    // Results are taken in the order of the calls, so that aliases are numbered in it.
    let works = stream::iter(std::mem::take(&mut calls.works))
        .map(|(index, work)| work.run(index))
        .buffered(AT_ONCE);
    let mut moments = stream::select(code, works.boxed());
    loop {
        // Dropping the running calls stops them.
        let moment = tokio::select! {
            moment = moments.next() => moment,
            () = telling.events.closed() => return Err(Stop::Gone),
        };
        let Some(moment) = moment else { break };
        calls.take(moment, telling).await;
        telling.flush().await?;
    }
    Ok(calls.items())
}

impl Calls {
    /// Starts the last call; one that cannot be run is ended immediately.
    fn begin(&mut self, call: Call, left: &mut u64, telling: &mut Telling<'_>) {
        let index = self.ids.len() - 1;
        match call.wants {
            Wants::Client(_) => {}
            Wants::Nothing => {
                self.results[index] = Some(FunctionOutput::Text(format!(
                    "There is no tool named `{}`.",
                    call.name
                )));
            }
            Wants::Tool { slot, bound, .. } => {
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
                        self.running[index] = Some(Running::Tool(slot));
                        self.works.push((index, work));
                    }
                    Ok(_) => self.results[index] = Some(telling.failed(slot, McpError::protocol(NONE_LEFT))),
                    Err(error) => self.results[index] = Some(telling.failed(slot, error)),
                }
            }
            Wants::Code { slot, place, decoder } => match telling.code(decoder.finish()) {
                Err(refused) => self.results[index] = Some(telling.end(slot, *refused)),
                Ok(_) if *left == 0 => {
                    let why = format!("The code was not run: {NONE_LEFT}.");
                    self.results[index] = Some(telling.end(slot, Ran::refused(why)));
                }
                Ok(code) => {
                    *left -= 1;
                    self.running[index] = Some(Running::Code(slot));
                    let same = |line: &&mut Line| line[0].1.container() == place.container();
                    match self.lines.iter_mut().find(same) {
                        Some(line) => line.push((index, place, code)),
                        None => self.lines.push(vec![(index, place, code)]),
                    }
                }
            },
        }
    }

    async fn take(&mut self, moment: Moment, telling: &mut Telling<'_>) {
        match moment {
            Moment::Begins(index) => {
                if let Some(Running::Code(slot)) = &self.running[index] {
                    telling.draft.interpret(slot);
                }
            }
            Moment::Ended(index, ran) => {
                if let Some(Running::Code(slot)) = self.running[index].take() {
                    self.results[index] = Some(telling.end(slot, *ran));
                }
            }
            Moment::Drawn(index, drawn) => {
                if let Some(Running::Tool(slot)) = self.running[index].take() {
                    self.results[index] = Some(telling.end_drawing(slot, *drawn));
                }
            }
            Moment::Called(index, ran) => {
                if let Some(Running::Tool(slot)) = self.running[index].take() {
                    self.results[index] = Some(telling.end_call(slot, *ran));
                }
            }
            Moment::Fetched(index, fetched) => {
                if let Some(Running::Tool(slot)) = self.running[index].take() {
                    let item = &self.ids[index].1;
                    self.results[index] = Some(telling.end_fetch(slot, fetched, item).await);
                }
            }
        }
    }

    /// Returns the results for the model, in the order of the calls.
    fn items(self) -> Vec<Item> {
        let results = self.ids.into_iter().zip(self.results);
        let item = |((call_id, id), output): ((String, String), Option<FunctionOutput>)| {
            Some(Item::FunctionCallOutput(FunctionCallOutput {
                id,
                status: ItemStatus::Completed,
                call_id,
                output: output?,
            }))
        };
        results.filter_map(item).collect()
    }
}

fn follow(line: Line) -> BoxStream<'static, Moment> {
    stream::iter(line)
        .flat_map(|(index, place, code)| {
            let run = async move { Moment::Ended(index, Box::new(place.run(code).await)) };
            stream::once(ready(Moment::Begins(index))).chain(stream::once(run))
        })
        .boxed()
}

impl Telling<'_> {
    /// Returns the work of a call of a tool.
    fn work(&self, bound: Box<Bound>, arguments: Map<String, Value>) -> Work {
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
                };
                Work::Call(Arc::clone(&self.runner), Box::new(call))
            }
        }
    }

    /// Returns the work of complete arguments, or the reason why nothing is run.
    fn code(&self, arguments: Result<Map<String, Value>, ArgumentsError>) -> Result<ToolsetCall, Box<Ran>> {
        let refused = |why: String| Box::new(Ran::refused(why));
        let arguments = step::arguments(arguments).map_err(refused)?;
        let derives = match self.research.and_then(|it| Some((it, it.deriving.as_ref()?))) {
            Some((research, deriving)) => deriving.code(&arguments, &research.evidence, &self.attempts),
            None => Ok(None),
        };
        match derives {
            Ok(None) => step::code(arguments).map_err(refused),
            Ok(Some(call)) => Ok(call),
            Err(derivation) => Err(Box::new(Ran {
                derivation: Some(*derivation.clone()),
                ..Ran::refused(derivation.told.text)
            })),
        }
    }

    /// Ends a call of code, and returns the result for the model.
    fn end(&mut self, slot: InterpreterSlot, ran: Ran) -> FunctionOutput {
        let outputs = self.outputs.then_some(ran.outputs);
        self.draft.end_interpreter(slot, ran.status, outputs);
        self.keep(ran.made, ran.derivation);
        ran.result
    }
}
