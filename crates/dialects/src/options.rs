//! Which dialects are served, and how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::librechat::LibreChatOptions;
use crate::opensandbox::OpenSandboxOptions;

/// Other people's protocols. Each is served if its name is here, such as `e2b: {}`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Dialects")]
#[serde(default, deny_unknown_fields)]
pub struct DialectsOptions {
    /// The Code API of LibreChat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub librechat: Option<LibreChatOptions>,
    /// The OpenSandbox protocol, which its SDKs and LiteLLM's code interpreter speak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opensandbox: Option<OpenSandboxOptions>,
}
