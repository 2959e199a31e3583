//! What a crate pulls in without its default features, checked against `cargo tree`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::Violation;

/// People embed it with as little as they need.
const PACKAGE: &str = "cellblock-interpreter";

/// WebSockets, TLS and HTTP clients come with the features `remote` and `download` only.
const OPTIONAL: &[&str] = &[
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
];

/// Asks cargo what the package depends on without its default features, one `name vVERSION` per line.
pub(super) fn dependencies(root: &Path) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--offline", "--package", PACKAGE, "--no-default-features"])
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

/// Reports dependencies that must be optional.
pub(super) fn check(tree: &str) -> Vec<Violation> {
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    let mut found: Vec<_> = names.filter(|name| OPTIONAL.contains(name)).collect();
    found.sort_unstable();
    found.dedup();
    found
        .into_iter()
        .map(|name| Violation {
            path: PACKAGE.to_owned(),
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
        let tree = "cellblock-interpreter v0.1.0 (/a)\ntokio v1.54.1\nrustls v0.23.46\nrustls v0.23.46 (*)\nrustls-pki-types v1.0.0\n";
        let found: Vec<_> = check(tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            ["cellblock-interpreter:1: depends on `rustls` without its default features; make that optional"]
        );
    }
}
