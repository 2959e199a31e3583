//! An answer for the client and for the model.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_agent::wire::{CallFault, CallReport, FunctionOutput, InterpreterOutput, ItemStatus, Part};
use cellblock_interpreter::render;

use super::answer::{CodeFile, ExecuteEnd, ExecuteServerAnswer};

/// Tokens of text that a model reads of each stream.
const TOKENS: usize = 4000;
/// Maximum number of bytes of a picture that a model is shown.
const PICTURE: usize = 4 << 20;
/// Note for models about a server that keeps nothing.
pub const NOTHING_KEPT: &str = "Nothing is kept from call to call here: the next call starts without \
                                these variables and files, so it has to define and write again what it \
                                needs. Files for the user go into the directory that the environment \
                                variable OUTPUT_DIR names.";

/// Output for the client, and for the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownAnswer {
    /// Status of the call.
    pub status: ItemStatus,
    /// For the client.
    pub outputs: Vec<InterpreterOutput>,
    /// For the model.
    pub result: FunctionOutput,
    /// For clients that receive details.
    pub report: CallReport,
}

/// Shows what came of code. `limit` is what it was given, in seconds.
pub fn show(executed: &ExecuteServerAnswer, limit: f64) -> ShownAnswer {
    let mut shown = Parts::default();
    if !executed.stdout.is_empty() {
        shown.say(render::stream(&executed.stdout, TOKENS));
    }
    if !executed.stderr.is_empty() {
        shown.say(format!("[stderr]\n{}", render::stream(&executed.stderr, TOKENS)));
    }
    let mut files = Vec::new();
    for file in &executed.files {
        match picture(file) {
            Some(kind) if file.bytes.len() <= PICTURE => shown.show(kind, &file.bytes),
            _ => files.push(format!("{} ({} bytes)", file.name, file.bytes.len())),
        }
    }
    if !files.is_empty() {
        shown.say(format!("[files]\n{}", files.join("\n")));
    }
    for skipped in &executed.skipped {
        shown.say(format!("[file left out] {skipped}"));
    }
    match executed.ended {
        ExecuteEnd::Succeeded => shown.parts.push(Part::InputText {
            text: "[exit code] 0".to_owned(),
        }),
        ExecuteEnd::Failed(Some(code)) => shown.say(format!("[exit code] {code}")),
        ExecuteEnd::Failed(None) => shown.say("The code ended with an error.".to_owned()),
        ExecuteEnd::NotInstalled => {
            shown.say("The code was not run, as what it requires could not be installed.".to_owned());
        }
        ExecuteEnd::Stopped => shown.say(format!(
            "The code was stopped, or could not be started; it had {limit} s. Do less in one call."
        )),
    }
    shown.parts.push(Part::InputText {
        text: NOTHING_KEPT.to_owned(),
    });
    ShownAnswer {
        status: match executed.ended {
            ExecuteEnd::Succeeded | ExecuteEnd::Failed(_) => ItemStatus::Completed,
            ExecuteEnd::Stopped => ItemStatus::Incomplete,
            ExecuteEnd::NotInstalled => ItemStatus::Failed,
        },
        outputs: shown.outputs,
        result: FunctionOutput::Parts(shown.parts),
        report: report(executed),
    }
}

fn report(executed: &ExecuteServerAnswer) -> CallReport {
    let (return_code, failure) = match executed.ended {
        ExecuteEnd::Succeeded => (0, None),
        ExecuteEnd::Failed(code) => (code.and_then(|code| i32::try_from(code).ok()).unwrap_or(1), None),
        ExecuteEnd::NotInstalled => (2, None),
        ExecuteEnd::Stopped => (124, Some(CallFault::TimedOut)),
    };
    CallReport {
        stdout: executed.stdout.clone(),
        stderr: executed.stderr.clone(),
        return_code,
        failure,
        ..CallReport::default()
    }
}

#[derive(Default)]
struct Parts {
    parts: Vec<Part>,
    outputs: Vec<InterpreterOutput>,
}

impl Parts {
    fn say(&mut self, text: String) {
        self.outputs.push(InterpreterOutput::Logs { logs: text.clone() });
        self.parts.push(Part::InputText { text });
    }

    fn show(&mut self, kind: &str, bytes: &[u8]) {
        let url = format!("data:{kind};base64,{}", STANDARD.encode(bytes));
        self.outputs.push(InterpreterOutput::Image { url: url.clone() });
        self.parts.push(Part::InputImage {
            image_url: Some(url),
            file_id: None,
            detail: "auto".to_owned(),
        });
    }
}

/// The kind of a picture, by its first bytes: names say what their owner likes.
pub(super) fn picture(file: &CodeFile) -> Option<&'static str> {
    let bytes = &file.bytes;
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}
