//! What to try after a cell that did not complete.

use cellblock_interpreter::Execution;
use cellblock_interpreter::execution::{Outcome, Resource};
use cellblock_interpreter::output::Exception;

/// What to try. The outcome's own note, if there is one, has said what became of variables.
pub(super) fn after(execution: &Execution, raised: Option<&Exception>) -> String {
    let hint = match &execution.outcome {
        Outcome::Completed => "",
        Outcome::Raised => raised.map_or("correct the code and run it again", |it| {
            of_exception(&it.exception, &it.message)
        }),
        Outcome::Interrupted => {
            "do less in one call, work on a sample first, or ask for more time with `timeout_seconds` (its description says how much there is)"
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

fn of_exception(exception: &str, message: &str) -> &'static str {
    match exception {
        "ModuleNotFoundError" | "ImportError" => {
            "use a library that is there, or name the package in `requirements`; nothing can be installed from inside"
        }
        "NameError" => {
            "define it first: variables are those of this session, so pass the handle of the session that has it as `session`"
        }
        "FileNotFoundError" => {
            "look at `list_files`, and put files there with `upload_file`; the host's files are not visible"
        }
        "KeyError" | "IndexError" | "AttributeError" => {
            "print what is there (such as `df.columns`), then correct the code"
        }
        "SyntaxError" | "IndentationError" => "correct the syntax at that line; nothing of the cell was run",
        "MemoryError" => "use less memory: read fewer columns, work in chunks, delete what is not needed",
        "gaierror" | "URLError" | "ConnectionError" | "ConnectionRefusedError" => NO_NETWORK,
        "OSError" if message.contains("Network") => NO_NETWORK,
        _ => "correct the code at that line and run it again; what ran before it is kept",
    }
}

const NO_NETWORK: &str = "there is no network in the sandbox: fetch the data with another tool, and put it there with `upload_file`";
