//! Checks a contract before Python starts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::codes::{
    DUPLICATE, EMPTY_FIELD, MISSING_CONTRACT, NO_TOOL_RESULTS, UNKNOWN_ARTIFACT_KIND, UNUSABLE_ALIAS,
};
use super::fields::{required, strings, text, wrong_type};
use super::found::Mistakes;
use super::wording::{plain, quote, unknown_alias, with_aliases};
use super::{ArtifactKind, Contract, ContractPolicy, KnownAliases, inputs, is_identifier, reserved};
use crate::rejection::Rejection;

/// Maximum number of characters of `operation` and of `reason`.
const LONGEST_TEXT: usize = 2000;

const FIELDS: [&str; 4] = ["operation", "reason", "inputAliases", "expectedArtifacts"];
const A_CONTRACT: &str = "an object with `operation`, `reason`, `inputAliases` and `expectedArtifacts`, \
                          such as {\"operation\": \"sum the balances per day\", \
                          \"reason\": \"the tool returns them per account\", \
                          \"inputAliases\": [\"get_balances_1\"], \"expectedArtifacts\": [\"image\"]}";
const AN_OPERATION: &str = "a short text that says what is computed";
const A_REASON: &str = "a short text that says why code has to compute it";
const ALIASES: &str = "an array of the aliases of the tool results that the cell derives from";
const KINDS: &str =
    "an array of the artifact kinds that the cell emits: \"image\", \"chart\", or none at all ([])";

/// The part of a call that is checked before Python starts.
#[derive(Clone, Copy, Debug)]
pub struct ContractCall<'a> {
    /// The given contract; null if there is none.
    pub contract: &'a Value,
    /// Local names of aliases.
    pub inputs: &'a BTreeMap<String, String>,
}

/// Parses a call's contract and checks it together with the call's inputs. Returns all mistakes in
/// the order of the fields, at most 20 rejections. Unknown fields are ignored.
pub fn check_before(
    call: &ContractCall<'_>,
    known: &KnownAliases,
    policy: &ContractPolicy,
) -> Result<Contract, Vec<Rejection>> {
    let mut found = Mistakes::default();
    let contract = read(call, known, &mut found);
    inputs::check(call.inputs, known, policy, &mut found);
    let found = found.all();
    match contract {
        Some(contract) if found.is_empty() => Ok(contract),
        _ => Err(found),
    }
}

fn read(call: &ContractCall<'_>, known: &KnownAliases, found: &mut Mistakes) -> Option<Contract> {
    let fields = match call.contract {
        Value::Object(fields) => fields,
        Value::Null => {
            let message = format!("the call has no `postProcessingContract`; add {A_CONTRACT}");
            found.add(Rejection::of_field(
                MISSING_CONTRACT,
                "postProcessingContract",
                message,
            ));
            return None;
        }
        other => {
            found.add(wrong_type("postProcessingContract", A_CONTRACT, other));
            return None;
        }
    };
    let operation = sentence(fields, "operation", AN_OPERATION, found);
    let reason = sentence(fields, "reason", A_REASON, found);
    let input_aliases = aliases(fields, call.inputs, known, found);
    let expected_artifacts = kinds(fields, found);
    Some(Contract {
        operation: operation?,
        reason: reason?,
        input_aliases: input_aliases?,
        expected_artifacts: expected_artifacts?,
    })
}

fn sentence(fields: &Map<String, Value>, name: &str, needs: &str, found: &mut Mistakes) -> Option<String> {
    let value = required(fields, name, needs, &FIELDS, found)?;
    text(name, value, needs, LONGEST_TEXT, found)
}

fn aliases(
    fields: &Map<String, Value>,
    inputs: &BTreeMap<String, String>,
    known: &KnownAliases,
    found: &mut Mistakes,
) -> Option<Vec<String>> {
    let name = "inputAliases";
    let value = required(fields, name, ALIASES, &FIELDS, found)?;
    if matches!(value, Value::Array(items) if items.is_empty()) {
        found.add(nothing_declared(name, known));
        return None;
    }
    let mut declared = BTreeSet::new();
    let mut order = Vec::new();
    let is_list = strings(name, value, ALIASES, found, |field, alias, found| {
        if !declared.insert(alias) {
            found.add(twice(field, alias));
        } else if !known.contains(alias) {
            found.add(unknown_alias(field, alias, known));
        } else if !can_be_a_global(alias) && !inputs.values().any(|bound| bound == alias) {
            found.add(unusable(field, alias));
        } else {
            order.push(alias.to_owned());
        }
    });
    is_list.then_some(order)
}

/// Rejects an empty list: code derives from fetched data, and data comes from tools.
fn nothing_declared(name: &str, known: &KnownAliases) -> Rejection {
    let code = if known.is_empty() {
        NO_TOOL_RESULTS
    } else {
        EMPTY_FIELD
    };
    let message = format!(
        "`{name}` is empty, but the interpreter only derives from data that a tool has fetched; name what \
         the code reads"
    );
    with_aliases(Rejection::of_field(code, name, message), "", known)
}

fn can_be_a_global(alias: &str) -> bool {
    is_identifier(alias) && reserved(alias).is_none()
}

fn unusable(field: String, alias: &str) -> Rejection {
    let why = match reserved(alias) {
        Some(reserved) => reserved.describe(),
        None => "not a Python identifier",
    };
    let message = format!(
        "the alias {} is {why} and cannot be a variable; give it a local name, such as \
         `inputs`: {{\"source\": \"{}\"}}",
        quote(alias),
        plain(alias)
    );
    Rejection::of_field(UNUSABLE_ALIAS, field, message)
}

fn kinds(fields: &Map<String, Value>, found: &mut Mistakes) -> Option<Vec<ArtifactKind>> {
    let name = "expectedArtifacts";
    let value = required(fields, name, KINDS, &FIELDS, found)?;
    let mut kinds = Vec::new();
    let is_list = strings(
        name,
        value,
        KINDS,
        found,
        |field, given, found| match ArtifactKind::of_name(given) {
            Some(kind) if kinds.contains(&kind) => found.add(twice(field, given)),
            Some(kind) => kinds.push(kind),
            None => found.add(unknown_kind(field, given)),
        },
    );
    is_list.then_some(kinds)
}

fn unknown_kind(field: String, given: &str) -> Rejection {
    let message = format!(
        "{} is not a kind of artifact; use \"image\" for a figure saved with save_figure, \"chart\" for \
         one emitted with render_chart, or [] when the cell only computes",
        quote(given)
    );
    Rejection::of_field(UNKNOWN_ARTIFACT_KIND, field, message)
        .with_valid(ArtifactKind::ALL.map(ArtifactKind::name))
}

fn twice(field: String, given: &str) -> Rejection {
    let message = format!("{} is listed twice; list it once", quote(given));
    Rejection::of_field(DUPLICATE, field, message)
}
