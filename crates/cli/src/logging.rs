//! What is logged, and how: to stderr, for people or for programs.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::env_vars;

/// Begins to log as the environment says. Unless it says otherwise, errors only, as text.
pub(crate) fn start() {
    let wanted = env_vars::LOG.get();
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or("error"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| EnvFilter::new("error")))
        .with_writer(std::io::stderr);
    if env_vars::LOG_FORMAT.get().as_deref() == Some("json") {
        log.json().flatten_event(true).init();
    } else {
        let colours = std::io::stderr().is_terminal() && env_vars::NO_COLOR.get().is_none();
        log.with_ansi(colours).init();
    }
}
