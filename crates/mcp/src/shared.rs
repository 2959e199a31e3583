//! What tools, resources and prompts share.

use crate::engine::Engine;
use crate::options::Options;
use crate::sessions::Sessions;

/// What runs code, and the sessions in which it runs.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) options: Options,
    pub(crate) sessions: Sessions,
}
