//! The wire forms: snapshots of what is sent, requests that are read or refused, and the order of events.

mod drafts;
mod namespaces;
mod requests;
mod shell;

use serde_json::{Value, json};

use super::{ApiError, Ids, Response, ResponseRequest};

fn parse(body: &Value) -> Result<ResponseRequest, ApiError> {
    ResponseRequest::parse(body.to_string().as_bytes(), &mut Ids::counted())
}

fn response() -> Response {
    let tools = json!([{"type": "code_interpreter", "container": {"type": "auto"}}]);
    let request = parse(&json!({"model": "m", "input": "go", "tools": tools})).unwrap();
    Response::new(&request, "resp_1".to_owned(), 1_700_000_000)
}
