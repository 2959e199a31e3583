//! State that responses share while the process lives: those that run in the background, and the key of what
//! is sealed.

mod live;
mod log;
mod seal;
pub(crate) mod suspended;
pub(crate) mod unwritten;

pub(crate) use live::{LiveResponses, RunningResponse};
pub(crate) use log::{Log, LogPosition};
pub(crate) use seal::{ConversationSummary, Seal};
pub(crate) use suspended::WaitingTurn;
