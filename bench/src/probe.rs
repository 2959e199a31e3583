//! A probe takes samples when it is its turn; rounds give everyone turns, so that noise hits all alike.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use futures_util::future::LocalBoxFuture;

use crate::note;
use crate::samples::{ProbeTurn, Samples};

/// Cellblock's name in those of series.
pub(crate) const WHO: &str = "cellblock";
/// Rounds at a time, where rounds in a second are counted.
pub(crate) const WIDTHS: [usize; 5] = [1, 2, 4, 8, 16];

/// Something that is measured, turn by turn.
pub(crate) struct Probe {
    /// Number of turns.
    turns: usize,
    /// Name of the measured program, in those of series.
    who: &'static str,
    /// Name for messages; often that of a series.
    what: &'static str,
    run: Box<dyn Fn(ProbeTurn) -> LocalBoxFuture<'static, Result<()>>>,
}

impl Probe {
    pub(crate) fn new(
        turns: usize,
        who: &'static str,
        what: &'static str,
        run: impl AsyncFn(&ProbeTurn) -> Result<()> + 'static,
    ) -> Self {
        let run = Rc::new(run);
        Self {
            turns,
            who,
            what,
            run: Box::new(move |turn| {
                let run = Rc::clone(&run);
                Box::pin(async move { run(&turn).await })
            }),
        }
    }
}

/// A probe that failed this often in a row has no more turns.
const GIVE_UP: usize = 3;

/// Runs all probes, their turns spread evenly over the rounds. Returns the samples, and what failed; a
/// failure costs its turn only.
pub(crate) async fn run(probes: Vec<Probe>) -> (Samples, Vec<String>) {
    let shared = Rc::new(RefCell::new(Samples::new()));
    let rounds = probes.iter().map(|probe| probe.turns).max().unwrap_or(0);
    let mut failures = Vec::new();
    let mut in_a_row = vec![0_usize; probes.len()];
    for round in 0..rounds {
        if round % (rounds / 10).max(1) == 0 {
            note(&format!("round {} of {rounds}", round + 1));
        }
        for (probe, in_a_row) in probes.iter().zip(&mut in_a_row) {
            if *in_a_row >= GIVE_UP || !is_due(round, rounds, probe.turns) {
                continue;
            }
            let Probe { who, what, .. } = *probe;
            let samples = Rc::clone(&shared);
            let Err(error) = (probe.run)(ProbeTurn { who, what, samples }).await else {
                *in_a_row = 0;
                continue;
            };
            *in_a_row += 1;
            let failure = format!("{who}, {what}: {error:#}");
            note(&format!("FAILED {failure}"));
            failures.push(failure);
        }
    }
    (shared.take(), failures)
}

/// Whether one of `turns` turns, spread over all rounds, falls into this round.
const fn is_due(round: usize, rounds: usize, turns: usize) -> bool {
    (round + 1) * turns / rounds > round * turns / rounds
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;

    use super::*;

    async fn order(turns: &[(&'static str, usize)]) -> (Vec<&'static str>, Vec<String>) {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let recorder = |(who, turns): &(&'static str, usize)| {
            let seen = Rc::clone(&seen);
            Probe::new(*turns, who, "order", async move |turn: &ProbeTurn| {
                seen.borrow_mut().push(turn.who);
                ensure!(turn.who != "broken", "no");
                Ok(())
            })
        };
        let (_, failures) = run(turns.iter().map(recorder).collect()).await;
        (seen.take(), failures)
    }

    #[tokio::test]
    async fn turns_are_spread_over_the_rounds() {
        let (seen, failures) = order(&[("a", 4), ("b", 2), ("c", 1)]).await;
        assert_eq!(seen, ["a", "a", "b", "a", "a", "b", "c"]);
        assert_eq!(failures, [""; 0]);
    }

    #[tokio::test]
    async fn a_failing_probe_does_not_end_the_run_and_is_given_up() {
        let (seen, failures) = order(&[("broken", 9), ("a", 9)]).await;
        assert_eq!(seen.iter().filter(|who| **who == "a").count(), 9);
        assert_eq!(seen.iter().filter(|who| **who == "broken").count(), GIVE_UP);
        assert_eq!(failures, ["broken, order: no"; GIVE_UP]);
    }
}
