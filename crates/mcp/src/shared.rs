//! State that tools, resources and prompts share.

use crate::engine::LazyInterpreter;
use crate::options::Options;
use crate::sessions::McpSessions;

/// Engine that runs code, and the sessions in which it runs.
#[derive(Debug)]
pub(crate) struct McpShared {
    pub(crate) engine: LazyInterpreter,
    pub(crate) options: Options,
    pub(crate) sessions: McpSessions,
}
