//! Hints after a cell that did not complete.

use cellblock_interpreter::Execution;
use cellblock_interpreter::execution::{Outcome, Resource};
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_interpreter::output::Exception;

/// Returns a hint for the next attempt. The outcome's own note, if there is one, has said what became of
/// variables.
pub(super) fn after(execution: &Execution, raised: Option<&Exception>) -> String {
    let hint = match &execution.outcome {
        Outcome::Completed => "",
        Outcome::Raised => raised.map_or("correct the code and run it again", |it| {
            of_exception(&it.exception, &it.message, execution.sandbox.network)
        }),
        Outcome::Interrupted => {
            "do less in one call, work on a sample first, or ask for more time with `timeout_seconds` \
             (its description says how much there is)"
        }
        Outcome::KernelLost { .. } => {
            "run what defines your variables again where they are lost, and avoid what ended the kernel"
        }
        Outcome::LimitExceeded(exceeded) => match exceeded.which {
            Resource::Memory => {
                "use less memory: read fewer columns, work in chunks, delete what is not needed"
            }
            Resource::OutputBytes => "print less: write long output to a file below /workspace",
            Resource::Disk | Resource::Inodes | Resource::FileBytes => {
                "write less, and remove files that are not needed"
            }
            Resource::Processes => "start fewer processes and threads",
            Resource::OpenFiles => "close files after use",
        },
        Outcome::Rejected { .. } => "correct what is listed, and call again",
    };
    hint.to_owned()
}

fn of_exception(exception: &str, message: &str, network: NetworkPolicy) -> &'static str {
    let unreachable = if network == NetworkPolicy::Egress {
        ONLY_PROXY
    } else {
        NO_NETWORK
    };
    match exception {
        "ModuleNotFoundError" | "ImportError" => {
            "use a library that is there, or name the package in `requirements`; nothing can be installed \
             from inside"
        }
        "NameError" => {
            "define it first: variables are those of this session, so pass the handle of the session that \
             has it as `session_id`"
        }
        "FileNotFoundError" => {
            "look at `list_files`, and put files there with `upload_file`; the host's files are not visible"
        }
        "KeyError" | "IndexError" | "AttributeError" => {
            "print what is there (such as `df.columns`), then correct the code"
        }
        "SyntaxError" | "IndentationError" => "correct the syntax at that line; nothing of the cell was run",
        "MemoryError" => "use less memory: read fewer columns, work in chunks, delete what is not needed",
        "gaierror" | "URLError" | "ConnectionError" | "ConnectionRefusedError" => unreachable,
        "OSError" if message.contains("Network") => unreachable,
        _ => "correct the code at that line and run it again; what ran before it is kept",
    }
}

const NO_NETWORK: &str = "there is no network in the sandbox: fetch the data with another tool, and put \
                          it there with `upload_file`";

const ONLY_PROXY: &str = "only HTTP and HTTPS leave the sandbox, through the proxy that `HTTPS_PROXY` \
                          names, to the hosts that the server allows: use such a host, or fetch the data \
                          with another tool, and put it there with `upload_file`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_with_a_way_out_is_not_said_to_have_no_network() {
        let hint = |network| of_exception("gaierror", "Temporary failure in name resolution", network);
        assert_eq!(hint(NetworkPolicy::None), NO_NETWORK);
        assert_eq!(hint(NetworkPolicy::Egress), ONLY_PROXY);
    }
}
