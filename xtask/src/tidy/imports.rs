//! Allowed dependencies: the import table of the architecture, checked against `cargo metadata`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::Violation;

/// Crates of ours that a crate may use, and others that it must not.
struct Rule {
    package: &'static str,
    ours: &'static [&'static str],
    never: &'static [&'static str],
}

const NETWORK: &[&str] = &["axum", "hyper", "reqwest"];
const NO_RUNTIME: &[&str] = &["tokio", "axum", "hyper", "reqwest", "pyo3"];

const RULES: &[Rule] = &[
    Rule {
        package: "cellblock-protocol",
        ours: &[],
        never: NO_RUNTIME,
    },
    Rule {
        package: "cellblock-settings",
        ours: &[],
        never: NO_RUNTIME,
    },
    Rule {
        package: "cellblock-jail",
        ours: &[],
        never: NO_RUNTIME,
    },
    Rule {
        package: "cellblock-guest",
        ours: &["cellblock-protocol", "cellblock-jail"],
        never: NO_RUNTIME,
    },
    Rule {
        package: "cellblock-chart",
        // The list of characters that act, the length of JSON, and the reader of its fields, nothing else.
        ours: &["cellblock-protocol", "cellblock-settings"],
        never: NO_RUNTIME,
    },
    Rule {
        package: "cellblock-artifact",
        // How a build without S3 says so, and the wall clock, nothing else.
        ours: &["cellblock-settings"],
        // Its feature `s3` chooses how the HTTP client of object_store encrypts; it uses none itself.
        never: &["axum", "hyper"],
    },
    Rule {
        package: "cellblock-image",
        // Lists of characters that act and of network policies, how sizes are written, and the wall
        // clock, nothing else.
        ours: &["cellblock-jail", "cellblock-protocol", "cellblock-settings"],
        never: &["axum", "pyo3"],
    },
    Rule {
        package: "cellblock-sandbox",
        // The guest's entry point: one executable is shipped, which re-executes itself as the guest.
        ours: &[
            "cellblock-protocol",
            "cellblock-jail",
            "cellblock-guest",
            "cellblock-settings",
        ],
        never: NETWORK,
    },
    Rule {
        package: "cellblock-remote",
        ours: &["cellblock-image", "cellblock-sandbox", "cellblock-protocol"],
        never: NETWORK,
    },
    Rule {
        package: "cellblock-kubernetes",
        // Claiming pods; what is in them is used over the remote protocol.
        ours: &["cellblock-protocol", "cellblock-remote", "cellblock-sandbox"],
        never: &["axum", "reqwest"],
    },
    Rule {
        package: "cellblock-walls",
        // The guest's other entry point: the process that owns a machine.
        ours: &[
            "cellblock-guest",
            "cellblock-image",
            "cellblock-jail",
            "cellblock-protocol",
            "cellblock-remote",
            "cellblock-sandbox",
        ],
        // Firecracker is controlled by HTTP over a Unix socket, for which hyper is enough.
        never: &["axum", "reqwest"],
    },
    Rule {
        package: "cellblock-interpreter",
        ours: &[
            "cellblock-image",
            "cellblock-sandbox",
            "cellblock-walls",
            "cellblock-remote",
            "cellblock-protocol",
            "cellblock-artifact",
            "cellblock-chart",
            "cellblock-egress",
            "cellblock-settings",
            // Tests of containment use one; Cargo rejects any other cycle.
            "cellblock-connector",
        ],
        never: NETWORK,
    },
    Rule {
        package: "cellblock-connector",
        // It knows what a connector is, and neither sandboxes nor models. The artifact store opens
        // its addresses in S3.
        ours: &[
            "cellblock-interpreter",
            "cellblock-artifact",
            "cellblock-settings",
        ],
        never: &["hyper", "tower-http", "pyo3"],
    },
    Rule {
        package: "cellblock-egress",
        // It serves streams, and knows neither sandboxes nor sessions.
        ours: &["cellblock-settings"],
        never: &["axum", "reqwest", "pyo3"],
    },
    Rule {
        package: "cellblock-agent",
        // The agent loop knows no HTTP server and no database.
        ours: &[
            "cellblock-interpreter",
            "cellblock-artifact",
            "cellblock-settings",
        ],
        never: &["axum", "hyper", "tower-http", "rusqlite", "pyo3"],
    },
    Rule {
        package: "cellblock-gateway",
        // Which backend runs is none of its business.
        ours: &[
            "cellblock-agent",
            "cellblock-interpreter",
            "cellblock-artifact",
            "cellblock-settings",
        ],
        never: &["pyo3"],
    },
    Rule {
        package: "cellblock-dialects",
        // Callers and quotas come through traits of hosting and its own; the command connects them
        // with the gateway.
        ours: &["cellblock-interpreter", "cellblock-settings"],
        never: &["pyo3"],
    },
    Rule {
        package: "cellblock-mcp",
        // Who its callers are it is told; how they are authenticated is the gateway's business.
        ours: &[
            "cellblock-interpreter",
            "cellblock-artifact",
            "cellblock-settings",
        ],
        never: &["axum", "pyo3"],
    },
    Rule {
        package: "cellblock-mcp-client",
        // It knows which calls a turn makes, not who serves them.
        ours: &[
            "cellblock-agent",
            "cellblock-connector",
            "cellblock-interpreter",
            "cellblock-settings",
        ],
        never: &["axum", "hyper", "pyo3"],
    },
    Rule {
        package: "cellblock",
        ours: &[
            "cellblock-protocol",
            "cellblock-jail",
            "cellblock-guest",
            "cellblock-artifact",
            "cellblock-image",
            "cellblock-sandbox",
            "cellblock-interpreter",
            "cellblock-kubernetes",
            "cellblock-agent",
            "cellblock-connector",
            "cellblock-dialects",
            "cellblock-gateway",
            "cellblock-mcp",
            "cellblock-mcp-client",
            "cellblock-settings",
        ],
        never: &[],
    },
    Rule {
        package: TESTKIT,
        ours: &[],
        // The API server of the fake cluster is an HTTP server.
        never: &["reqwest"],
    },
    Rule {
        // It is a client of the gateway, and the provider behind it.
        package: "cellblock-bench",
        ours: &[
            "cellblock-image",
            "cellblock-sandbox",
            "cellblock-interpreter",
            "cellblock-artifact",
        ],
        never: &["hyper"],
    },
    Rule {
        package: "cellblock-fuzz-checks",
        ours: &[
            "cellblock-protocol",
            "cellblock-artifact",
            "cellblock-image",
            "cellblock-sandbox",
            "cellblock-interpreter",
        ],
        never: NETWORK,
    },
    Rule {
        package: "xtask",
        // Only what has files to generate.
        ours: &["cellblock-protocol", "cellblock-interpreter"],
        never: NETWORK,
    },
];

const TESTKIT: &str = "cellblock-testkit";
/// Tests of every crate may start sandboxes from the default image.
const IMAGE: &str = "cellblock-image";

/// Only programs talk to a person, and only programs have errors that nobody matches on.
const FOR_PROGRAMS: &[&str] = &[
    "anyhow",
    "clap",
    "indicatif",
    "comfy-table",
    "anstream",
    "anstyle",
];
// The checks compile in what the command draws with.
const PROGRAMS: &[&str] = &[
    "cellblock",
    "cellblock-bench",
    "cellblock-fuzz-checks",
    "xtask",
    TESTKIT,
];

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A package of the workspace as `cargo metadata` describes it.
#[derive(Debug, Deserialize)]
pub(super) struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    path: Option<String>,
}

/// Asks cargo for the packages of the workspace.
pub(super) fn packages(root: &Path) -> Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["metadata", "--format-version=1", "--no-deps", "--offline"];
    let output = Command::new(cargo)
        .args(args)
        .current_dir(root)
        .output()
        .context("start `cargo metadata`")?;
    if !output.status.success() {
        bail!(
            "`cargo metadata` failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("read `cargo metadata`")?;
    Ok(metadata.packages)
}

/// Compares every package with its rule.
pub(super) fn check(packages: &[Package]) -> Vec<Violation> {
    packages
        .iter()
        .flat_map(|package| broken(package).into_iter().map(|message| at(package, message)))
        .collect()
}

fn at(package: &Package, message: String) -> Violation {
    Violation {
        path: package.name.clone(),
        line: 1,
        message,
    }
}

fn broken(package: &Package) -> Vec<String> {
    let Some(rule) = RULES.iter().find(|rule| rule.package == package.name) else {
        return vec!["has no rule in xtask/src/tidy/imports.rs".to_owned()];
    };
    package
        .dependencies
        .iter()
        .filter_map(|dependency| refusal(rule, dependency))
        .collect()
}

fn refusal(rule: &Rule, Dependency { name, kind, path }: &Dependency) -> Option<String> {
    let name = name.as_str();
    let for_tests = kind.as_deref() == Some("dev");
    if name == TESTKIT && !for_tests {
        return Some(format!("`{TESTKIT}` may only be a dev-dependency"));
    }
    if path.is_some() {
        // A test makes what its crate is given, and so may know what that is made of.
        let made_of = |ours: &&str| {
            RULES
                .iter()
                .any(|rule| rule.package == *ours && rule.ours.contains(&name))
        };
        let for_its_test = for_tests && (name == IMAGE || rule.ours.iter().any(made_of));
        // Tests of a crate may have its features.
        let is_itself = for_tests && name == rule.package;
        let allowed = name == TESTKIT || rule.ours.contains(&name) || for_its_test || is_itself;
        return (!allowed).then(|| format!("may not depend on `{name}`; see the table in ARCHITECTURE.md"));
    }
    if for_tests {
        return None;
    }
    if rule.never.contains(&name) {
        return Some(format!("must never know `{name}`"));
    }
    let program = PROGRAMS.contains(&rule.package) || !FOR_PROGRAMS.contains(&name);
    (!program).then(|| format!("`{name}` is for programs, this is a library"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(package: &str, dependencies: &str) -> Vec<String> {
        let json = format!(r#"{{"name": "{package}", "dependencies": [{dependencies}]}}"#);
        check(&[serde_json::from_str(&json).unwrap()])
            .iter()
            .map(|violation| violation.message.clone())
            .collect()
    }

    #[test]
    fn an_import_against_the_direction_is_rejected() {
        let ours = r#"{"name": "cellblock-sandbox", "kind": null, "path": "crates/sandbox"}"#;
        assert_eq!(
            found("cellblock-artifact", ours),
            ["may not depend on `cellblock-sandbox`; see the table in ARCHITECTURE.md"]
        );
        assert_eq!(found("cellblock-interpreter", ours), [""; 0]);
    }

    #[test]
    fn a_test_may_use_dependencies_of_its_crates() {
        let sandbox = |kind| {
            let dependency =
                format!(r#"{{"name": "cellblock-sandbox", "kind": {kind}, "path": "crates/sandbox"}}"#);
            found("cellblock-gateway", &dependency)
        };
        assert_eq!(sandbox("\"dev\""), [""; 0]);
        assert_eq!(
            sandbox("null"),
            ["may not depend on `cellblock-sandbox`; see the table in ARCHITECTURE.md"]
        );
    }

    #[test]
    fn a_test_may_have_the_features_of_its_own_crate() {
        let gateway = r#"{"name": "cellblock-gateway", "kind": "dev", "path": "crates/gateway"}"#;
        assert_eq!(found("cellblock-gateway", gateway), [""; 0]);
    }

    #[test]
    fn a_crate_that_must_not_know_a_library_is_rejected_when_it_does() {
        let tokio = r#"{"name": "tokio", "kind": null}"#;
        for package in ["cellblock-protocol", "cellblock-jail", "cellblock-guest"] {
            assert_eq!(found(package, tokio), ["must never know `tokio`"]);
        }
        assert_eq!(found("cellblock-sandbox", tokio), [""; 0]);
        assert_eq!(
            found("cellblock-protocol", r#"{"name": "tokio", "kind": "dev"}"#),
            [""; 0]
        );
    }

    #[test]
    fn a_library_that_prints_is_rejected() {
        let clap = r#"{"name": "clap", "kind": null}"#;
        assert_eq!(
            found("cellblock-interpreter", clap),
            ["`clap` is for programs, this is a library"]
        );
        assert_eq!(found("cellblock", clap), [""; 0]);
    }

    #[test]
    fn testkit_is_for_tests_only_and_there_for_all() {
        let testkit =
            |kind| format!(r#"{{"name": "cellblock-testkit", "kind": {kind}, "path": "crates/testkit"}}"#);
        assert_eq!(found("cellblock-jail", &testkit("\"dev\"")), [""; 0]);
        assert_eq!(
            found("cellblock-jail", &testkit("null")),
            ["`cellblock-testkit` may only be a dev-dependency"]
        );
    }

    #[test]
    fn a_crate_without_a_rule_is_rejected() {
        assert_eq!(
            found("cellblock-common", ""),
            ["has no rule in xtask/src/tidy/imports.rs"]
        );
    }
}
