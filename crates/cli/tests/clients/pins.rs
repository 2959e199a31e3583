//! The clients that are documented are those that are installed.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::process::folder;

/// Names of packages with their versions.
type Pins = BTreeSet<(String, String)>;

fn read(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Returns the dependencies of a project of npm.
fn npm(place: &str) -> Pins {
    let project: Value = serde_json::from_str(&read(&folder(place).join("package.json"))).unwrap();
    let wanted = project["dependencies"].as_object().unwrap().iter();
    wanted
        .map(|(name, version)| (name.clone(), version.as_str().unwrap().to_owned()))
        .collect()
}

/// The folders of what is asked of Python's index.
const PYTHON: [&str; 2] = ["python", "python/openai2"];

/// Returns the packages that a folder requires from Python's index, or has locked.
fn python(place: &str, file: &str) -> Pins {
    let text = read(&folder(place).join(file));
    text.lines()
        .filter_map(|line| line.trim_end_matches(" \\").split_once("=="))
        .map(|(name, version)| {
            let version = version.split([' ', ';']).next().unwrap_or_default();
            (name.to_owned(), version.to_owned())
        })
        .collect()
}

/// The folders of clients of other protocols. They also ask for what these import.
const DIALECTS: [&str; 6] = [
    "anthropic",
    "dialects/e2b",
    "dialects/jupyter",
    "dialects/librechat",
    "dialects/open_webui",
    "dialects/opensandbox",
];

/// The first two columns of the page's first two tables.
fn documented() -> [Pins; 2] {
    let page = cellblock_testkit::workspace_root().join("docs/compatibility.md");
    let text = read(&page);
    let mut tables = text.split("| package |").skip(1).map(|table| {
        let rows = table.split("\n\n").next().unwrap().lines();
        rows.filter_map(|line| line.strip_prefix("| `"))
            .map(|row| {
                let (name, rest) = row.split_once("` | ").unwrap();
                (name.to_owned(), rest.split(" |").next().unwrap().to_owned())
            })
            .collect()
    });
    [tables.next().unwrap(), tables.next().unwrap()]
}

#[test]
fn the_documented_versions_are_those_that_are_pinned() {
    let [clients, dialects] = documented();
    let mut pinned = npm("node");
    pinned.extend(PYTHON.iter().flat_map(|place| python(place, "requirements.in")));
    assert_eq!(clients, pinned);

    let pinned: Pins = DIALECTS
        .iter()
        .flat_map(|place| {
            let has = |file: &str| folder(place).join(file).exists();
            let files = ["requirements.in", "wheel.txt"]
                .into_iter()
                .filter(|file| has(file));
            let mut pins: Pins = files.flat_map(|file| python(place, file)).collect();
            if has("package.json") {
                pins.extend(npm(place));
            }
            pins
        })
        .collect();
    assert_eq!(
        dialects.difference(&pinned).collect::<Vec<_>>(),
        Vec::<&(String, String)>::new()
    );
}

#[test]
fn everything_that_is_asked_for_is_locked_with_a_hash_and_from_no_registry_by_name() {
    for place in PYTHON {
        let locked = read(&folder(place).join("requirements.txt"));
        assert!(python(place, "requirements.in").is_subset(&python(place, "requirements.txt")));
        let names = locked
            .lines()
            .filter(|line| line.contains("==") && !line.starts_with(' '))
            .count();
        let hashed = locked.matches(" \\\n    --hash=sha256:").count();
        assert!(
            names > 10 && hashed >= names,
            "{place}: {hashed} hashes of {names} packages"
        );
    }

    let lock: Value = serde_json::from_str(&read(&folder("node").join("package-lock.json"))).unwrap();
    let packages = lock["packages"].as_object().unwrap();
    for (name, version) in npm("node") {
        assert_eq!(packages[&format!("node_modules/{name}")]["version"], version);
    }
    for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
        assert!(
            package["integrity"].as_str().unwrap().starts_with("sha512-"),
            "{path}"
        );
        assert_eq!(package.get("resolved"), None, "{path}");
    }
}
