//! The suite's jobs, as code that the server's own `run_python` runs: so it is the server's own tasks that are judged.

use rmcp::model::{CallToolRequestParams, JsonObject};
use serde_json::{Value, json};

/// The suite's tools that take their time, and what they are to do.
pub(crate) const JOBS: [(&str, &str); 3] = [
    ("greet", "Greets at once"),
    ("slow_compute", "Takes as many seconds as it is told"),
    ("failing_job", "Fails after a second"),
];

/// The call that does what a job asks for.
pub(crate) fn job(asked: &CallToolRequestParams) -> Option<CallToolRequestParams> {
    let argument = |name: &str| asked.arguments.as_ref().and_then(|all| all.get(name));
    let code = match &*asked.name {
        "slow_compute" => {
            let seconds = argument("seconds").and_then(Value::as_f64).unwrap_or(0.0);
            format!("import time; time.sleep({seconds}); 'computed'")
        }
        "failing_job" => "import time; time.sleep(1); raise ValueError('it always fails')".to_owned(),
        _ => return None,
    };
    let mut arguments = JsonObject::new();
    arguments.insert("code".to_owned(), json!(code));
    let mut call = asked.clone();
    call.name = "run_python".into();
    call.arguments = Some(arguments);
    Some(call)
}
