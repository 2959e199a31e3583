//! What a model rereads of recorded results.
//!
//! A view begins with the alias and tells as much as its budget allows: what the result is, its keys with their types, their
//! nulls with first and last values, or a small value whole. It never exceeds the budget, except that the alias is always there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::render::CHARS_PER_TOKEN;

use super::error::AliasError;
use super::outline::{Outline, Step};
use super::store::AliasStore;

/// A result as a model rereads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct View {
    /// Its alias, with which the text begins.
    pub alias: String,
    /// How much the text tells.
    pub level: Level,
    /// The text.
    pub text: String,
}

/// How much of a result is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Its alias.
    Reference,
    /// What it is and how large.
    Line,
    /// Keys and types.
    Shape,
    /// Values.
    Full,
}

impl AliasStore {
    /// Shows one result within so many tokens of four characters.
    pub fn model_view(&self, alias: &str, tokens: usize) -> Result<String, AliasError> {
        let outline = Outline::of(&*self.entry(alias)?);
        let chars = tokens.saturating_mul(CHARS_PER_TOKEN);
        let fitting = outline.lengths().take_while(|length| *length <= chars).count();
        Ok(outline.text(fitting.saturating_sub(1)))
    }

    /// Says what one result is, in one line without its alias. It can be long: many keys are all named.
    pub fn summary(&self, alias: &str) -> Result<String, AliasError> {
        Ok(Outline::of(&*self.entry(alias)?).summary())
    }

    /// Shows all results within so many tokens, in the order of their recording, with a line end between two.
    ///
    /// Newer results are shown at greater length than older ones, which shrink step by step down to their aliases. No alias is
    /// ever left out: only where the aliases alone do not fit is the budget exceeded. With a larger budget no result is shown
    /// at less length than before.
    pub fn model_views(&self, tokens: usize) -> Vec<View> {
        let outlines: Vec<_> = self.entries().iter().map(|entry| Outline::of(entry)).collect();
        let shown = share(&outlines, tokens.saturating_mul(CHARS_PER_TOKEN));
        let views = outlines.iter().zip(shown).map(|(outline, at)| View {
            alias: outline.text(0),
            level: level(outline.step(at)),
            text: outline.text(at),
        });
        views.collect()
    }
}

/// Chooses a step for each result.
///
/// All begin with their aliases. Then they are told at more length one step at a time, in an order that does not depend on the
/// budget: whichever has the shortest next step comes first, where the n-th newest result's steps count n-fold. The first step that
/// does not fit ends it. So a larger budget only ever adds steps.
fn share(outlines: &[Outline], chars: usize) -> Vec<usize> {
    let lengths: Vec<Vec<usize>> = outlines
        .iter()
        .map(|outline| outline.lengths().collect())
        .collect();
    let mut shown = vec![0; outlines.len()];
    let aliases: usize = lengths.iter().map(|steps| steps[0]).sum();
    let mut spent = aliases + outlines.len().saturating_sub(1);
    let cost = |index: usize, step: usize| {
        let weight = outlines.len() - index;
        let length: Option<usize> = lengths[index].get(step).copied();
        length.map(|length| Reverse((length * weight, Reverse(index), step)))
    };
    let mut next: BinaryHeap<_> = (0..outlines.len()).filter_map(|index| cost(index, 1)).collect();
    while let Some(Reverse((_, Reverse(index), step))) = next.pop() {
        let more = lengths[index][step] - lengths[index][step - 1];
        if spent + more > chars {
            break;
        }
        spent += more;
        shown[index] = step;
        next.extend(cost(index, step + 1));
    }
    shown
}

const fn level(step: Step) -> Level {
    match step {
        Step::Reference => Level::Reference,
        Step::Line => Level::Line,
        Step::Shape(_) => Level::Shape,
        Step::Samples(_) | Step::Whole => Level::Full,
    }
}
