//! The calls of one step: those of different containers run side by side, those of one container one after the other.

use std::future::ready;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt as _};

use super::step::{self, Call, Stop, Wants};
use super::{Code, Place, Ran, Telling};
use crate::wire::{FunctionCallOutput, InterpreterSlot, Item, ItemStatus, Output};

/// The most calls that run at the same time; a model may make any number of them.
const AT_ONCE: usize = 8;

/// What happens to a call that runs.
enum Moment {
    Begins(usize),
    Ended(usize, Box<Ran>),
}

/// Calls of one container, in order.
type Line = Vec<(usize, Arc<dyn Place>, Code)>;

/// Runs the calls of code among these, at most `left` of them, and gives the results for the model in the calls' order.
pub(super) async fn serve(
    calls: Vec<Call>,
    left: &mut u64,
    telling: &mut Telling<'_>,
) -> Result<Vec<Item>, Stop> {
    let mut ids = Vec::new();
    let mut results: Vec<Option<Output>> = Vec::new();
    let mut slots: Vec<Option<InterpreterSlot>> = Vec::new();
    let mut lines: Vec<Line> = Vec::new();
    for (index, call) in calls.into_iter().enumerate() {
        ids.push(call.id);
        results.push(None);
        slots.push(None);
        match call.wants {
            Wants::Client(_) => {}
            Wants::Nothing => {
                results[index] = Some(Output::Text(format!("There is no tool named `{}`.", call.name)));
            }
            Wants::Code { slot, place, decoder } => match step::code(decoder.finish()) {
                Err(why) => results[index] = Some(telling.end(slot, Ran::refused(why))),
                Ok(_) if *left == 0 => {
                    let why = "The code was not run: no calls are left; answer with what there is.";
                    results[index] = Some(telling.end(slot, Ran::refused(why)));
                }
                Ok(code) => {
                    *left -= 1;
                    slots[index] = Some(slot);
                    let same = |line: &&mut Line| line[0].1.container() == place.container();
                    match lines.iter_mut().find(same) {
                        Some(line) => line.push((index, place, code)),
                        None => lines.push(vec![(index, place, code)]),
                    }
                }
            },
        }
    }
    telling.flush().await?;
    let lines: Vec<_> = lines.into_iter().map(follow).collect();
    let mut moments = stream::iter(lines).flatten_unordered(AT_ONCE);
    loop {
        // Dropping what runs stops it.
        let moment = tokio::select! {
            moment = moments.next() => moment,
            () = telling.events.closed() => return Err(Stop::Gone),
        };
        match moment {
            None => break,
            Some(Moment::Begins(index)) => {
                if let Some(slot) = &slots[index] {
                    telling.draft.interpret(slot);
                }
            }
            Some(Moment::Ended(index, ran)) => {
                if let Some(slot) = slots[index].take() {
                    results[index] = Some(telling.end(slot, *ran));
                }
            }
        }
        telling.flush().await?;
    }
    let results = ids.into_iter().zip(results);
    let item = |(call_id, output): (String, Option<Output>)| {
        Some(Item::FunctionCallOutput(FunctionCallOutput {
            id: telling.ids.mint("fco"),
            status: ItemStatus::Completed,
            call_id,
            output: output?,
        }))
    };
    Ok(results.filter_map(item).collect())
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
    /// Ends a call, and gives what the model reads of it.
    fn end(&mut self, slot: InterpreterSlot, ran: Ran) -> Output {
        let outputs = self.outputs.then_some(ran.outputs);
        self.draft.end_interpreter(slot, ran.status, outputs);
        for file in ran.made {
            // Written again, it is the new file that texts refer to.
            let same = |other: &super::Made| other.container == file.container && other.path == file.path;
            self.made.retain(|other| !same(other));
            self.made.push(file);
        }
        ran.result
    }
}
