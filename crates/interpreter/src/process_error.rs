//! Reasons that a process could not be started or used.

/// Maximum number of processes of a session that run at the same time.
pub const MAX_RUNNING: usize = 64;
/// Maximum number of bytes of input in one request.
pub const MAX_INPUT: usize = 1 << 20;

/// Reason that a process could not be started or used.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The session has no such process.
    #[error("find process `{id}`: this session has no such process, or has dropped it after its end")]
    NotFound {
        /// The ID.
        id: String,
    },
    /// Too many are running.
    #[error("start a process: {MAX_RUNNING} are running, which is the limit; end one of them first")]
    TooMany,
    /// The session checks code before it runs.
    #[error(
        "start a process: this session checks code before it runs, and programs cannot be checked; use \
         one without `guard`"
    )]
    Guarded,
    /// The sandbox could not start it.
    #[error("start process `{id}`: {reason}")]
    NotStarted {
        /// The ID that it would have had.
        id: String,
        /// The reason.
        reason: String,
    },
    /// It has ended.
    #[error("send a signal to process `{id}`: it has ended")]
    Ended {
        /// Its ID.
        id: String,
    },
    /// Its sandbox has ended.
    #[error("reach process `{id}`: it ended with its sandbox, and its output is gone")]
    Lost {
        /// Its ID.
        id: String,
    },
    /// It has no terminal.
    #[error(
        "resize the terminal of process `{id}`: it has no terminal, or has ended; start the process with one"
    )]
    NoTerminal {
        /// Its ID.
        id: String,
    },
    /// Nothing reads its input.
    #[error("send input to process `{id}`: its standard input is closed; start the process with an open one")]
    Closed {
        /// Its ID.
        id: String,
    },
    /// It does not read its input.
    #[error("send input to process `{id}`: {reason}; it does not read them")]
    Full {
        /// Its ID.
        id: String,
        /// Description of how much is waiting.
        reason: String,
    },
    /// Too much input at once.
    #[error("send input to process `{id}`: it has {bytes} bytes, the limit is {MAX_INPUT}; send it in parts")]
    InputTooLarge {
        /// Its ID.
        id: String,
        /// Size of the input.
        bytes: usize,
    },
}

impl ProcessError {
    /// Returns a word for the kind of error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "process_not_found",
            Self::TooMany => "too_many_processes",
            Self::Guarded => "process_in_guarded_session",
            Self::NotStarted { .. } => "process_not_started",
            Self::Ended { .. } => "process_ended",
            Self::Lost { .. } => "process_lost",
            Self::NoTerminal { .. } => "process_without_terminal",
            Self::Closed { .. } => "process_input_closed",
            Self::Full { .. } => "process_input_full",
            Self::InputTooLarge { .. } => "process_input_too_large",
        }
    }
}
