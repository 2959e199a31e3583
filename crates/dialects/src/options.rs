//! Which dialects are served, and how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::e2b::E2bOptions;
use crate::librechat::LibreChatOptions;
use crate::opensandbox::OpenSandboxOptions;

/// Other people's protocols. Each is served if its name is here, such as `e2b: {}`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Dialects")]
#[serde(default, deny_unknown_fields)]
pub struct DialectsOptions {
    /// E2B's API, for its SDKs of Python and JavaScript; served at `/e2b`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub e2b: Option<E2bOptions>,
    /// The Code API of LibreChat; served at `/librechat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub librechat: Option<LibreChatOptions>,
    /// The OpenSandbox protocol, which its SDKs and LiteLLM's code interpreter speak; served at `/opensandbox`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opensandbox: Option<OpenSandboxOptions>,
}
