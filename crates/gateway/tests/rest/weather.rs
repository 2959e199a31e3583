//! A connector with one function.

use std::sync::Arc;
use std::time::Instant;

use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, FetchAnswer, FetchEffect, Redaction,
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
        let redaction = Redaction::default();
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
            parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
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
        let rows = json!([{"city": arguments["city"], "high": 21}]);
        Box::pin(async move { Ok(rows.into()) })
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}
