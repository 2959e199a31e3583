//! A call that did nothing, in words by which a model can repair it.

use std::error::Error as StdError;

use cellblock_interpreter::Error;
use cellblock_interpreter::error::{Blame, Retry};
use cellblock_interpreter::json_error;
use cellblock_interpreter::project::LoadError;
use serde::de::DeserializeOwned;
use serde_json::Value;

use cellblock_interpreter::hosting::MeterDenial;

/// Reason that a call did nothing, and what to do about it. It is an answer of the tool, not an error of the
/// protocol: models do not get to see those.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }

    /// The client gave the call up; nobody reads this.
    pub(crate) fn cancelled() -> Self {
        Self::new("the call was cancelled before it began")
    }
}

impl From<MeterDenial> for Refusal {
    fn from(MeterDenial(why): MeterDenial) -> Self {
        Self::new(format!("nothing was done: {why}"))
    }
}

impl From<LoadError> for Refusal {
    fn from(error: LoadError) -> Self {
        if let LoadError::Store(source) = &error {
            tracing::error!(error = source as &dyn StdError, "could not read datasets");
        }
        Self::new(error.to_string())
    }
}

impl From<Error> for Refusal {
    /// Hides errors that the caller cannot repair; they may name the host's paths, and stay in the log.
    fn from(error: Error) -> Self {
        let log = |what| tracing::warn!(error = &error as &dyn StdError, what);
        match (error.blame(), error.retry()) {
            (Blame::Caller, _) => Self::new(error.to_string()),
            (Blame::Capacity, _) if matches!(error, Error::Conversions { .. }) => {
                Self::new(error.to_string())
            }
            (Blame::Capacity, _) => {
                log("no room for a sandbox");
                let shortage = error.shortage().map_or_else(
                    || "try again in a while, or close sessions that are not needed".to_owned(),
                    |shortage| shortage.to_string(),
                );
                Self::new(format!("no sandbox is available at present: {shortage}"))
            }
            _ if error.is_disk_full() => {
                log("the disk is full");
                Self::new(
                    "nothing was done: the disk of Cellblock's host is full. Tell the user to free space \
                     there, then call the tool again",
                )
            }
            (_, Retry::Never) => {
                log("the sandbox failed");
                Self::new(
                    "the sandbox failed, and trying again will not help: tell the user to look into \
                     Cellblock's log",
                )
            }
            _ => {
                log("the sandbox failed");
                Self::new("the sandbox failed: try again; variables and files of the session may be gone")
            }
        }
    }
}

/// Parses a tool's arguments. Errors name the field.
pub(crate) fn arguments<T: DeserializeOwned>(tool: &str, given: Value) -> Result<T, Refusal> {
    serde_path_to_error::deserialize(given).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." {
            String::new()
        } else {
            format!(" at `{path}`")
        };
        Refusal::new(format!(
            "wrong arguments{place}: {}; see the input schema of `{tool}`",
            json_error::describe(error.inner())
        ))
    })
}

/// A client's name for something that does not exist, as far as a message repeats it.
pub(crate) fn named(name: &str) -> String {
    name.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct RunArguments {
        #[expect(dead_code, reason = "only read")]
        code: String,
    }

    #[test]
    fn a_wrong_argument_is_named() {
        let told = |given| {
            arguments::<RunArguments>("run_python", given)
                .unwrap_err()
                .message
        };
        assert_eq!(
            told(json!({"code": 1})),
            "wrong arguments at `code`: invalid type: integer `1`, expected a string; see the input \
             schema of `run_python`"
        );
        assert_eq!(
            told(json!({})),
            "wrong arguments: missing field `code`; see the input schema of `run_python`"
        );
        assert_eq!(
            told(json!({"code": "", "cod": 1})),
            "wrong arguments at `cod`: unknown field `cod`, expected `code`; see the input \
             schema of `run_python`"
        );
    }

    #[test]
    fn a_wrong_argument_is_described_without_types_of_rust() {
        #[derive(Debug, Deserialize)]
        struct NestedArguments {
            #[expect(dead_code, reason = "only read")]
            inner: RunArguments,
        }
        let refused = arguments::<NestedArguments>("run_python", json!({"inner": 5})).unwrap_err();
        assert_eq!(
            refused.message,
            "wrong arguments at `inner`: invalid type: integer `5`, expected an object; see the input \
             schema of `run_python`"
        );
    }

    #[test]
    fn only_repairable_errors_are_reported_in_their_own_words() {
        let name = "sales".to_owned();
        let reason = "it is not a table".to_owned();
        assert_eq!(
            Refusal::from(Error::Input { name, reason }).message,
            "bind input `sales`: it is not a table"
        );
        let spool = Error::Spool(std::io::Error::other("/var/lib/secret is full"));
        assert!(!Refusal::from(spool).message.contains("secret"));
        let full = std::io::Error::new(std::io::ErrorKind::StorageFull, "/var/lib/secret is full");
        let full = Refusal::from(Error::Spool(full)).message;
        assert!(full.starts_with("nothing was done: the disk"), "{full}");
        assert!(!full.contains("secret"), "{full}");
    }
}
