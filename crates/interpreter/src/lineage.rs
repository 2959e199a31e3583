//! Origins of variables: which producer made them, and from which fetched data.
//!
//! ```text
//! origin(name) = { producer, cell, data that the cell fetched }
//!              ∪ data behind every variable that the cell read
//! ```
//!
//! A cell with a [producer](crate::Cell::produced_by) that completes stamps the variables that it
//! binds or changes. A cell without one is scratch work: it stamps nothing, but what it binds or
//! changes is no longer what the producer made, and is marked.
//!
//! Which data was fetched is what the host saw. The names are what the kernel says of them, so code
//! that wants to can disguise which of its variables holds which data, within one session.

use std::collections::{BTreeMap, BTreeSet};

use cellblock_artifact::ArtifactId;
use cellblock_protocol::CellNames;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{Error, Result};

/// Maximum number of variables with an origin.
const MAX_VARIABLES: usize = 10_000;
/// Maximum number of references of one origin.
const MAX_REFERENCES: usize = 1_000;
/// Maximum number of references that a cell stamps on all its variables together, since each
/// variable has a copy of its own.
const MAX_STAMPED: usize = 20_000;
/// Maximum number of names of a kind that a cell may report.
const MAX_NAMES: usize = 2_000;
/// Maximum length of such a name in bytes.
const MAX_NAME_BYTES: usize = 800;
/// Maximum length of the name of a producer.
const MAX_PRODUCER_CHARS: usize = 1_000;

/// Origin of a variable's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VariableOrigin {
    /// The producer of the cell that bound or changed it last, such as `notebooks/analysis.py`.
    pub producer: String,
    /// The number of that cell.
    pub cell: u64,
    /// The calls whose answers it is made from, as `connector.function({"argument":1}) at TIME`,
    /// sorted; at most 1,000, and fewer if its cell bound more than 20 variables.
    pub fetches: BTreeSet<String>,
    /// The sha256 of the stored tables of these calls; as many at most.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub artifacts: BTreeSet<ArtifactId>,
    /// Datasets that it is made from, as `slug@sha256`; as many at most.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub loads: BTreeSet<String>,
    /// Whether it, or a variable that it is made from, was bound or changed afterwards by a cell
    /// that has no producer or did not complete.
    pub rebound_by_scratch: bool,
}

/// Checks the name of a producer that somebody sent.
pub fn producer(name: String) -> Result<String> {
    let chars = name.chars().count();
    if chars == 0 || chars > MAX_PRODUCER_CHARS || name.chars().any(char::is_control) {
        return Err(Error::Argument {
            name: "producer",
            missing: false,
            reason: format!(
                "it has {chars} characters; give 1 to {MAX_PRODUCER_CHARS} without control characters, \
                 such as `notebooks/analysis.py`"
            ),
        });
    }
    Ok(name)
}

/// Returns why a variable that exists has no origin.
pub fn no_origin(name: &str) -> String {
    format!(
        "the variable `{name}` has no origin: it is scratch work, because no completed cell with a \
         `producer` has bound or changed it; functions, modules, inputs and names that begin with `_` \
         never have one"
    )
}

/// The origins of a session's variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(BTreeMap<String, VariableOrigin>);

/// A cell that has ended.
#[derive(Debug)]
pub(crate) struct EndedCell<'a> {
    pub(crate) number: u64,
    /// Producer of the cell.
    pub(crate) producer: Option<&'a str>,
    pub(crate) completed: bool,
    /// Effects of the cell on variables.
    pub(crate) names: CellNames,
    /// References of the data that it fetched.
    pub(crate) fetches: BTreeSet<String>,
    /// The stored tables among it.
    pub(crate) artifacts: BTreeSet<ArtifactId>,
    /// The datasets that it loaded.
    pub(crate) loads: BTreeSet<String>,
}

impl Ledger {
    /// Tells whether the next cell must report its names.
    pub(crate) fn needs_names(&self, producer: Option<&str>) -> bool {
        producer.is_some() || !self.0.is_empty()
    }

    /// Returns the origins by the names of their variables.
    pub(crate) fn origins(&self) -> &BTreeMap<String, VariableOrigin> {
        &self.0
    }

    /// Returns the stored tables behind some variables, in addition to these.
    pub(crate) fn artifacts_behind(
        &self,
        names: &[String],
        mut artifacts: BTreeSet<ArtifactId>,
    ) -> BTreeSet<ArtifactId> {
        for origin in names.iter().filter_map(|name| self.0.get(name)) {
            include(&mut artifacts, &origin.artifacts, MAX_REFERENCES);
        }
        artifacts
    }

    /// Forgets everything, because the variables are gone.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Enters what a cell did, and returns the new origins.
    pub(crate) fn enter(&mut self, mut cell: EndedCell<'_>) -> BTreeMap<String, VariableOrigin> {
        clean(&mut cell.names);
        let stamped = match cell.producer {
            Some(producer) if cell.completed => self.stamp(producer, &cell),
            _ => {
                for name in cell.names.assigned.iter().chain(&cell.names.changed) {
                    if let Some(origin) = self.0.get_mut(name) {
                        origin.rebound_by_scratch = true;
                    }
                }
                BTreeMap::new()
            }
        };
        for name in &cell.names.deleted {
            self.0.remove(name);
        }
        for (name, origin) in &stamped {
            if self.0.len() < MAX_VARIABLES || self.0.contains_key(name) {
                self.0.insert(name.clone(), origin.clone());
            }
        }
        stamped
    }

    fn stamp(&self, producer: &str, cell: &EndedCell<'_>) -> BTreeMap<String, VariableOrigin> {
        let read = cell.names.read.iter().filter_map(|name| self.0.get(name));
        let stamped = cell.names.assigned.len() + cell.names.changed.len();
        let room = MAX_REFERENCES.min(MAX_STAMPED / stamped.max(1));
        let mut of_cell = VariableOrigin {
            producer: producer.to_owned(),
            cell: cell.number,
            fetches: cell.fetches.iter().take(room).cloned().collect(),
            artifacts: cell.artifacts.iter().take(room).copied().collect(),
            loads: cell.loads.iter().take(room).cloned().collect(),
            rebound_by_scratch: false,
        };
        for origin in read {
            of_cell.include(origin, room);
        }
        let assigned = cell.names.assigned.iter();
        let assigned = assigned.map(|name| (name.clone(), of_cell.clone()));
        // What is changed in place keeps what it was made from.
        let changed = cell.names.changed.iter().map(|name| {
            let mut origin = of_cell.clone();
            if let Some(before) = self.0.get(name) {
                origin.include(before, room);
            }
            (name.clone(), origin)
        });
        assigned.chain(changed).collect()
    }
}

/// Drops what is not a name, and what exceeds the maximum: a hostile kernel may send anything.
pub(crate) fn clean(names: &mut CellNames) {
    let CellNames {
        assigned,
        created,
        deleted,
        changed,
        read,
    } = names;
    for names in [assigned, created, deleted, changed, read] {
        names.retain(|name| is_name(name));
        names.truncate(MAX_NAMES);
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES && name.chars().all(|it| it.is_alphanumeric() || it == '_')
}

impl VariableOrigin {
    fn include(&mut self, other: &Self, most: usize) {
        self.rebound_by_scratch |= other.rebound_by_scratch;
        include(&mut self.fetches, &other.fetches, most);
        include(&mut self.artifacts, &other.artifacts, most);
        include(&mut self.loads, &other.loads, most);
    }
}

fn include<T: Ord + Clone>(these: &mut BTreeSet<T>, others: &BTreeSet<T>, most: usize) {
    let room = most.saturating_sub(these.len());
    let missing: Vec<_> = others.difference(these).take(room).cloned().collect();
    these.extend(missing);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn cell<'a>(number: u64, producer: Option<&'a str>, assigned: &[&str], read: &[&str]) -> EndedCell<'a> {
        EndedCell {
            number,
            producer,
            completed: true,
            names: CellNames {
                assigned: owned(assigned),
                read: owned(read),
                ..CellNames::default()
            },
            fetches: BTreeSet::new(),
            artifacts: BTreeSet::new(),
            loads: BTreeSet::new(),
        }
    }

    fn fetching<'a>(number: u64, assigned: &[&str], reference: &str) -> EndedCell<'a> {
        EndedCell {
            fetches: BTreeSet::from([reference.to_owned()]),
            ..cell(number, Some("a.py"), assigned, &[])
        }
    }

    fn fetches(ledger: &Ledger, name: &str) -> Vec<String> {
        let origin = ledger.0.get(name).unwrap();
        origin.fetches.iter().cloned().collect()
    }

    #[test]
    fn an_origin_has_the_data_behind_what_its_cell_read() {
        let mut ledger = Ledger::default();
        ledger.enter(fetching(1, &["gdp"], "f1"));
        ledger.enter(fetching(2, &["cpi"], "f2"));
        let stamped = ledger.enter(cell(3, Some("b.py"), &["real"], &["gdp", "cpi"]));
        assert_eq!(stamped.keys().collect::<Vec<_>>(), ["real"]);
        assert_eq!(fetches(&ledger, "real"), ["f1", "f2"]);
        let origin = ledger.0.get("real").unwrap();
        assert_eq!((origin.producer.as_str(), origin.cell), ("b.py", 3));
        // It is bound anew from nothing.
        ledger.enter(cell(4, Some("b.py"), &["real"], &[]));
        assert_eq!(fetches(&ledger, "real"), [""; 0]);
        assert_eq!(fetches(&ledger, "gdp"), ["f1"]);
    }

    #[test]
    fn a_cell_that_binds_many_names_stamps_fewer_references_on_each() {
        let mut ledger = Ledger::default();
        let names: Vec<String> = (0..MAX_NAMES).map(|number| format!("v{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let stamped = ledger.enter(EndedCell {
            fetches: (0..MAX_REFERENCES).map(|number| number.to_string()).collect(),
            ..cell(1, Some("a.py"), &names, &[])
        });
        let references: usize = stamped.values().map(|origin| origin.fetches.len()).sum();
        assert_eq!((stamped.len(), references), (MAX_NAMES, MAX_STAMPED));
    }

    #[test]
    fn the_tables_behind_variables_are_known_across_cells() {
        let mut ledger = Ledger::default();
        let table = |digits: &str| digits.repeat(32).parse::<ArtifactId>().unwrap();
        for (number, name, digits) in [(1, "a", "aa"), (2, "b", "bb")] {
            ledger.enter(EndedCell {
                artifacts: BTreeSet::from([table(digits)]),
                ..fetching(number, &[name], name)
            });
        }
        ledger.enter(cell(3, Some("c.py"), &["sum"], &["a", "b"]));
        let both = BTreeSet::from([table("aa"), table("bb")]);
        assert_eq!(ledger.0["sum"].artifacts, both);
        assert_eq!(
            ledger.artifacts_behind(&owned(&["sum", "unknown"]), BTreeSet::new()),
            both
        );
        let own = BTreeSet::from([table("bb")]);
        assert_eq!(ledger.artifacts_behind(&owned(&["a"]), own), both);
    }

    #[test]
    fn a_change_in_place_keeps_what_was_there() {
        let mut ledger = Ledger::default();
        ledger.enter(fetching(1, &["df"], "f1"));
        let mut change = fetching(2, &[], "f2");
        change.names.changed = owned(&["df"]);
        ledger.enter(change);
        assert_eq!(fetches(&ledger, "df"), ["f1", "f2"]);
        assert_eq!(ledger.0.get("df").unwrap().cell, 2);
    }

    #[test]
    fn scratch_work_and_failures_mark_what_they_touch_and_what_is_made_of_it() {
        for (producer, completed) in [(None, true), (Some("a.py"), false)] {
            let mut ledger = Ledger::default();
            ledger.enter(fetching(1, &["df", "other"], "f1"));
            let scratch = EndedCell {
                completed,
                ..cell(2, producer, &["df", "new"], &[])
            };
            assert_eq!(ledger.enter(scratch), BTreeMap::new());
            let origin = ledger.0.get("df").unwrap();
            assert!(origin.rebound_by_scratch && origin.cell == 1);
            assert!(!ledger.0.get("other").unwrap().rebound_by_scratch);
            assert_eq!(ledger.0.get("new"), None);
            ledger.enter(cell(3, Some("a.py"), &["sum"], &["df"]));
            assert!(ledger.0.get("sum").unwrap().rebound_by_scratch);
            ledger.enter(cell(4, Some("a.py"), &["df"], &[]));
            assert!(!ledger.0.get("df").unwrap().rebound_by_scratch);
        }
    }

    #[test]
    fn a_deleted_variable_has_no_origin() {
        let mut ledger = Ledger::default();
        ledger.enter(fetching(1, &["df"], "f1"));
        let mut scratch = cell(2, None, &[], &[]);
        scratch.names.deleted = owned(&["df"]);
        ledger.enter(scratch);
        assert_eq!(ledger.0.get("df"), None);
    }

    #[test]
    fn names_are_needed_once_there_is_a_producer() {
        let mut ledger = Ledger::default();
        assert!(!ledger.needs_names(None) && ledger.needs_names(Some("a.py")));
        ledger.enter(fetching(1, &["df"], "f1"));
        assert!(ledger.needs_names(None));
        ledger.clear();
        assert!(!ledger.needs_names(None));
    }

    #[test]
    fn names_that_are_no_names_are_dropped() {
        let mut ledger = Ledger::default();
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        let stamped = ledger.enter(cell(
            1,
            Some("a.py"),
            &["\u{1b}[31m", "a b", &long, "größe_2"],
            &[],
        ));
        assert_eq!(stamped.keys().collect::<Vec<_>>(), ["größe_2"]);
    }

    #[test]
    fn variables_and_references_are_bounded() {
        let mut ledger = Ledger::default();
        let names: Vec<_> = (0..MAX_VARIABLES + 5)
            .map(|number| format!("v{number}"))
            .collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        for (number, some) in (1..).zip(names.chunks(MAX_NAMES)) {
            ledger.enter(cell(number, Some("a.py"), some, &[]));
        }
        assert_eq!(ledger.0.len(), MAX_VARIABLES);
        ledger.enter(cell(9, Some("a.py"), &names, &[]));
        assert_eq!(ledger.0["v0"].cell, 9);
        let many = (0..MAX_REFERENCES).map(|number| format!("f{number}"));
        let mut first = fetching(2, &["v1"], "");
        first.fetches = many.collect();
        ledger.enter(first);
        ledger.enter(fetching(3, &["v2"], "one more"));
        ledger.enter(cell(4, Some("a.py"), &["v3"], &["v1", "v2"]));
        assert_eq!(ledger.0.get("v3").unwrap().fetches.len(), MAX_REFERENCES);
    }
}
