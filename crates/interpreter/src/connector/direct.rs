//! Connectors without a session: for a person or a program that tries them on the host.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::{Bundle, Connector, FetchRecord, GrantTerms, Grants};
use crate::output::bytes_of;

/// Returns what code sees of connectors. Asks them for their functions.
pub async fn bundles(connectors: &[Arc<dyn Connector>]) -> Vec<Bundle> {
    Grants::new(connectors, GrantTerms::default()).bundles().await
}

/// Calls a function as code in a session would, with the same checks and without the secrets.
/// Returns the record of the call, which says how it ended, and the answer if it is JSON.
pub async fn call(
    connector: Arc<dyn Connector>,
    function: &str,
    arguments: Map<String, Value>,
    until: Instant,
    terms: GrantTerms,
) -> (Option<FetchRecord>, Option<Value>) {
    let name = connector.name().to_owned();
    let grants = Grants::new(&[connector], terms);
    let call = json!({"connector": name, "function": function, "arguments": arguments});
    let answer = grants.fetch(call, until).await.ok();
    let value = answer.and_then(|answer| {
        let json = answer.value["form"] == "json";
        let bytes = bytes_of(answer.blobs.first().filter(|_| json)?).ok()?;
        serde_json::from_slice(&bytes).ok()
    });
    let (mut records, _) = grants.take_records().await;
    (records.pop(), value)
}
