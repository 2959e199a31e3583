//! A connector with one function.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, ConnectorErrorKind, FetchAnswer, FetchEffect, MemoPolicy, Redaction,
};
use cellblock_interpreter::toolset::BoxFuture;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(crate) struct Weather {
    name: &'static str,
    redaction: Redaction,
}

impl Weather {
    pub(crate) fn named(name: &'static str) -> Arc<dyn Connector> {
        let redaction = Redaction::new(["key-of-the-operator"]);
        Arc::new(Self { name, redaction })
    }
}

impl Connector for Weather {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &'static str {
        "Forecasts."
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let card = Card {
            name: "get_forecast".to_owned(),
            description: "Returns a forecast.".to_owned(),
            parameters: json!({"type": "object", "properties": {"city": {"type": "string"}},
                "required": ["city"]}),
            effect: FetchEffect::Reads,
            ..Card::default()
        };
        Box::pin(async move { Ok(vec![card]) })
    }

    fn fetch(
        &self,
        _: &str,
        arguments: Map<String, Value>,
        _: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let row = |city: Value| json!({"city": city, "high": 21});
        let answer = match arguments["city"].as_str() {
            Some("everywhere") => {
                let rows: Vec<_> = (0..12)
                    .map(|number| row(format!("city {number}").into()))
                    .collect();
                FetchAnswer::records(&rows)
            }
            Some("Atlantis") => {
                let kind = ConnectorErrorKind::Provider { status: Some(503) };
                Err(ConnectorError::new(
                    kind,
                    "the far side has sunk: key-of-the-operator",
                ))
            }
            _ => Ok(json!([row(arguments["city"].clone())]).into()),
        };
        Box::pin(async move { answer })
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    fn memo(&self) -> MemoPolicy {
        match self.name {
            "climate" => MemoPolicy::Shared(Duration::from_mins(15)),
            _ => MemoPolicy::default(),
        }
    }
}
