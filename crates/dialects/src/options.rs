//! Which dialects are served, and how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::jupyter::JupyterOptions;
use crate::open_terminal::OpenTerminalOptions;

/// Other people's protocols. Each is served if its name is here, such as `e2b: {}`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Dialects")]
#[serde(default, deny_unknown_fields)]
pub struct DialectsOptions {
    /// Jupyter's API at `/jupyter`, for Open WebUI and other clients of Jupyter servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jupyter: Option<JupyterOptions>,
    /// Open Terminal at `/open-terminal`, for Open WebUI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_terminal: Option<OpenTerminalOptions>,
}
