//! Cells of Python that call the session's connectors: `run_cell`.

use std::sync::Arc;

use super::python::{Python, named, prompt};
use super::{ToolDefinition, Toolset, ToolsetKind};
use crate::connector::{CATALOG_TOKENS, catalog};

/// The name of the tool.
pub const RUN_CELL: &str = "run_cell";

/// The toolset `notebook`.
pub const KIND: ToolsetKind = ToolsetKind {
    name: "notebook",
    summary: "Cells of Python that call tools of the host as functions",
    about: "How to work with run_cell and with functions of the host",
    prelude: &["analysis", "documents", "notebook"],
    on_results: false,
    definitions: |_| vec![definition()],
    prompt: |_| about(),
    open: |_, session, terms| {
        Box::pin(async move {
            let catalog = catalog(&terms.connectors, CATALOG_TOKENS).await;
            let notebook = Python {
                session,
                max_timeout: terms.max_timeout,
                writes: terms.writes.clone(),
                definition: definition(),
                prompt: format!("{}\n\n{catalog}", about()).trim_end().to_owned(),
            };
            Ok(Arc::new(notebook) as Arc<dyn Toolset>)
        })
    },
};

fn about() -> String {
    let prompt = prompt("Notebook", RUN_CELL);
    format!(
        "{prompt} `sql(\"select …\")` queries data frames by the names of their variables, if the image \
         has DuckDB."
    )
}

fn definition() -> ToolDefinition {
    named(
        RUN_CELL,
        "Runs Python in a sandbox without network, which can call functions of the host. Variables and \
         files stay for later calls. The value of the last expression is shown.",
    )
}
