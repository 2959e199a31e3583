//! Log to stderr, for people or for programs, and spans to a collector if one is named.

#[cfg(feature = "otlp")]
mod export;
#[cfg(not(feature = "otlp"))]
mod no_export;

use std::io::IsTerminal;

use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt};

use crate::env_vars;

#[cfg(feature = "otlp")]
pub(crate) use export::Export;
#[cfg(not(feature = "otlp"))]
pub(crate) use no_export::NoExport as Export;

/// Begins to log as the environment says. Unless it says otherwise, errors only, as text.
pub(crate) fn start() {
    log(None);
}

/// The same, for a server: its spans go to a collector if one is named, as long as what this gives is kept.
pub(crate) fn serve() -> Option<Export> {
    let (export, wrong) = match Export::start() {
        Ok(export) => (export, None),
        Err(error) => (None, Some(error)),
    };
    log(export.as_ref());
    if let Some(error) = wrong {
        tracing::error!(
            error = &*error as &dyn std::error::Error,
            "spans are not exported"
        );
    }
    export
}

/// Returns the log filter. A mistake of an MCP client is answered and not logged as a warning; rmcp
/// is logged only if it is named.
fn filter(wanted: &str) -> EnvFilter {
    let wanted = if wanted.contains("rmcp") {
        wanted.to_owned()
    } else {
        format!("{wanted},rmcp::service=error")
    };
    EnvFilter::try_new(wanted).unwrap_or_else(|_| EnvFilter::new("error"))
}

fn log(export: Option<&Export>) {
    let wanted = env_vars::LOG.get();
    let filter = filter(wanted.as_deref().unwrap_or("error"));
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = if env_vars::LOG_FORMAT.get().as_deref() == Some("json") {
        lines.json().flatten_event(true).boxed()
    } else {
        let colours = std::io::stderr().is_terminal() && env_vars::NO_COLOR.get().is_none();
        lines.with_ansi(colours).boxed()
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(export.map(Export::layer))
        .init();
}
