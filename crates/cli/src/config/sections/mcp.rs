//! MCP over HTTP, `/mcp`.

use cellblock_interpreter::project::check_name;
use cellblock_mcp::Options;

use crate::config::check::Check;

/// Fewer do not hold a table's head and an error.
const LEAST_TOKENS: usize = 500;
/// Maximum size of an answer in tokens.
const MOST_TOKENS: usize = 1_000_000;

pub(in crate::config) fn check(options: &Options, check: &mut Check<'_>) {
    if options.toolsets.is_empty() {
        check.wrong(
            &["mcp", "toolsets"],
            "must list at least one toolset; to offer none, set `serve: false`",
        );
    }
    if !(LEAST_TOKENS..=MOST_TOKENS).contains(&options.max_tokens) {
        let message = format!("must be from {LEAST_TOKENS} to {MOST_TOKENS}");
        check.wrong(&["mcp", "max_tokens"], message);
    }
    check.positive(&["mcp", "idle_timeout"], options.idle_timeout);
    check.positive(&["mcp", "hibernation_timeout"], options.hibernation_timeout);
    for (key, most) in [
        ("max_sessions", options.max_sessions),
        ("max_sessions_per_key", options.max_sessions_per_key),
    ] {
        if most == 0 {
            check.wrong(
                &["mcp", key],
                "must be at least 1; to offer no sessions, set `serve: false`",
            );
        }
    }
    if let Some(Err(reason)) = options.project.as_deref().map(check_name) {
        check.wrong(&["mcp", "project"], reason);
    }
    if !options.network.is_none() && options.toolsets.iter().any(|kind| kind.on_results) {
        check.wrong(
            &["mcp", "network"],
            "must be `none` if `toolsets` lists `derivation`, whose code never has a network",
        );
    }
    if options.datasets.contains_key("") {
        check.wrong(&["mcp", "datasets"], "a dataset must have a name");
    }
}
