//! A model's view of recorded results.
//!
//! A view starts with the alias and contains as much detail as its budget permits: the kind of the
//! result, its keys with their types, their nulls with first and last values, or a small value as a
//! whole. It never exceeds the budget, except that the alias is always present.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::render::CHARS_PER_TOKEN;

use super::error::AliasError;
use super::outline::{DetailLevel, Outline};
use super::store::AliasStore;

/// A model's view of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct View {
    /// Alias, with which the text starts.
    pub alias: String,
    /// Level of detail of the text.
    pub level: Level,
    /// The text.
    pub text: String,
}

/// Level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Only the alias.
    Reference,
    /// Kind and size.
    Line,
    /// Keys and types.
    Shape,
    /// Values.
    Full,
}

impl AliasStore {
    /// Returns a view of one result within a number of tokens of four characters.
    pub fn model_view(&self, alias: &str, tokens: usize) -> Result<String, AliasError> {
        let outline = Outline::of(&*self.entry(alias)?);
        let chars = tokens.saturating_mul(CHARS_PER_TOKEN);
        let fitting = outline.lengths().take_while(|length| *length <= chars).count();
        Ok(outline.text(fitting.saturating_sub(1)))
    }

    /// Describes one result in one line, without its alias. The line can be long, because all keys
    /// are named.
    pub fn summary(&self, alias: &str) -> Result<String, AliasError> {
        Ok(Outline::of(&*self.entry(alias)?).summary())
    }

    /// Returns views of all results within a number of tokens, in the order of their recording,
    /// separated by line ends.
    ///
    /// Newer results are shown in more detail than older ones, which shrink step by step to their
    /// aliases. No alias is ever omitted: the budget is exceeded only if the aliases alone do not
    /// fit. A larger budget never reduces the detail of a result.
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
/// All start with their aliases. Then details are added one step at a time, in an order that does
/// not depend on the budget: the shortest next step comes first, where the steps of the n-th newest
/// result count n-fold. The first step that does not fit ends this, so a larger budget only adds
/// steps.
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

const fn level(step: DetailLevel) -> Level {
    match step {
        DetailLevel::Reference => Level::Reference,
        DetailLevel::Line => Level::Line,
        DetailLevel::Shape(_) => Level::Shape,
        DetailLevel::Samples(_) | DetailLevel::Whole => Level::Full,
    }
}
