//! Options of the dialects that are served.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::e2b::{BuildOptions, DomainTls, E2bOptions};
use crate::jupyter::JupyterOptions;
use crate::librechat::LibreChatOptions;
use crate::open_terminal::OpenTerminalOptions;
use crate::opensandbox::OpenSandboxOptions;

/// Other people's protocols. Each is served if its name is here, such as `e2b: {}`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Dialects")]
#[serde(default, deny_unknown_fields)]
pub struct DialectsOptions {
    /// Packages that sandboxes of all dialects have in addition to those of the image, such as
    /// `tabulate` or `networkx>=3.2,<4`. They are installed before the first code of a sandbox
    /// runs, and are subject to `requirements`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<String>,
    /// E2B's API, for its SDKs of Python and JavaScript; served at `/e2b`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub e2b: Option<E2bOptions>,
    /// Jupyter's API, for Open WebUI and other clients of Jupyter servers; served at `/jupyter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jupyter: Option<JupyterOptions>,
    /// The Code API of LibreChat; served at `/librechat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub librechat: Option<LibreChatOptions>,
    /// Open Terminal, for Open WebUI; served at `/open-terminal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_terminal: Option<OpenTerminalOptions>,
    /// The OpenSandbox protocol, which its SDKs and LiteLLM's code interpreter speak; served at
    /// `/opensandbox`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opensandbox: Option<OpenSandboxOptions>,
}

impl DialectsOptions {
    /// Whether a dialect is served. Their clients run code, and ask no model.
    pub const fn is_any(&self) -> bool {
        self.e2b.is_some()
            || self.jupyter.is_some()
            || self.librechat.is_some()
            || self.open_terminal.is_some()
            || self.opensandbox.is_some()
    }
}
