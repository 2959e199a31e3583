//! Installed packages are locked: each package by its hash, from no registry by name.

use serde_json::Value;

use crate::place::folder;

fn read(language: &str, file: &str) -> String {
    std::fs::read_to_string(folder(language).join(file)).unwrap()
}

#[test]
fn everything_that_is_asked_for_is_locked_with_a_hash_and_from_no_registry_by_name() {
    for environment in ["python", "frameworks/mcp1", "frameworks/mcp2"] {
        let locked = read(environment, "requirements.txt");
        for wanted in read(environment, "requirements.in").lines() {
            // The locked line has the name without extras.
            let (name, version) = wanted.split_once("==").unwrap();
            let name = name.split('[').next().unwrap();
            assert!(
                locked.contains(&format!("{name}=={version} \\\n    --hash=sha256:")),
                "{wanted}"
            );
        }
        let names = locked.lines().filter(|line| line.contains("==")).count();
        let hashed = locked.matches(" \\\n    --hash=sha256:").count();
        assert!(
            names > 10 && hashed >= names,
            "{hashed} hashes of {names} packages"
        );
        assert!(!locked.contains("://"), "an index by name");
    }

    let lock: Value = serde_json::from_str(&read("node", "package-lock.json")).unwrap();
    let project: Value = serde_json::from_str(&read("node", "package.json")).unwrap();
    let packages = lock["packages"].as_object().unwrap();
    for (name, version) in project["dependencies"].as_object().unwrap() {
        assert_eq!(&packages[&format!("node_modules/{name}")]["version"], version);
    }
    for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
        let integrity = package["integrity"].as_str().unwrap_or_default();
        assert!(integrity.starts_with("sha512-"), "{path}");
        assert_eq!(package.get("resolved"), None, "{path}");
    }
}
