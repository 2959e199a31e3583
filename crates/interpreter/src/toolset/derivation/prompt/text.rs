//! The sentences of the prompt.

use super::{ArtifactKind, CODE_INTERPRETER, PromptSettings, RENDER_CHART};

/// Imports that Python must not try: the sandbox has no network anyway.
pub(super) const BAN: &str = "Never import anything that fetches from a network, such as `requests`, \
                              `urllib`, `urllib3`, `httpx`, `aiohttp`, `yfinance`, `http.client`, \
                              `ftplib` or `socket`, and never run a program that does. The sandbox has no \
                              network: such code fails and costs an attempt. Nothing can \
                              be installed either.";

/// A call's contract.
pub(super) const EXAMPLE: &str = r#"{
  "intent": "net change of all balances per day",
  "code": "changes = derive_change_series(balances, freq='D')\nset_result(changes.reset_index())",
  "inputs": {"balances": "get_balances_1"},
  "postProcessingContract": {
    "operation": "sum the balances per day and take the change",
    "reason": "the tool returns them per account",
    "inputAliases": ["get_balances_1"],
    "expectedArtifacts": []
  }
}"#;

/// Rules for computing and reporting changes of populations.
pub(super) const CHANGE_RULES: &str = "### Totals, changes and flows

- A total, a net change, a flow, a threshold or a regime over many entities is over the whole \
population that was asked for. A top-N, a selection or a readable subset is for display only and \
never defines the number, unless the user asked for that subset: pass it as `selected=`, which \
leaves the totals alone.
- Only entities observed in both adjacent periods can have flowed. An entity that is first listed, \
is delisted, or has a gap and resumes moves the total without any flow. Use `derive_change_series` \
instead of a sum and a difference.
- The headline of a flow is `stable_entities_change`. Show `coverage_change`, with the counts of \
entering and exiting entities, as an annotated layer: never as a bar of the flow, never left out. \
`total_change == stable_entities_change + coverage_change` in every period.
- Normalising timestamps is part of the metric. After flooring to a coarser bucket, aggregate what \
falls into one bucket by an explicit policy (`duplicates=`) before computing changes. Do not use \
`drop_duplicates(keep=\"first\")` or `dropna()` for that: a null placeholder may stand before the \
real sample.
- For a level (inventory, balance, reserve, holdings, open interest, supply) a positive change is \
a net flow into it, a negative one a net flow out of it. Turn the sign only where the source is \
already a flow that states the opposite convention.";

pub(super) fn purpose() -> String {
    format!(
        "## Deriving from data: `{CODE_INTERPRETER}`\n\n\
         `{CODE_INTERPRETER}` runs Python on data that other tools have already fetched: to derive \
         metrics, to merge and reshape, to draw. It is not for getting data. Call it only where the tool \
         results do not hold the answer as they are.\n\n\
         `{RENDER_CHART}` draws a structured chart directly from one tool result, without Python. Use it \
         where the rows are ready as they are."
    )
}

pub(super) const DATA_FLOW: &str = "### Data flow\n\nData flows in one direction.\n\n\
                                    1. Call the tools that fetch. Each result is kept whole under an \
                                    alias, `<tool>_<n>`, such as `get_balances_1`. What you reread of it \
                                    may be shortened; the alias always has all of it.\n\
                                    2. In the code every alias is a global variable and an entry of \
                                    `inputs`, holding the Python value of the result's JSON. Use it \
                                    directly; do not copy data into the code.\n\
                                    3. Compute. Call `save_figure` or `render_chart` where a visual is \
                                    needed, and end with `set_result(value)`.\n\
                                    4. Stdout, the result and the artifacts come back; the result gets an \
                                    alias too. Variables and files stay for later calls of the turn, and \
                                    are gone after it.";

pub(super) const HELPERS: &str = "### Helpers\n\nThey are there without an import.\n\n\
                                  - `set_result(value)`: the call's result, JSON-serialisable; pandas, \
                                  numpy, dates and decimals are converted. The last call counts.\n\
                                  - `save_figure(alt, title=None, fig=None)`: emits the current \
                                  matplotlib figure, or `fig`, as an image. `alt` says what it shows.\n\
                                  - `render_chart(spec, data, title=None, *, alt=None)`: emits a \
                                  structured chart. `spec` is a dict such as \
                                  `{\"type\": \"line\", \"xKey\": \"date\", \
                                  \"series\": [{\"key\": \"total\"}]}`; types: line, bar, area, scatter, composed, histogram, heatmap, \
                                  candlestick. `data` is a list of flat dicts or a data frame.\n\
                                  - `safe_merge_timeseries(*sources, names=None, time_col=None, \
                                  freq=None, how=\"outer\", duplicates=\"last\", tz=\"UTC\")`: one frame \
                                  of several series on common buckets. With `names`, columns are there as \
                                  `<name>_<column>`, and as `<column>` where no other source has it.\n\
                                  - `align_timeseries(*sources, names=None, time_col=None, freq=None, \
                                  how=\"outer\", duplicates=\"last\", tz=\"UTC\", fill=None)`: the same \
                                  sources on one index, each on its own; gaps stay NaN.\n\
                                  - `derive_change_series(data, *, time_col=None, entity_col=None, \
                                  value_col=None, selected=None, freq=None, duplicates=\"last\")`: of a \
                                  wide matrix or long rows, per period `total_value`, `total_change`, \
                                  `stable_entities_change`, `coverage_change`, `entering_entity_count`, \
                                  `exiting_entity_count`; `.attrs[\"coverage_events\"]` names who came \
                                  and went.\n\n\
                                  All three floor timestamps to buckets, aggregate duplicates by policy, \
                                  and report what they notice with the result.";

pub(super) fn limits(settings: &PromptSettings<'_>) -> String {
    let kinds: Vec<_> = ArtifactKind::ALL.iter().map(|kind| kind.name()).collect();
    let drawn = kinds.join(" or ");
    format!(
        "### Limits\n\n- One call may run {} seconds.\n\
         - After {} failed calls in a row the tool is taken away for the rest of the turn.\n\
         - A line that covers only a small part of its axis is reported: repair the data or the range \
         before answering.\n\
         - If something cannot be derived or no {drawn} can be made, say so in the answer. Never invent a \
         number, and never describe a visual that was not emitted.",
        settings.cell_seconds, settings.max_attempts
    )
}
