//! Body of `POST /execute`, and the errors in it.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_interpreter::json_error;
use serde::Deserialize;

use crate::options::ExecuteOptions;

/// The code's own file.
pub(super) const SCRIPT: &str = "script.py";
/// The folder for results.
pub(super) const OUTPUT: &str = "output";

/// Code to run in its own sandbox.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub(crate) struct ExecuteRequest {
    /// The program.
    code: Option<String>,
    /// Timeout in seconds; 30 if it is absent or not positive.
    timeout_seconds: Option<f64>,
    /// Packages to install, as requirement strings.
    requirements: Option<Vec<String>>,
    /// Files in the program's folder: base64 by name; only the last path component of a name is
    /// used.
    files: Option<BTreeMap<String, String>>,
}

/// A request that can be run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) code: String,
    pub(super) timeout: Duration,
    pub(super) requirements: Vec<String>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Job {
    /// Parses a body; fails with the client's error message.
    pub(super) fn read(body: &[u8], options: &ExecuteOptions) -> Result<Self, String> {
        let request: ExecuteRequest = serde_json::from_slice(body)
            .map_err(|error| format!("invalid JSON: {}", json_error::describe(&error)))?;
        let code = request.code.filter(|code| !code.is_empty());
        let code = code.ok_or("code is required")?;
        let mut files = BTreeMap::new();
        for (name, content) in request.files.unwrap_or_default() {
            let base = base_name(&name).ok_or_else(|| format!("files: {name:?} is not a valid file name"))?;
            if base == SCRIPT || base == OUTPUT {
                return Err(format!(
                    "files: `{base}` is the name of the program's own script or folder"
                ));
            }
            let bytes = STANDARD
                .decode(&content)
                .map_err(|error| format!("files: {name:?} is not valid base64: {error}"))?;
            if files.insert(base.to_owned(), bytes).is_some() {
                return Err(format!("files: two of them are called `{base}`"));
            }
        }
        Ok(Self {
            code,
            timeout: timeout(request.timeout_seconds, options)?,
            requirements: request.requirements.unwrap_or_default(),
            files,
        })
    }
}

fn timeout(asked: Option<f64>, options: &ExecuteOptions) -> Result<Duration, String> {
    match asked {
        Some(seconds) if seconds > 0.0 => {
            let limit = options.max_timeout;
            let timeout = Duration::try_from_secs_f64(seconds).ok();
            let timeout = timeout.filter(|timeout| *timeout <= limit);
            timeout.map(|it| it.max(Duration::from_millis(1))).ok_or_else(|| {
                format!(
                    "timeout_seconds is {seconds}, the limit is {}",
                    limit.as_secs_f64()
                )
            })
        }
        _ => Ok(options.timeout),
    }
}

fn base_name(name: &str) -> Option<&str> {
    let base = name.trim_end_matches('/').rsplit('/').next()?;
    let usable = !matches!(base, "" | "." | "..")
        && base.len() <= 255
        && !base.chars().any(cellblock_interpreter::text::acts);
    usable.then_some(base)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(body: &Value) -> Result<Job, String> {
        Job::read(body.to_string().as_bytes(), &ExecuteOptions::default())
    }

    #[test]
    fn seconds_are_numbers_of_any_kind_and_thirty_where_there_are_none() {
        for (asked, seconds) in [
            (json!(7), 7.0),
            (json!(2.5), 2.5),
            (json!(1e2), 100.0),
            (json!(0), 30.0),
            (json!(-3), 30.0),
            (json!(null), 30.0),
            (json!(3600), 3600.0),
        ] {
            let job = read(&json!({"code": "1", "timeout_seconds": asked})).unwrap();
            assert_eq!(job.timeout, Duration::from_secs_f64(seconds), "{asked}");
        }
        assert_eq!(
            read(&json!({"code": "1"})).unwrap().timeout,
            Duration::from_secs(30)
        );
        let refused = read(&json!({"code": "1", "timeout_seconds": 3601})).unwrap_err();
        assert_eq!(refused, "timeout_seconds is 3601, the limit is 3600");
        assert!(read(&json!({"code": "1", "timeout_seconds": "7"})).is_err());
    }

    #[test]
    fn the_last_part_of_a_name_counts_and_names_that_are_none_are_refused() {
        let job = read(&json!({"code": "1", "files": {"/a/b.csv": "eA=="}})).unwrap();
        assert_eq!(job.files, [("b.csv".to_owned(), b"x".to_vec())].into());
        for name in ["", "..", "a/..", "/", "a\u{0}b", "x/script.py", "output"] {
            assert!(
                read(&json!({"code": "1", "files": {name: ""}})).is_err(),
                "{name:?}"
            );
        }
        let twice = json!({"code": "1", "files": {"a/x": "", "b/x": ""}});
        assert_eq!(read(&twice).unwrap_err(), "files: two of them are called `x`");
        assert!(
            read(&json!({"code": "1", "files": {"x": "!"}}))
                .unwrap_err()
                .contains("base64")
        );
    }

    #[test]
    fn code_is_required() {
        for body in [json!({}), json!({"code": ""}), json!({"code": null})] {
            assert_eq!(read(&body).unwrap_err(), "code is required");
        }
        assert!(
            Job::read(b"{", &ExecuteOptions::default())
                .unwrap_err()
                .starts_with("invalid JSON: ")
        );
    }
}
