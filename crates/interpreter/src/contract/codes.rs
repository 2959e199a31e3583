//! The codes of a contract's rejections: stable names, in one table.

/// Time at which a mistake is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContractStage {
    /// Before Python starts.
    Before,
    /// After the cell ended.
    After,
}

impl ContractStage {
    /// Returns its name in the reference.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// One kind of mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContractCode {
    /// Stable name.
    pub name: &'static str,
    /// Time at which it is found.
    pub stage: ContractStage,
    /// Description of the mistake.
    pub means: &'static str,
}

pub(super) const MISSING_CONTRACT: &str = "missing_contract";
pub(super) const MISSING_FIELD: &str = "missing_field";
pub(super) const EMPTY_FIELD: &str = "empty_field";
pub(super) const WRONG_TYPE: &str = "wrong_type";
pub(super) const TOO_LONG: &str = "too_long";
pub(super) const NO_TOOL_RESULTS: &str = "no_tool_results";
pub(super) const UNKNOWN_ALIAS: &str = "unknown_alias";
pub(super) const UNUSABLE_ALIAS: &str = "unusable_alias";
pub(super) const UNKNOWN_ARTIFACT_KIND: &str = "unknown_artifact_kind";
pub(super) const DUPLICATE: &str = "duplicate";
pub(super) const INPUTS_REQUIRED: &str = "inputs_required";
pub(super) const INVALID_NAME: &str = "invalid_name";
pub(super) const RESERVED_NAME: &str = "reserved_name";
pub(super) const NAME_TAKEN: &str = "name_taken";
/// A call after the last attempt, which was not run.
pub const ATTEMPTS_EXHAUSTED: &str = "attempts_exhausted";
pub(super) const ARTIFACT_NOT_EMITTED: &str = "artifact_not_emitted";
pub(super) const ARTIFACT_NOT_DECLARED: &str = "artifact_not_declared";
pub(super) const WRONG_ARTIFACT_KIND: &str = "wrong_artifact_kind";
pub(super) const TOO_MANY_ARTIFACTS: &str = "too_many_artifacts";

/// Every code with its meaning, in the order of the reference.
pub const CODES: &[ContractCode] = &[
    before(MISSING_CONTRACT, "the call declares no contract at all"),
    before(MISSING_FIELD, "a required field is absent"),
    before(EMPTY_FIELD, "a field is empty: a blank text, or no input alias"),
    before(WRONG_TYPE, "a field has the wrong JSON type"),
    before(TOO_LONG, "a text or list is too long"),
    before(
        NO_TOOL_RESULTS,
        "no alias is declared, and nothing has been fetched yet: call a tool first",
    ),
    before(UNKNOWN_ALIAS, "no tool result of this turn has that alias"),
    before(
        UNUSABLE_ALIAS,
        "the alias cannot be a Python global; it needs a local name in `inputs`",
    ),
    before(UNKNOWN_ARTIFACT_KIND, "neither `image` nor `chart`"),
    before(DUPLICATE, "a list contains the same entry twice"),
    before(
        INPUTS_REQUIRED,
        "the policy requires `inputs`, and the map is empty",
    ),
    before(INVALID_NAME, "a local name is not a valid Python identifier"),
    before(
        RESERVED_NAME,
        "a local name is a keyword, a builtin, a helper or a name of the prelude",
    ),
    before(NAME_TAKEN, "a local name is the alias of another value"),
    before(
        ATTEMPTS_EXHAUSTED,
        "too many calls in a row failed; Python is not started again in this turn",
    ),
    after(ARTIFACT_NOT_EMITTED, "an artifact was declared but not emitted"),
    after(ARTIFACT_NOT_DECLARED, "an artifact was emitted but not declared"),
    after(
        WRONG_ARTIFACT_KIND,
        "an artifact of a different kind was emitted than declared",
    ),
    after(
        TOO_MANY_ARTIFACTS,
        "more artifacts were emitted than one call may emit",
    ),
];

const fn before(name: &'static str, means: &'static str) -> ContractCode {
    ContractCode {
        name,
        stage: ContractStage::Before,
        means,
    }
}

const fn after(name: &'static str, means: &'static str) -> ContractCode {
    ContractCode {
        name,
        stage: ContractStage::After,
        means,
    }
}
