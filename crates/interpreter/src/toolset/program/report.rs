//! Arguments of a run of a program, and its report, which comes from the sandbox and is not trusted.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Maximum number of bytes of a report.
pub(super) const MAX_BYTES: u64 = 24 << 20;
/// Maximum number of calls of a program.
const MAX_CALLS: usize = 1000;
/// Maximum number of calls that wait at the same time.
const MAX_OPEN_CALLS: usize = 128;
/// Maximum number of characters of a call's arguments as JSON, and of those of all calls that wait.
const MAX_ARGUMENT: usize = 1 << 20;
const MAX_OPEN: usize = 4 << 20;
/// Maximum number of characters of a program's text.
const MAX_TEXT: usize = 1 << 20;
/// Maximum number of images that a program shows, and of characters of their URLs.
const MAX_IMAGES: usize = 8;
const MAX_IMAGE: usize = 4 << 20;
/// Maximum number of characters of a program's error.
const MAX_ERROR: usize = 10_000;

/// Arguments of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramArguments {
    /// The program.
    pub code: String,
    /// Names of the functions that it may call.
    pub functions: Vec<String>,
    /// Its calls so far, in their order, with their answers.
    pub calls: Vec<AnsweredCall>,
    /// Start of its first run in milliseconds since 1970: its clock stands there in each run.
    pub started_ms: u64,
}

/// A call of a program that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredCall {
    /// Name of the function.
    pub name: String,
    /// Its arguments as JSON, as the program wrote them.
    pub arguments: String,
    /// The answer: JSON, or text.
    pub output: String,
}

/// A call of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCall {
    /// Name of the function.
    pub name: String,
    /// Its arguments as JSON.
    pub arguments: String,
}

/// State of a program after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramState {
    /// It waits for its calls.
    Waits,
    /// It came to its end.
    Ended,
    /// It threw, was stopped or could not be run.
    Failed,
}

/// Report of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// Its state.
    pub state: ProgramState,
    /// Text that it showed.
    pub text: String,
    /// `data:` URLs of the images that it showed.
    pub images: Vec<String>,
    /// Reason that it failed.
    pub error: Option<String>,
    /// Calls that it waits for, in their order.
    pub calls: Vec<ProgramCall>,
}

impl ProgramArguments {
    /// Returns the input of the harness, which stops the program after this time.
    pub(super) fn input(&self, timeout: Duration) -> Value {
        let mut input = json!(self);
        input["timeout_ms"] = json!(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        input["limits"] = json!({
            "calls": MAX_CALLS,
            "open_calls": MAX_OPEN_CALLS,
            "argument_chars": MAX_ARGUMENT,
            "open_chars": MAX_OPEN,
            "text_chars": MAX_TEXT,
            "images": MAX_IMAGES,
            "image_chars": MAX_IMAGE,
            "error_chars": MAX_ERROR,
        });
        input
    }
}

impl ProgramReport {
    /// Creates the report of a program that failed for this reason.
    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            state: ProgramState::Failed,
            text: String::new(),
            images: Vec::new(),
            error: Some(error.into()),
            calls: Vec::new(),
        }
    }

    /// Reads a report of a sandbox. The error says what is wrong with it.
    pub(super) fn read(bytes: &[u8], functions: &[String]) -> Result<Self, String> {
        let mut report: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("its report is invalid ({error})"))?;
        if report.state != ProgramState::Waits {
            // Calls that nobody awaits are dropped.
            report.calls.clear();
        }
        if let Some(error) = &mut report.error
            && error.chars().count() > MAX_ERROR
        {
            *error = error.chars().take(MAX_ERROR).collect();
        }
        let total = |texts: &mut dyn Iterator<Item = &String>| texts.map(String::len).sum::<usize>();
        // UTF-8 has at most three bytes for each character that JavaScript counts.
        for (what, actual, most) in [
            ("bytes of text", report.text.len(), 3 * MAX_TEXT),
            ("images", report.images.len(), MAX_IMAGES),
            ("bytes of images", total(&mut report.images.iter()), MAX_IMAGE),
            ("waiting calls", report.calls.len(), MAX_OPEN_CALLS),
            (
                "bytes of arguments",
                total(&mut report.calls.iter().map(|call| &call.arguments)),
                3 * MAX_OPEN,
            ),
        ] {
            if actual > most {
                return Err(format!("it has {actual} {what}, the limit is {most}"));
            }
        }
        if report.state == ProgramState::Waits && report.calls.is_empty() {
            return Err("it waits for no call".to_owned());
        }
        if let Some(image) = report.images.iter().find(|image| !is_image(image)) {
            let start: String = image.chars().take(40).collect();
            return Err(format!(
                "its image `{}` is not a valid `data:` URL",
                start.escape_debug()
            ));
        }
        for ProgramCall { name, arguments } in &report.calls {
            if !functions.contains(name) {
                let start: String = name.chars().take(40).collect();
                return Err(format!(
                    "it calls the unknown function `{}`",
                    start.escape_debug()
                ));
            }
            if serde_json::from_str::<Map<String, Value>>(arguments).is_err() {
                return Err(format!("the arguments of its call of `{name}` are not an object"));
            }
        }
        Ok(report)
    }
}

/// Returns whether a text is the URL of a picture that fits on one line of a result.
fn is_image(url: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=.-".contains(&byte);
    url.strip_prefix("data:image/")
        .and_then(|rest| rest.split_once(";base64,"))
        .is_some_and(|(kind, data)| kind.bytes().chain(data.bytes()).all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(report: &Value) -> Result<ProgramReport, String> {
        ProgramReport::read(report.to_string().as_bytes(), &["price".to_owned()])
    }

    fn report(state: &str, calls: &Value) -> Value {
        json!({"state": state, "text": "", "images": [], "error": null, "calls": calls})
    }

    #[test]
    fn a_report_with_calls_of_the_functions_is_read() {
        let calls = json!([{"name": "price", "arguments": "{\"sku\":\"A\"}"}]);
        let waits = read(&report("waits", &calls)).unwrap();
        assert_eq!(waits.calls[0].name, "price");
        // Nobody waits for these.
        assert!(read(&report("ended", &calls)).unwrap().calls.is_empty());
    }

    #[test]
    fn a_forged_report_is_rejected_with_the_reason() {
        let call = |name: &str, arguments: &str| json!([{"name": name, "arguments": arguments}]);
        let mut picture = report("ended", &json!([]));
        picture["images"] = json!(["https://example.com/a.png"]);
        let many = vec![json!({"name": "price", "arguments": "{}"}); MAX_OPEN_CALLS + 1];
        for (forged, reason) in [
            (report("waits", &json!([])), "waits for no call"),
            (report("waits", &call("rm", "{}")), "unknown function `rm`"),
            (report("waits", &call("price", "[]")), "not an object"),
            (
                report("waits", &json!(many)),
                "129 waiting calls, the limit is 128",
            ),
            (report("sleeps", &json!([])), "report is invalid"),
            (picture, "not a valid `data:` URL"),
        ] {
            let error = read(&forged).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let long = json!({"state": "failed", "text": "", "images": [], "calls": [],
                          "error": "ä".repeat(MAX_ERROR + 1)});
        assert_eq!(read(&long).unwrap().error.unwrap().chars().count(), MAX_ERROR);
    }

    #[test]
    fn the_harness_knows_every_limit_and_the_time() {
        let arguments = ProgramArguments {
            code: "text(1)".to_owned(),
            functions: Vec::new(),
            calls: Vec::new(),
            started_ms: 5,
        };
        let input = arguments.input(Duration::from_secs(2));
        assert_eq!(
            (&input["timeout_ms"], &input["started_ms"]),
            (&json!(2000), &json!(5))
        );
        let limits = input["limits"].as_object().unwrap();
        for (name, limit) in limits {
            assert!(limit.as_u64().is_some_and(|limit| limit > 0), "{name}");
            assert!(
                super::super::HARNESS.contains(&format!("limits.{name}")),
                "{name}"
            );
        }
    }
}
