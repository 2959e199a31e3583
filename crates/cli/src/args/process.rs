//! The command line of processes beside the tools of a session.

use std::time::Duration;

use clap::Args;

use crate::session_id::SessionId;

/// Longer than any process is waited for.
const MOST_WAIT: Duration = Duration::from_hours(24 * 30);

/// Program to run.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProgramArgs {
    /// Leave the program running, and print only the ID of its process
    #[arg(short, long)]
    pub(crate) detach: bool,
    /// Pass standard input on; with `--detach`, keep it open for `session input`
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Set an environment variable; repeat it for several
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Working directory [default: /workspace]
    #[arg(short = 'w', long, value_name = "DIR")]
    pub(crate) directory: Option<String>,
    /// ID of the session
    #[arg(value_name = "ID")]
    pub(crate) session: SessionId,
    /// The program and its arguments, after `--`
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub(crate) command: Vec<String>,
}

/// Process to show in a terminal.
#[derive(Args, Clone, Debug)]
pub(crate) struct AttachArgs {
    /// Return to a process that was started with a terminal
    #[arg(short, long, value_name = "PROCESS", conflicts_with = "command")]
    pub(crate) process: Option<String>,
    /// ID of the session
    #[arg(value_name = "ID")]
    pub(crate) session: SessionId,
    /// The program and its arguments, after `--` [default: bash -i]
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,
}

/// Output to show.
#[derive(Args, Clone, Debug)]
pub(crate) struct OutputArgs {
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    /// Offset of the first byte
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true)]
    pub(crate) offset: u64,
    /// Continue until the process ends
    #[arg(short, long)]
    pub(crate) follow: bool,
}

/// Input to send.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputArgs {
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    /// Text to send, followed by a newline [default: standard input]
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Close the process's standard input after it
    #[arg(long)]
    pub(crate) close: bool,
}

/// Process to use.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProcessArgs {
    /// ID of the session
    #[arg(value_name = "ID")]
    pub(crate) session: SessionId,
    /// ID of the process, such as `p1`
    #[arg(value_name = "PROCESS")]
    pub(crate) process: String,
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!(
            "`{text}` is not NAME=VALUE; write the variable and its value, such as `PORT=8000`"
        )),
    }
}

pub(super) fn parse_wait(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number of seconds, such as `10`"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(wait) if wait <= MOST_WAIT => Ok(wait),
        _ => Err(format!(
            "`{text}` is not between 0 and {} seconds",
            MOST_WAIT.as_secs()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_a_name_and_any_value() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(parse_variable("A=b=c"), pair("A", "b=c"));
        assert_eq!(parse_variable("A="), pair("A", ""));
        for text in ["A", "=b", ""] {
            let message = parse_variable(text).unwrap_err();
            assert!(message.starts_with(&format!("`{text}` is not NAME=VALUE; ")));
        }
    }

    #[test]
    fn a_wait_is_a_number_of_seconds() {
        assert_eq!(parse_wait("0"), Ok(Duration::ZERO));
        assert_eq!(parse_wait("1.5"), Ok(Duration::from_millis(1500)));
        for text in ["-1", "inf", "NaN", "soon"] {
            assert!(
                parse_wait(text)
                    .unwrap_err()
                    .starts_with(&format!("`{text}` is not "))
            );
        }
    }
}
