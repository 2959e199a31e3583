//! The command line of sessions that outlive a command.

use std::path::PathBuf;
use std::time::Duration;

use cellblock_interpreter::session::hibernate::OnIdle;
use cellblock_interpreter::toolset::ToolsetKind;
use cellblock_interpreter::workbench;
use clap::{Args, Subcommand};

use super::checkpoint::{CellArgs, CheckpointArgs, ForkArgs, KeepArgs};
use super::parse_memory;
use super::process::{AttachArgs, InputArgs, OutputArgs, ProcessArgs, ProgramArgs, parse_wait};
use crate::policy::{NetworkArgs, PolicyArgs, WallArgs};
use crate::session::plan::SessionProfile;
use crate::session_id::SessionId;
use crate::toolset::kinds;
use cellblock_settings::Size;

/// Longer than any conversation.
const MOST_IDLE: Duration = Duration::from_hours(24 * 30);

/// Session to use, and a command for it.
#[derive(Args, Clone, Debug)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) command: SessionCommand,
}

/// Command for sessions.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Start a session in the background and print only its ID
    ///
    /// The first tool call creates the sandbox. The session ends with `session stop`, or when it
    /// has been idle for its idle timeout. All output except the ID goes to stderr.
    Start(Box<StartArgs>),
    /// List the running sessions
    List {
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Stop a session and its code. Files that it has saved on this machine remain
    Stop(StopArgs),
    /// Add a file to a session's `/tmp/data`, even while its sandbox is running, and print only its
    /// path there
    AddDataset {
        /// ID of the session
        #[arg(value_name = "ID")]
        session: SessionId,
        /// Name of the dataset in the session, and the file
        #[arg(value_name = "NAME=PATH", value_parser = parse_dataset)]
        dataset: DatasetArg,
        /// Convert a Parquet or Arrow file to CSV
        #[arg(long)]
        as_csv: bool,
    },
    /// Print the section for a model's system prompt: tools, data with columns and types, constraints
    Prompt {
        /// ID of the session
        #[arg(value_name = "ID")]
        session: SessionId,
    },
    /// Run Python code in a session, as its next cell, and show what it displays
    ///
    /// Variables stay for the next cell. Exits like `cellblock run`.
    Run(CellArgs),
    /// Keep the variables and files of a session as they are now, and print only the checkpoint's ID
    ///
    /// A session keeps at most 8 checkpoints; the oldest makes room. Threads, child processes,
    /// sockets and mapped files cannot be kept: the command names them and changes nothing.
    Checkpoint(KeepArgs),
    /// List the checkpoints of a session
    Checkpoints {
        /// ID of the session
        #[arg(value_name = "ID")]
        session: SessionId,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Make the variables and files of a session what they were at a checkpoint
    ///
    /// Ends all processes of the session. All checkpoints are kept, also later ones.
    Rollback(CheckpointArgs),
    /// Remove a checkpoint and free its memory
    #[command(alias = "drop-checkpoint")]
    RemoveCheckpoint(CheckpointArgs),
    /// Run a cell whose effects count only once it is kept, and show what it changed
    ///
    /// Until `session keep` or `session discard`, other commands for the session's code and files are
    /// refused. Calls of connectors that change something are refused in a try. Exits like
    /// `cellblock run`.
    Try(CellArgs),
    /// Keep the undecided try of a session: its variables and files are those of the session
    Keep {
        /// ID of the session
        #[arg(value_name = "ID")]
        session: SessionId,
    },
    /// Discard the undecided try of a session: variables and files are as before it
    Discard {
        /// ID of the session
        #[arg(value_name = "ID")]
        session: SessionId,
    },
    /// Make independent sessions that begin with the variables and files of this one, and print
    /// their IDs, one per line
    ///
    /// All of them, or none. Each has its own sandbox with the same limits; the session itself is not
    /// changed. Random generators get new seeds in each, also those that code has made.
    Fork(ForkArgs),
    /// End the processes of a session and free their memory, but keep its files
    ///
    /// With the backend gvisor, its variables are kept as well, on disk; with others, variables and
    /// checkpoints are gone, and the next command starts a new kernel and says so.
    Hibernate {
        /// ID of the session
        #[arg(value_name = "ID")]
        session: SessionId,
    },
    /// Run a program in a session's sandbox, beside its tools
    ///
    /// Shows the output of the program until it ends; Ctrl-C ends it. Exits with 0 if its exit code
    /// is 0, otherwise with 1. With `--detach`, the program keeps running until it ends or the
    /// session does. At most 64 programs run at the same time.
    Exec(ProgramArgs),
    /// Open a terminal in a session's sandbox, beside its tools
    ///
    /// Runs a shell or another program until it ends, and exits with its exit code. Ctrl-P Ctrl-Q
    /// detaches and leaves it running. What the program writes controls your terminal.
    Attach(AttachArgs),
    /// List the processes that `session exec` has started: those that are running, and the last 64
    /// that have ended
    Ps {
        /// ID of the session
        #[arg(value_name = "ID")]
        session: SessionId,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Show what a process has written to stdout and stderr
    Output(OutputArgs),
    /// Send input to a process that was started with `--interactive`
    Input(InputArgs),
    /// Send a signal to a process. `SIGKILL` also ends everything that it started
    Signal {
        #[command(flatten)]
        process: ProcessArgs,
        /// Name of the signal
        #[arg(value_name = "SIGNAL", default_value = "SIGTERM")]
        signal: String,
    },
    /// Wait for a process to end, and print how it ended
    ///
    /// Exits with 0 if its exit code is 0, with 1 if it failed, and with 124 if it is still running
    /// after the timeout.
    Wait {
        #[command(flatten)]
        process: ProcessArgs,
        /// Maximum number of seconds to wait [default: until it ends]
        #[arg(long, value_name = "SECONDS", value_parser = parse_wait, allow_negative_numbers = true)]
        timeout: Option<Duration>,
    },
    /// The process behind a session; `session start` starts it
    #[command(hide = true)]
    Host {
        /// ID of the session
        #[arg(value_name = "ID")]
        session: SessionId,
    },
}

/// Session to start.
#[derive(Args, Clone, Debug)]
pub(crate) struct StartArgs {
    /// Tools of the session
    #[arg(long, value_name = "TOOLSET",
        value_parser = kinds(|kind| !kind.runs_cells() && !kind.on_results),
        default_value = workbench::KIND.name)]
    pub(crate) toolset: ToolsetKind,
    /// Libraries that scripts should use; `polars` uses the image of that name unless `--image`
    /// selects another
    #[arg(long, value_name = "PROFILE", value_enum, default_value_t)]
    pub(crate) profile: SessionProfile,
    /// Use this image: a name, an ID, or a TOML file that describes one [default: the profile's]
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Limit the sandbox's memory, including its files, such as `512MiB` [default: 2GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub(crate) memory: Option<Size>,
    /// Add a package to those of the image, such as `six==1.17.0`, for all commands of the session;
    /// repeat it for several
    #[arg(long = "require", value_name = "PACKAGE")]
    pub(crate) requirements: Vec<String>,
    /// Make a file available in `/tmp/data`, read-only, under this name; repeat it for several
    #[arg(long = "dataset", visible_alias = "input", value_name = "NAME=PATH", value_parser = parse_dataset)]
    pub(crate) datasets: Vec<DatasetArg>,
    /// Convert datasets that are Parquet or Arrow files to CSV
    #[arg(long)]
    pub(crate) as_csv: bool,
    /// Save files that commands leave in `/tmp/output` into this directory, which is created if
    /// needed [default: cellblock-out/session_ID]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// End the session after it has been idle for this many seconds [default: 900]
    #[arg(long, value_name = "SECONDS", value_parser = parse_idle, default_value = "900",
        hide_default_value = true, allow_negative_numbers = true)]
    pub(crate) idle_timeout: Duration,
    /// Action at the idle timeout: `end`, or `hibernate`, which frees the memory of the session, keeps its
    /// files for a day, and with the backend gvisor also its variables
    #[arg(long, value_name = "ACTION", default_value = "end")]
    pub(crate) on_idle: OnIdle,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) wall: WallArgs,
}

/// Sessions to end.
#[derive(Args, Clone, Debug)]
pub(crate) struct StopArgs {
    /// ID of the session
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) session: Option<SessionId>,
    /// Stop all running sessions
    #[arg(long)]
    pub(crate) all: bool,
}

/// Name of a file in a session, and its path here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DatasetArg {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

pub(super) fn parse_dataset(text: &str) -> Result<DatasetArg, String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok(DatasetArg {
            name: name.to_owned(),
            path: path.into(),
        }),
        _ => Err(format!(
            "`{text}` is not NAME=PATH; write what the file is called in the session and where it is, \
             such as `sales=data/sales.csv`"
        )),
    }
}

pub(super) fn parse_idle(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number of seconds, such as `900`"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(idle) if !idle.is_zero() && idle <= MOST_IDLE => Ok(idle),
        _ => Err(format!(
            "a session cannot be idle for {seconds} seconds; give more than 0 and at most {}",
            MOST_IDLE.as_secs()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_has_any_name_and_a_path() {
        let dataset = DatasetArg {
            name: "north region/q1".into(),
            path: "a=b.csv".into(),
        };
        assert_eq!(parse_dataset("north region/q1=a=b.csv"), Ok(dataset));
        for text in ["sales.csv", "=sales.csv", "sales="] {
            let message = format!(
                "`{text}` is not NAME=PATH; write what the file is called in the session and where it is, \
                 such as `sales=data/sales.csv`"
            );
            assert_eq!(parse_dataset(text), Err(message));
        }
    }

    #[test]
    fn idle_time_is_more_than_none_and_less_than_for_ever() {
        assert_eq!(parse_idle("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1", "inf", "NaN", "2592001", "1e300"] {
            let message = parse_idle(text).unwrap_err();
            assert!(
                message.starts_with("a session cannot be idle for "),
                "{text}: {message}"
            );
        }
        assert_eq!(
            parse_idle("soon").unwrap_err(),
            "`soon` is not a number of seconds, such as `900`"
        );
    }
}
