//! Answering a request of any kind with an error.

use super::Request;
use super::checkpoints::{CheckpointOrder, TryOrder};
use super::fork::ForkOrder;
use crate::error::Error;

/// Sends an error to the caller that waits for the answer.
macro_rules! refuse {
    ($request:expr, $error:expr; $($pattern:pat => $answer:ident,)*) => {
        // Nobody may wait any more.
        match $request {
            $($pattern => drop($answer.send(Err($error))),)*
        }
    };
}

impl Request {
    /// Answers the request with an error.
    pub(super) fn refuse(self, error: Error) {
        refuse! { self, error;
            Self::Execute { answer, .. } => answer,
            Self::Prepare { answer } => answer,
            Self::Lend { answer, .. }
            | Self::Reset { answer }
            | Self::WriteFile { answer, .. }
            | Self::PutFile { answer, .. }
            | Self::RemoveFile { answer, .. }
            | Self::Close { answer }
            | Self::Recorded { answer }
            | Self::Checkpoint(CheckpointOrder::Drop { answer, .. }) => answer,
            Self::Bind { answer, .. } => answer,
            Self::Get { answer, .. } => answer,
            Self::Variables { answer } => answer,
            Self::Origins { answer } => answer,
            Self::ReadFile { answer, .. } => answer,
            Self::ListFiles { answer, .. } => answer,
            Self::OpenFile { answer, .. } => answer,
            Self::Command { answer, .. } => answer,
            Self::AddDataset { answer, .. } => answer,
            Self::ReplaceFile { answer, .. } => answer,
            Self::EditFile { answer, .. } => answer,
            Self::Attach { answer } => answer,
            Self::Checkpoint(CheckpointOrder::Keep { answer, .. }) => answer,
            Self::Checkpoint(CheckpointOrder::List { answer }) => answer,
            Self::Checkpoint(CheckpointOrder::RollBack { answer, .. }) => answer,
            Self::Usage { answer } => answer,
            Self::Fork(ForkOrder { answer, .. }) => answer,
            Self::Hibernate { answer } => answer,
            Self::Try(TryOrder::Run { answer, .. }) => answer,
            Self::Try(TryOrder::Decide { answer, .. }) => answer,
        }
    }
}
