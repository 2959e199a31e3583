//! Arguments of the tools, and the complaints about calls that are wrong, each of which names its field.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_settings::json::{FieldReader, OBJECT, type_of};
use schemars::JsonSchema;
use serde_json::Value;

/// Seconds that a command may run unless its call says otherwise.
pub(crate) const DEFAULT_TIMEOUT: u64 = 60;
/// The longest that a call may ask for, unless a workbench is set up otherwise.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_mins(5);
/// Maximum number of bytes of a file that is written or edited.
pub(crate) const MAX_CONTENT: u64 = 5 * 1024 * 1024;
/// Maximum number of bytes of a command with its arguments. Longer ones have no room in a frame, nor in
/// Linux' own limits.
const MAX_COMMAND: usize = 512 * 1024;

const COMMAND: &str = "an array of strings, such as [\"python\", \"/tmp/analysis.py\"]";
/// Maximum number of packages that a command names.
const MAX_PACKAGES: usize = 50;

/// Arguments of `sandbox_exec`.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ExecArgs {
    /// The program and its arguments, such as `["python", "/tmp/analysis.py"]`. No shell reads it:
    /// for pipes use `["sh", "-c", "…"]`.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Seconds after which it is killed with everything that it has started.
    #[schemars(default = "default_timeout", range(max = 300), extend("exclusiveMinimum" = 0))]
    pub timeout: f64,
    /// Packages that commands need in addition to those of the image, such as `six==1.17.0`. The
    /// session keeps them.
    #[schemars(default, length(max = 50))]
    pub requirements: Vec<String>,
    /// Reason for the call; it changes nothing.
    #[schemars(default)]
    pub reasoning_trace: Option<String>,
}

/// Arguments of `sandbox_write_file`.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WriteArgs {
    /// The file, below /tmp/ or /workspace/. Folders that it needs are made.
    pub file_path: String,
    /// Its whole content, at most 5242880 bytes.
    pub content: String,
    /// Encoding of `content`.
    #[schemars(default)]
    pub encoding: Encoding,
    /// Reason for the call; it changes nothing.
    #[schemars(default)]
    pub reasoning_trace: Option<String>,
}

/// Arguments of `sandbox_edit_file`.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EditArgs {
    /// The file, below /tmp/ or /workspace/.
    pub file_path: String,
    /// The exact text to replace. It must be in the file exactly once.
    #[schemars(length(min = 1))]
    pub old_string: String,
    /// The text to put in its place.
    pub new_string: String,
    /// Reason for the call; it changes nothing.
    #[schemars(default)]
    pub reasoning_trace: Option<String>,
}

/// Arguments of `sandbox_apply_patch`.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PatchArgs {
    /// The patch, from `*** Begin Patch` to `*** End Patch`, at most 1048576 bytes and 50 files.
    #[schemars(length(min = 1))]
    pub patch: String,
    /// Reason for the call; it changes nothing.
    #[schemars(default)]
    pub reasoning_trace: Option<String>,
}

/// Encoding of bytes as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum Encoding {
    /// As UTF-8.
    #[default]
    Text,
    /// As standard base64, for files that are not text.
    Base64,
}

#[expect(clippy::cast_precision_loss, reason = "a small constant")]
const fn default_timeout() -> f64 {
    DEFAULT_TIMEOUT as f64
}

/// Arguments of a call.
type CallArguments<'a> = FieldReader<'a, String>;

impl ExecArgs {
    /// A command with the default timeout.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            timeout: default_timeout(),
            requirements: Vec::new(),
            reasoning_trace: None,
        }
    }

    /// Takes a command that has `longest` at most.
    pub(super) fn parse(args: &Value, longest: Duration) -> Result<Self, String> {
        let fields = arguments(args)?;
        let command = match fields.get("command") {
            None => return Err(missing(&fields, "command")),
            Some(Value::Array(_)) => fields.texts("command")?,
            Some(_) => return Err(fields.wrong("command", COMMAND)),
        };
        let timeout = fields.read("timeout", "a number of seconds", Value::as_f64)?;
        let args = Self {
            command,
            timeout: timeout.unwrap_or_else(|| default_timeout().min(longest.as_secs_f64())),
            requirements: fields.texts("requirements")?,
            reasoning_trace: fields.text("reasoning_trace")?,
        };
        finish(
            &fields,
            &["command", "timeout", "requirements", "reasoning_trace"],
        )?;
        Ok(args)
    }

    /// The time that the command has.
    pub(super) fn check(&self, longest: Duration) -> Result<Duration, String> {
        if self.command.is_empty() {
            return Err("`command` is empty: give a program and its arguments".into());
        }
        if self.command.iter().any(|part| part.contains('\0')) {
            return Err("`command` holds a NUL character, which no program can be given".into());
        }
        let bytes: usize = self.command.iter().map(|part| part.len() + 1).sum();
        if bytes > MAX_COMMAND {
            return Err(format!(
                "`command` has {bytes} bytes (max {MAX_COMMAND}): write a file with sandbox_write_file \
                 and name it instead"
            ));
        }
        if self.requirements.len() > MAX_PACKAGES {
            let packages = self.requirements.len();
            return Err(format!(
                "`requirements` has {packages} packages, the limit is {MAX_PACKAGES}"
            ));
        }
        let maximum = longest.as_secs_f64();
        if self.timeout > maximum {
            return Err(format!("Timeout max is {maximum} seconds"));
        }
        match Duration::try_from_secs_f64(self.timeout) {
            Ok(timeout) if timeout.as_millis() > 0 => Ok(timeout),
            _ => Err(format!("`timeout` must be above 0 seconds, not {}", self.timeout)),
        }
    }
}

impl WriteArgs {
    /// A text file.
    pub fn new(file_path: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            file_path: file_path.into(),
            content: content.into(),
            encoding: Encoding::Text,
            reasoning_trace: None,
        }
    }

    pub(super) fn parse(args: &Value) -> Result<Self, String> {
        let fields = arguments(args)?;
        let encoding = match fields.text("encoding")?.as_deref() {
            None | Some("text") => Encoding::Text,
            Some("base64") => Encoding::Base64,
            Some(other) => {
                return Err(format!(
                    "`encoding` must be \"text\" or \"base64\", not {}",
                    shown(other)
                ));
            }
        };
        let args = Self {
            file_path: required(&fields, "file_path")?,
            content: required(&fields, "content")?,
            encoding,
            reasoning_trace: fields.text("reasoning_trace")?,
        };
        finish(&fields, &["file_path", "content", "encoding", "reasoning_trace"])?;
        Ok(args)
    }

    /// The bytes to write.
    pub(super) fn bytes(self) -> Result<Vec<u8>, String> {
        let bytes = match self.encoding {
            Encoding::Text => self.content.into_bytes(),
            // What could not possibly fit need not be decoded.
            Encoding::Base64 if self.content.len() as u64 > MAX_CONTENT * 2 => self.content.into_bytes(),
            Encoding::Base64 => {
                let mut text = self.content;
                text.retain(|character| !character.is_ascii_whitespace());
                STANDARD
                    .decode(text)
                    .map_err(|error| format!("`content` is not valid base64: {error}"))?
            }
        };
        if bytes.len() as u64 > MAX_CONTENT {
            return Err(format!(
                "Content too large: {} bytes (max {MAX_CONTENT})",
                bytes.len()
            ));
        }
        Ok(bytes)
    }
}

impl EditArgs {
    /// A replacement.
    pub fn new(
        file_path: impl Into<String>,
        old_string: impl Into<String>,
        new_string: impl Into<String>,
    ) -> Self {
        Self {
            file_path: file_path.into(),
            old_string: old_string.into(),
            new_string: new_string.into(),
            reasoning_trace: None,
        }
    }

    pub(super) fn parse(args: &Value) -> Result<Self, String> {
        let fields = arguments(args)?;
        let args = Self {
            file_path: required(&fields, "file_path")?,
            old_string: required(&fields, "old_string")?,
            new_string: required(&fields, "new_string")?,
            reasoning_trace: fields.text("reasoning_trace")?,
        };
        finish(
            &fields,
            &["file_path", "old_string", "new_string", "reasoning_trace"],
        )?;
        Ok(args)
    }
}

impl PatchArgs {
    /// A patch.
    pub fn new(patch: impl Into<String>) -> Self {
        Self {
            patch: patch.into(),
            reasoning_trace: None,
        }
    }

    pub(in crate::toolset) fn parse(args: &Value) -> Result<Self, String> {
        let fields = arguments(args)?;
        let args = Self {
            patch: required(&fields, "patch")?,
            reasoning_trace: fields.text("reasoning_trace")?,
        };
        finish(&fields, &["patch", "reasoning_trace"])?;
        Ok(args)
    }
}

fn arguments(args: &Value) -> Result<CallArguments<'_>, String> {
    CallArguments::of(args, "").map_err(|_| format!("the arguments must be {OBJECT}, not {}", type_of(args)))
}

fn required(fields: &CallArguments<'_>, name: &str) -> Result<String, String> {
    fields.text(name)?.ok_or_else(|| missing(fields, name))
}

fn missing(fields: &CallArguments<'_>, name: &str) -> String {
    // Some models send the whole call as the arguments.
    let wrapper = ["parameters", "arguments", "input"].into_iter().find(|wrapper| {
        let inner = fields.get(wrapper);
        inner.is_some_and(|inner| inner.get(name).is_some())
    });
    match wrapper {
        Some(wrapper) => {
            format!("`{name}` is inside `{wrapper}`; pass what `{wrapper}` holds as the arguments")
        }
        None => format!("`{name}` is missing"),
    }
}

fn finish(fields: &CallArguments<'_>, known: &[&str]) -> Result<(), String> {
    match fields.entries().find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((unknown, _)) => Err(format!(
            "there is no argument {}; the arguments are {}",
            shown(unknown),
            known.join(", ")
        )),
    }
}

/// A short quotation of whatever was given.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    format!("{short:?}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaint(result: Result<impl std::fmt::Debug, String>) -> String {
        result.unwrap_err()
    }

    #[test]
    fn a_complaint_names_the_field() {
        for (args, told) in [
            (json!({}), "`command` is missing"),
            (
                json!({"tool": "sandbox_exec", "parameters": {"command": ["ls"]}}),
                "`command` is inside `parameters`; pass what `parameters` holds as the arguments",
            ),
            (json!([]), "the arguments must be an object, not an array"),
            (
                json!({"command": "ls"}),
                "`command` must be an array of strings, such as [\"python\", \"/tmp/analysis.py\"], not a \
                 string",
            ),
            (
                json!({"command": ["ls", 1]}),
                "`command[1]` must be a string, not a number",
            ),
            (
                json!({"command": ["ls"], "requirements": "six"}),
                "`requirements` must be an array of strings, not a string",
            ),
            (
                json!({"command": ["ls"], "timeout": "60"}),
                "`timeout` must be a number of seconds, not a string",
            ),
            (
                json!({"command": ["ls"], "cwd": "/"}),
                "there is no argument \"cwd\"; the arguments are command, timeout, requirements, \
                 reasoning_trace",
            ),
        ] {
            assert_eq!(complaint(ExecArgs::parse(&args, MAX_TIMEOUT)), told);
        }
        assert_eq!(
            complaint(WriteArgs::parse(&json!({"file_path": "/tmp/a"}))),
            "`content` is missing"
        );
        assert_eq!(
            complaint(WriteArgs::parse(
                &json!({"file_path": "/tmp/a", "content": "x", "encoding": "hex"})
            )),
            "`encoding` must be \"text\" or \"base64\", not \"hex\""
        );
        assert_eq!(
            complaint(EditArgs::parse(
                &json!({"file_path": "/tmp/a", "old_string": 1, "new_string": ""})
            )),
            "`old_string` must be a string, not a number"
        );
    }

    #[test]
    fn a_timeout_is_above_0_and_at_most_300_seconds() {
        let check = |timeout: f64| {
            ExecArgs {
                timeout,
                ..ExecArgs::new(["true"])
            }
            .check(MAX_TIMEOUT)
        };
        assert_eq!(check(300.0), Ok(Duration::from_mins(5)));
        assert_eq!(check(0.5), Ok(Duration::from_millis(500)));
        assert_eq!(complaint(check(300.1)), "Timeout max is 300 seconds");
        for wrong in [0.0, -1.0, f64::NAN, 0.0001] {
            assert!(
                complaint(check(wrong)).starts_with("`timeout` must be above 0 seconds"),
                "{wrong}"
            );
        }
        let default = ExecArgs::parse(&json!({"command": ["true"]}), MAX_TIMEOUT).unwrap();
        assert_eq!(default.check(MAX_TIMEOUT), Ok(Duration::from_mins(1)));
        let short = Duration::from_secs(20);
        let default = ExecArgs::parse(&json!({"command": ["true"]}), short).unwrap();
        assert_eq!(default.check(short), Ok(short));
    }

    #[test]
    fn invalid_commands_are_rejected() {
        assert!(complaint(ExecArgs::new([""; 0]).check(MAX_TIMEOUT)).starts_with("`command` is empty"));
        assert!(complaint(ExecArgs::new(["a\0b"]).check(MAX_TIMEOUT)).contains("NUL"));
        assert!(
            complaint(ExecArgs::new(["x".repeat(MAX_COMMAND)]).check(MAX_TIMEOUT)).contains("(max 524288)")
        );
    }

    #[test]
    fn content_is_counted_in_bytes_after_decoding() {
        let limit = usize::try_from(MAX_CONTENT).unwrap();
        let write = |content: String| WriteArgs::new("/tmp/a", content).bytes();
        assert_eq!(write("é".repeat(limit / 2)).unwrap().len(), limit);
        assert_eq!(
            complaint(write("x".repeat(limit + 1))),
            "Content too large: 5242881 bytes (max 5242880)"
        );
        let encoded = WriteArgs {
            encoding: Encoding::Base64,
            ..WriteArgs::new("/tmp/a", "AAH\n/")
        };
        assert_eq!(encoded.bytes().unwrap(), [0, 1, 255]);
        let broken = WriteArgs {
            encoding: Encoding::Base64,
            ..WriteArgs::new("/tmp/a", "é")
        };
        assert!(complaint(broken.bytes()).starts_with("`content` is not valid base64"));
    }
}
