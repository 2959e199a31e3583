//! Packages that a crate pulls in without its default features, checked against `cargo tree`, and the size of
//! the tree.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::Violation;
use crate::footprint::{self, TABLE};

/// A package, and what it must not depend on without its default features.
type Footprint = (&'static str, &'static [&'static str]);

const FOOTPRINTS: &[Footprint] = &[
    // People embed it with as little as they need. WebSockets, TLS and HTTP clients come with the
    // features `remote`, `download` and `s3` only.
    (
        "cellblock-interpreter",
        &[
            "cellblock-remote",
            "hyper",
            "native-tls",
            "openssl",
            "reqwest",
            "rustls",
            "tokio-rustls",
            "tokio-tungstenite",
            "tungstenite",
            "ureq",
        ],
    ),
    // The first build from a clone compiles all of it. Features have the rest: pods, spans, and
    // servers of databases.
    (
        "cellblock",
        &[
            "deadpool-postgres",
            "k8s-openapi",
            "kube",
            "mysql_async",
            "opentelemetry",
            "opentelemetry-otlp",
            "tokio-postgres",
            "tracing-opentelemetry",
        ],
    ),
];

/// Reports dependencies that must be optional, and counts that have grown.
pub(super) fn violations(root: &Path) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for footprint in FOOTPRINTS {
        found.extend(check(footprint, &dependencies(root, footprint.0)?));
    }
    let grown = footprint::grown(&footprint::of_tree(root)?, &footprint::lines(root)?);
    found.extend(grown.into_iter().map(|message| Violation {
        path: TABLE.to_owned(),
        line: 1,
        message,
    }));
    Ok(found)
}

/// Asks cargo what the package depends on without its default features, one `name vVERSION` per line.
fn dependencies(root: &Path, package: &str) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--offline", "--package", package, "--no-default-features"])
        .args(["--edges", "normal", "--prefix", "none"])
        .current_dir(root)
        // With the features of the whole workspace, every feature would be on.
        .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
        .output()
        .context("start `cargo tree`")?;
    if !output.status.success() {
        bail!(
            "`cargo tree` failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    String::from_utf8(output.stdout).context("read `cargo tree`")
}

fn check((package, optional): &Footprint, tree: &str) -> Vec<Violation> {
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    let mut found: Vec<_> = names.filter(|name| optional.contains(name)).collect();
    found.sort_unstable();
    found.dedup();
    found
        .into_iter()
        .map(|name| Violation {
            path: (*package).to_owned(),
            line: 1,
            message: format!("depends on `{name}` without its default features; make that optional"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_that_must_be_optional_is_reported_once() {
        let tree =
            "a v0.1.0 (/a)\ntokio v1.54.1\nrustls v0.23.46\nrustls v0.23.46 (*)\nrustls-pki-types v1.0.0\n";
        let found: Vec<_> = check(&("a", &["hyper", "rustls"]), tree)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            ["a:1: depends on `rustls` without its default features; make that optional"]
        );
    }
}
