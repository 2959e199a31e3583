//! Failures of `cellblock` itself, reported with their causes and a remedy.

use std::error::Error as StdError;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use cellblock_dialects::DialectListenError;
use cellblock_gateway::execute_server::ExecuteServerError;
use cellblock_gateway::keys::KeysError;
use cellblock_gateway::records::RecordsError;
use cellblock_gateway::remote::ConnectError;
use cellblock_gateway::server::ServeError;
use cellblock_image::ImageError;
use cellblock_interpreter::error::Blame;

use crate::config::ConfigError;
use crate::exit_code::ExitCode;
use crate::sanitize;
use crate::session_error::{SessionError, WireError};
use crate::style::{BAD, NOTE, styled};

/// Hint for a disk without room for images and layers.
const FULL_HOME: &str = "free some disk space, or set CELLBLOCK_HOME to a directory on a larger disk";

/// A result of a command.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason that a command could not do its part. User code that fails is not among it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The interpreter, its sandbox, or an input.
    #[error(transparent)]
    Interpreter(#[from] cellblock_interpreter::Error),
    /// An image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The sandbox below the interpreter.
    #[error(transparent)]
    Sandbox(#[from] cellblock_sandbox::Error),
    /// The store of artifacts.
    #[error("{action}")]
    Store {
        action: &'static str,
        #[source]
        source: cellblock_artifact::ArtifactError,
    },
    /// A file that the user named, or that is written for them.
    #[error("{action} `{}`", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
        blame: Blame,
    },
    /// A script that cannot be read.
    #[error("read the code `{}`", path.display())]
    Code {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Code that is not text.
    #[error("`{}` is not UTF-8: byte {byte} in line {line} is not part of a character", path.display())]
    Encoding { path: PathBuf, line: usize, byte: usize },
    /// Something that the process needs of its surroundings is missing.
    #[error("{action}")]
    Process {
        action: &'static str,
        #[source]
        source: io::Error,
    },
    /// Ctrl-C, when nothing could be interrupted or for the second time.
    #[error("ended by Ctrl-C")]
    Cancelled,
    /// Something that cannot be done as it was asked for.
    #[error("{0}")]
    Refused(String),
    /// A configuration that cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address that cannot be listened on.
    #[error("listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    /// An address of a dialect's own.
    #[error(transparent)]
    Dialects(#[from] DialectListenError),
    /// The gateway's server.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The server that is to run code.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The gateway's records.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// Keys of the gateway.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// A session that cannot be used.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Error that a session's host reported.
    #[error("{}", .0.messages.first().map_or("the session's host failed", String::as_str))]
    Told(WireError),
}

impl From<cellblock_interpreter::skill::SkillError> for Error {
    fn from(error: cellblock_interpreter::skill::SkillError) -> Self {
        Self::Interpreter(error.into())
    }
}

impl Error {
    /// A file that the user named and that cannot be used.
    pub(crate) fn user_file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            action,
            path,
            source,
            blame: Blame::Caller,
        }
    }

    /// A file that should be writable, and is not.
    pub(crate) fn own_file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            action,
            path,
            source,
            blame: Blame::Internal,
        }
    }

    /// A failed system call around this process.
    pub(crate) fn process(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Process { action, source }
    }

    /// The exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Interpreter(error) => ExitCode::of_blame(error.blame()),
            Self::Image(error) => ExitCode::of_blame(blame_of_image(error)),
            Self::Sandbox(error) => ExitCode::of_blame(error.blame()),
            Self::File { blame, .. } => ExitCode::of_blame(*blame),
            Self::Keys(KeysError::Records(_)) => ExitCode::Backend,
            Self::Code { .. }
            | Self::Encoding { .. }
            | Self::Refused(_)
            | Self::Config(_)
            | Self::Listen { .. }
            | Self::Dialects(_)
            | Self::Keys(_) => ExitCode::Refused,
            Self::Serve(error) => code_of_serving(error),
            Self::Connect(ConnectError::Sandboxes { source, .. }) => ExitCode::of_blame(source.blame()),
            Self::Connect(ConnectError::Execute { source, .. }) => code_of_executing(source),
            Self::Session(error) => error.exit_code(),
            Self::Told(told) => told.code,
            Self::Process { source, .. } if source.kind() == io::ErrorKind::WouldBlock => ExitCode::Capacity,
            Self::Store { .. } | Self::Process { .. } | Self::Records(_) => ExitCode::Backend,
            Self::Cancelled => ExitCode::Cancelled,
        }
    }

    /// The message and those of its causes, outermost first. A cause that repeats what is above it
    /// is left out.
    pub(crate) fn chain(&self) -> Vec<String> {
        if let Self::Told(told) = self {
            return told.messages.clone();
        }
        let mut messages = vec![self.to_string()];
        let mut cause = self.source();
        while let Some(error) = cause {
            let message = error.to_string();
            if !messages.iter().any(|above| above.contains(&message)) {
                messages.push(message);
            }
            cause = error.source();
        }
        messages
    }

    /// Returns hints for repairing it that its message does not contain.
    pub(crate) fn hints(&self) -> Vec<String> {
        let mut hints = Vec::new();
        match self {
            Self::Image(error) if error.is_disk_full() => {
                hints.push(FULL_HOME.to_owned());
            }
            Self::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                hints.push("free some disk space, or name another directory with `--out`".to_owned());
            }
            Self::Process { source, .. } if source.kind() == io::ErrorKind::WouldBlock => hints.push(
                "end some processes, or raise the limit (`ulimit -u` for the user, `pids.max` \
                 for the cgroup)"
                    .to_owned(),
            ),
            Self::Interpreter(cellblock_interpreter::Error::Requirements(error)) if error.is_disk_full() => {
                hints.push(FULL_HOME.to_owned());
            }
            Self::Interpreter(error) if is_lost_to_temporary_files(error) => {
                hints.push("set TMPDIR to a directory that can be written and has room".to_owned());
            }
            Self::Code { path, source } if source.kind() == io::ErrorKind::NotFound => {
                hints.extend(code_for_file(path));
            }
            Self::Encoding { .. } => hints.push("save the file as UTF-8".to_owned()),
            Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                hints.push(
                    "end what listens there, or name another port; port 0 takes one that is free".to_owned(),
                );
            }
            // Its message says what to do.
            Self::Serve(ServeError::Exposed { .. }) => {}
            Self::Records(error)
            | Self::Serve(ServeError::Records(error))
            | Self::Keys(KeysError::Records(error)) => {
                // The message of any other says what to do.
                if let RecordsError::Damaged { path, .. } = error {
                    hints.push(repair(path));
                }
            }
            // Nothing of this machine is at fault.
            Self::Connect(_) => hints.push(
                "see that `sandbox_url` is the address of a server that runs, and that its key is right"
                    .to_owned(),
            ),
            Self::Session(error) => hints.push(error.hint()),
            Self::Told(told) => hints.clone_from(&told.hints),
            _ => match self.exit_code() {
                ExitCode::Policy => {
                    hints.push("`cellblock doctor` says what this machine offers and what to do".to_owned());
                }
                ExitCode::Capacity => {
                    hints.push("try again in a while, or run fewer sandboxes at once".to_owned());
                }
                ExitCode::Backend => hints.push(
                    "`cellblock doctor` checks this machine; CELLBLOCK_LOG=debug shows \
                     what happens underneath"
                        .to_owned(),
                ),
                _ => {}
            },
        }
        hints
    }
}

/// Ends a command: reports its error on stderr, and returns its exit code.
pub(crate) fn end(done: Result<()>) -> ExitCode {
    ended(done.map(|()| ExitCode::Success))
}

/// Likewise for a command that says how it ended.
pub(crate) fn ended(done: Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        tell(&error);
        error.exit_code()
    })
}

/// Tells a person, on stderr.
pub(crate) fn tell(error: &Error) {
    let mut stderr = anstream::stderr();
    let mut lines = Vec::new();
    for (index, message) in error.chain().iter().enumerate() {
        let head = if index == 0 {
            styled(BAD, "error")
        } else {
            "  caused by".to_owned()
        };
        lines.push(format!("{head}: {}", sanitize::text(message)));
    }
    lines.extend(
        error
            .hints()
            .iter()
            .map(|hint| format!("{}: {hint}", styled(NOTE, "hint"))),
    );
    // Nobody is left to tell when stderr is gone.
    let _ = writeln!(stderr, "{}", lines.join("\n"));
}

/// Returns the command to write if a file name looks like code.
fn code_for_file(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
    let names_file = text.rsplit_once('.').is_some_and(|(before, extension)| {
        let letters = extension.starts_with(|c: char| c.is_ascii_alphabetic());
        letters && is_name(extension) && before.split(['/', '.']).all(is_name)
    });
    if names_file {
        return None;
    }
    let code = sanitize::line(text);
    Some(if text.contains('\'') {
        "code itself is given with `-c`: `cellblock run -c CODE`".to_owned()
    } else {
        format!("code itself is given with `-c`: `cellblock run -c '{code}'`")
    })
}

/// Returns a hint for repairing damaged records.
fn repair(path: &Path) -> String {
    let path = path.display();
    format!(
        "stop the server, then restore the file from a backup, or save what is readable (`sqlite3 \
         '{path}' .recover | sqlite3 new.sqlite`) and put that in its place, or move it away together \
         with `{path}-wal` and `{path}-shm` to start without records: API keys, stored responses, \
         containers and uploaded files are then unknown"
    )
}

/// Whether an output or a file found no place on its way to the store.
fn is_lost_to_temporary_files(error: &cellblock_interpreter::Error) -> bool {
    use cellblock_interpreter::output::OutputError;

    matches!(
        error,
        cellblock_interpreter::Error::Spool(_) | cellblock_interpreter::Error::Output(OutputError::File(_))
    ) || matches!(error, cellblock_interpreter::Error::Sandbox(error) if error.is_spill())
}

/// Returns the exit code of a server that cannot be served: a missing protection if strangers could run code,
/// otherwise an invalid request.
const fn code_of_serving(error: &ServeError) -> ExitCode {
    match error {
        ServeError::Exposed { .. } => ExitCode::Policy,
        ServeError::Records(_) => ExitCode::Backend,
        ServeError::Metrics { .. }
        | ServeError::Origin { .. }
        | ServeError::PreviewDomain { .. }
        | ServeError::Tls(_)
        | ServeError::Listen { .. } => ExitCode::Refused,
    }
}

/// A server that is busy may not be so for long; an address that cannot be used is the configuration's fault.
const fn code_of_executing(error: &ExecuteServerError) -> ExitCode {
    match error {
        ExecuteServerError::Request(_) => ExitCode::Refused,
        ExecuteServerError::Busy { .. } => ExitCode::Capacity,
        _ => ExitCode::Backend,
    }
}

fn blame_of_image(error: &ImageError) -> Blame {
    if error.is_callers() {
        Blame::Caller
    } else {
        Blame::Backend
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_with_its_causes_and_a_hint() {
        let error = Error::own_file("write", "out/a.png")(io::ErrorKind::StorageFull.into());
        assert_eq!(error.chain(), ["write `out/a.png`", "no storage space"]);
        assert_eq!(
            error.hints(),
            ["free some disk space, or name another directory with `--out`"]
        );
        assert_eq!(error.exit_code(), ExitCode::Backend);
    }

    #[test]
    fn code_in_the_place_of_a_file_is_recognized() {
        let hints = |path: &str| {
            let error = Error::Code {
                path: path.into(),
                source: io::ErrorKind::NotFound.into(),
            };
            (error.exit_code(), error.hints())
        };
        for code in ["1+1", "print(open(\"a.py\"))", "df.head()", "x = 1.5", "3.14"] {
            let hint = format!("code itself is given with `-c`: `cellblock run -c '{code}'`");
            assert_eq!(hints(code), (ExitCode::Refused, vec![hint]));
        }
        let quoted = "code itself is given with `-c`: `cellblock run -c CODE`";
        assert_eq!(hints("print('a')").1, [quoted]);
        for file in ["nowhere.py", "../a/b-c.ipynb", "/x/y.v2.R", "./run.sh"] {
            assert_eq!(hints(file), (ExitCode::Refused, vec![]), "{file}");
        }
    }

    #[test]
    fn a_file_that_the_user_named_is_a_bad_request() {
        let error = Error::user_file("read", "x.py")(io::ErrorKind::NotFound.into());
        assert_eq!(error.exit_code(), ExitCode::Refused);
        assert_eq!(error.hints(), [""; 0]);
    }
}
