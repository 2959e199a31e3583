//! A probe takes samples when it is its turn; rounds give everyone turns, so that noise hits all alike.

use std::pin::Pin;

use anyhow::Result;

use crate::progress::note;
use crate::samples::Samples;

/// Cellblock's name in those of series.
pub(crate) const WHO: &str = "cellblock";

/// Work of a probe in one turn.
pub(crate) type SampleFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// Something that is measured, turn by turn.
pub(crate) trait Probe {
    /// Whom it measures.
    fn who(&self) -> &'static str;
    /// Returns its name, for messages.
    fn what(&self) -> &'static str;
    /// Takes the samples of one turn.
    fn sample<'a>(&'a mut self, samples: &'a mut Samples) -> SampleFuture<'a>;
}

/// Makes a probe of Cellblock of a type that has a `run`.
macro_rules! probe {
    ($probe:ty, $what:literal) => {
        impl $crate::probe::Probe for $probe {
            fn who(&self) -> &'static str {
                $crate::probe::WHO
            }

            fn what(&self) -> &'static str {
                $what
            }

            fn sample<'a>(
                &'a mut self,
                samples: &'a mut $crate::samples::Samples,
            ) -> $crate::probe::SampleFuture<'a> {
                Box::pin(self.run(samples))
            }
        }
    };
}
pub(crate) use probe;

/// A probe with the number of its turns.
pub(crate) struct ProbePlan {
    pub(crate) turns: usize,
    pub(crate) probe: Box<dyn Probe>,
}

/// A probe that failed this often in a row has no more turns.
const GIVE_UP: usize = 3;

/// Runs all probes, their turns spread evenly over the rounds. Answers what failed; a failure costs
/// its turn only.
pub(crate) async fn run(plans: Vec<ProbePlan>, samples: &mut Samples) -> Vec<String> {
    let rounds = plans.iter().map(|plan| plan.turns).max().unwrap_or(0);
    let mut failures = Vec::new();
    let mut in_a_row = vec![0_usize; plans.len()];
    let mut plans = plans;
    for round in 0..rounds {
        if round % (rounds / 10).max(1) == 0 {
            note(&format!("round {} of {rounds}", round + 1));
        }
        for (plan, in_a_row) in plans.iter_mut().zip(&mut in_a_row) {
            if *in_a_row >= GIVE_UP || !is_due(round, rounds, plan.turns) {
                continue;
            }
            match plan.probe.sample(samples).await {
                Ok(()) => *in_a_row = 0,
                Err(error) => {
                    *in_a_row += 1;
                    let failure = format!("{}, {}: {error:#}", plan.probe.who(), plan.probe.what());
                    note(&format!("FAILED {failure}"));
                    failures.push(failure);
                }
            }
        }
    }
    failures
}

/// Whether one of `turns` turns, spread over all rounds, falls into this round.
const fn is_due(round: usize, rounds: usize, turns: usize) -> bool {
    (round + 1) * turns / rounds > round * turns / rounds
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use anyhow::bail;

    use super::*;

    struct CallRecorder(&'static str, Rc<RefCell<Vec<&'static str>>>);

    impl Probe for CallRecorder {
        fn who(&self) -> &'static str {
            self.0
        }
        fn what(&self) -> &'static str {
            "order"
        }
        fn sample<'a>(&'a mut self, _: &'a mut Samples) -> SampleFuture<'a> {
            self.1.borrow_mut().push(self.0);
            let fails = self.0 == "broken";
            Box::pin(async move {
                if fails {
                    bail!("no");
                }
                Ok(())
            })
        }
    }

    async fn order(turns: &[(&'static str, usize)]) -> (Vec<&'static str>, Vec<String>) {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let plans = turns
            .iter()
            .map(|(who, turns)| ProbePlan {
                turns: *turns,
                probe: Box::new(CallRecorder(who, Rc::clone(&seen))),
            })
            .collect();
        let failures = run(plans, &mut Samples::default()).await;
        (Rc::try_unwrap(seen).unwrap().into_inner(), failures)
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
