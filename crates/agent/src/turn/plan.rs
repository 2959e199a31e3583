//! The plan of a turn, and its budget.

use serde::{Deserialize, Serialize};

/// Whether a chart belongs to the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChartIntent {
    /// No chart.
    #[default]
    None,
    /// A chart would help.
    Implicit,
    /// The user requested one: an answer without it has a gap.
    Explicit,
}

/// The plan of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Whether a chart belongs to the answer.
    pub chart_intent: ChartIntent,
}

/// The budget of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    /// Maximum number of model calls.
    pub(super) steps: u32,
    /// Additional model calls if a chart was requested: to fetch, draw, and repair it.
    pub(super) chart_boost: u32,
    /// Maximum number of artifacts in an answer; the latest are kept.
    pub(super) artifacts: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            steps: 10,
            chart_boost: 4,
            artifacts: cellblock_interpreter::contract::MAX_ARTIFACTS,
        }
    }
}

impl Budget {
    /// Returns the maximum number of model calls for a plan.
    pub(super) const fn allowed(&self, plan: Plan) -> u32 {
        match plan.chart_intent {
            ChartIntent::Explicit => self.steps.saturating_add(self.chart_boost),
            ChartIntent::None | ChartIntent::Implicit => self.steps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_requested_chart_raises_the_budget() {
        let allowed = |chart_intent| Budget::default().allowed(Plan { chart_intent });
        assert_eq!(allowed(ChartIntent::None), 10);
        assert_eq!(allowed(ChartIntent::Implicit), 10);
        assert_eq!(allowed(ChartIntent::Explicit), 14);
    }

    #[test]
    fn a_plan_is_read_as_it_is_written_down() {
        let plan: Plan = serde_json::from_str(r#"{"chartIntent": "explicit"}"#).unwrap();
        assert_eq!(plan.chart_intent, ChartIntent::Explicit);
    }
}
