//! A connector that repeats its secret wherever it can, as servers do in errors and redirects.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, ConnectorErrorKind, FetchAnswer, FetchEffect, Redaction,
};
use cellblock_interpreter::toolset::BoxFuture;
use serde_json::{Map, Value, json};

/// Bytes of an answer of `large`.
const LARGE: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct RepeatingConnector {
    secret: String,
    redaction: Redaction,
}

impl RepeatingConnector {
    pub(crate) fn new(secret: &str) -> Self {
        Self {
            secret: secret.to_owned(),
            redaction: Redaction::new([secret]),
        }
    }

    /// The secret in every form.
    fn forms(&self) -> Value {
        let secret = &self.secret;
        let encoded: Vec<_> = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let base64 = ["", "u", "u:", "us:"].map(|before| STANDARD.encode(format!("{before}{secret}")));
        json!({
            "raw": secret,
            "inside": format!("https://example.com/?key={secret}&next=1"),
            "json": json!({ "key": secret }).to_string(),
            "encoded": encoded.concat(),
            "base64": base64,
            secret.clone(): 1,
        })
    }
}

impl Connector for RepeatingConnector {
    fn name(&self) -> &'static str {
        "repeating"
    }

    fn description(&self) -> &'static str {
        "Repeats."
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let cards = ["echo", "fail", "large"].map(|name| Card {
            name: name.to_owned(),
            description: format!("Uses {}.", self.secret),
            parameters: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
            effect: FetchEffect::Reads,
            ..Card::default()
        });
        Box::pin(async move { Ok(cards.to_vec()) })
    }

    fn fetch(
        &self,
        function: &str,
        _: Map<String, Value>,
        _: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let answer = match function {
            "echo" => Ok(self.forms()),
            "large" => Ok("x".repeat(LARGE).into()),
            _ => Err(ConnectorError::new(
                ConnectorErrorKind::of_status(401, None),
                format!("api_key {} is not registered: {}", self.secret, self.forms()),
            )),
        };
        Box::pin(async move { answer.map(FetchAnswer::Value) })
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}
