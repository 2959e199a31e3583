//! A probe as a file: the sentence that it tests, its header, and its code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellblock_interpreter::limits::Limits;

/// The groups, as the folders are named.
pub(crate) const GROUPS: [&str; 9] = [
    "descriptors",
    "exhaustion",
    "files",
    "host",
    "information",
    "kernel",
    "network",
    "privileges",
    "processes",
];

/// A program that tries one thing.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// `group/name`.
    pub(crate) name: String,
    pub(crate) group: String,
    /// Sentence that it shows when it holds.
    pub(crate) sentence: String,
    pub(crate) code: String,
    /// Limits of its session; those of the pool by default.
    pub(crate) limits: Option<Limits>,
    /// Maximum time of its cell.
    pub(crate) time: Duration,
    /// Ends that its cell may have when the sandbox holds and the probe itself cannot say so.
    pub(crate) ends: Vec<String>,
    /// The names of the files that are collected after it.
    pub(crate) delivers: Option<Vec<String>>,
    /// Published class of failures that it represents.
    pub(crate) covers: String,
    /// Reason that it reaches nothing without a sandbox either.
    pub(crate) uncontained: Option<String>,
    /// Reason that it is known to reach its target, until somebody repairs it.
    pub(crate) residue: Option<String>,
    /// Reason that it is known to reach its target over another backend, by the backend's name.
    pub(crate) walls: BTreeMap<String, String>,
    /// Reason that it cannot hold for an ordinary user.
    pub(crate) ordinary: Option<String>,
    /// Effects that others could notice: it stands while they are looked at.
    pub(crate) neighbors: Option<String>,
    /// Reason that others notice it if sandboxes share a user id with them.
    pub(crate) shared_user: Option<String>,
    /// A further form of the backend in which it is run.
    pub(crate) also: Option<String>,
}

/// The suite's folder.
pub(crate) fn folder() -> PathBuf {
    // The second run, as an ordinary user, has a copy.
    std::env::var_os("CELLBLOCK_TEST_PROBES").map_or_else(
        || cellblock_testkit::workspace_root().join("tests/containment"),
        PathBuf::from,
    )
}

/// Every probe, in the order of their names.
pub(crate) fn all() -> Vec<Probe> {
    let read = |group: &'static str| {
        let paths = python_files(&folder().join("probes").join(group));
        paths.into_iter().map(move |path| Probe::read(group, &path))
    };
    GROUPS.into_iter().flat_map(read).collect()
}

/// Those to run: all, or those whose names begin with one of what `CELLBLOCK_PROBES` lists,
/// separated by commas.
pub(crate) fn chosen() -> Vec<Probe> {
    let start = std::env::var("CELLBLOCK_PROBES").unwrap_or_default();
    let mut probes = all();
    probes.retain(|probe| start.split(',').any(|start| probe.name.starts_with(start)));
    assert!(!probes.is_empty(), "no probe begins with `{start}`");
    probes
}

/// The Python files of a folder, sorted.
pub(crate) fn python_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    paths.sort();
    paths
}

impl Probe {
    fn read(group: &str, path: &Path) -> Self {
        let name = format!("{group}/{}", path.file_stem().unwrap().display());
        let code = fs::read_to_string(path).unwrap();
        let sentence = code
            .lines()
            .next()
            .unwrap_or_default()
            .trim_matches('"')
            .to_owned();
        let mut header = header(&name, &code);
        let mut take = |key: &str| header.remove(key);
        let probe = Self {
            limits: take("limits").map(|text| {
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: limits: {error}"))
            }),
            time: Duration::from_secs_f64(take("time").map_or(60.0, |text| text.parse().unwrap())),
            ends: list(take("ends"), " | "),
            delivers: take("delivers").map(|text| list(Some(text), " ")),
            covers: take("covers").unwrap_or_default(),
            uncontained: take("uncontained"),
            residue: take("residue"),
            walls: ["gvisor", "microvm"]
                .into_iter()
                .filter_map(|backend| Some((backend.to_owned(), take(backend)?)))
                .collect(),
            ordinary: take("ordinary"),
            neighbors: take("neighbors"),
            shared_user: take("shared_user"),
            also: take("also"),
            group: group.to_owned(),
            sentence,
            code,
            name,
        };
        assert!(header.is_empty(), "{}: unknown header {header:?}", probe.name);
        probe
    }

    /// Returns the reason that it is known to reach its target over a backend.
    pub(crate) fn residue(&self, backend: &str) -> Option<&str> {
        let known = match backend {
            "gvisor" | "microvm" => self.walls.get(backend),
            _ => self.residue.as_ref(),
        };
        known.map(String::as_str)
    }

    /// Returns the reason that it is not run over a backend.
    pub(crate) fn unfit(&self, backend: &str) -> Option<&str> {
        self.residue(backend)?.strip_prefix("not run: ")
    }

    /// Whether its cell may do harm to its session, so that what comes after it is looked at as well.
    pub(crate) fn is_dangerous(&self) -> bool {
        !self.ends.is_empty()
    }
}

fn list(text: Option<String>, separator: &str) -> Vec<String> {
    let text = text.unwrap_or_default();
    text.split(separator)
        .filter(|part| !part.is_empty() && *part != "nothing")
        .map(str::to_owned)
        .collect()
}

/// The `# key: value` lines between the docstring and the code.
pub(crate) fn header(name: &str, code: &str) -> BTreeMap<String, String> {
    let start = code
        .match_indices("\"\"\"")
        .nth(1)
        .unwrap_or_else(|| panic!("{name}: no docstring"))
        .0;
    let lines = code[start + 3..].lines().skip_while(|line| line.is_empty());
    lines
        .map_while(|line| line.strip_prefix("# ")?.split_once(": "))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn there_are_at_least_120_probes_and_no_group_is_empty() {
    let probes = all();
    assert!(probes.len() >= 120, "{} probes", probes.len());
    for group in GROUPS {
        assert!(
            probes.iter().any(|probe| probe.group == group),
            "{group} is empty"
        );
    }
    let folders = fs::read_dir(folder().join("probes")).unwrap();
    let unknown: Vec<_> = folders
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|folder| !GROUPS.contains(&folder.as_str()))
        .collect();
    assert!(unknown.is_empty(), "folders that are no group: {unknown:?}");
}

#[test]
fn every_probe_says_what_it_tests_and_what_it_covers() {
    let mut sentences = std::collections::BTreeSet::new();
    for probe in all() {
        let Probe { name, sentence, .. } = &probe;
        assert!(
            sentence.ends_with('.') && sentence.len() > 20,
            "{name}: {sentence:?}"
        );
        assert!(
            sentences.insert(sentence.clone()),
            "{name}: {sentence:?} is tested twice"
        );
        assert!(probe.covers.len() > 5, "{name} covers nothing");
        let also = probe.also.as_deref();
        assert!(
            also.is_none_or(|also| also == "without namespaces"),
            "{name}: {also:?}"
        );
        for reason in probe
            .uncontained
            .iter()
            .chain(&probe.ordinary)
            .chain(&probe.neighbors)
            .chain(&probe.shared_user)
            .chain(&probe.residue)
            .chain(probe.walls.values())
        {
            assert!(reason.len() > 20, "{name}: {reason:?} is no reason");
        }
    }
}
