//! A connector whose calls that write need approval, and that remembers them.

use std::sync::Arc;
use std::time::Instant;

use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, FetchAnswer, FetchEffect, Redaction, WriteApproval, with_approval,
};
use cellblock_interpreter::toolset::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// The connector `shop`.
#[derive(Debug, Default)]
pub(crate) struct Shop {
    redaction: Redaction,
    written: Mutex<Vec<String>>,
}

impl Shop {
    /// Returns it, and the connector that needs approval.
    pub(crate) fn open() -> (Arc<Self>, Arc<dyn Connector>) {
        let shop = Arc::new(Self::default());
        let connector = with_approval(Arc::clone(&shop) as _, WriteApproval::Rehearse);
        (shop, connector)
    }

    /// Returns what was written, such as `1=2.5`.
    pub(crate) fn written(&self) -> Vec<String> {
        self.written.lock().clone()
    }
}

impl Connector for Shop {
    fn name(&self) -> &'static str {
        "shop"
    }

    fn description(&self) -> &'static str {
        "Prices of a shop."
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let card = |name: &str, parameters: &Value, effect| Card {
            name: name.to_owned(),
            parameters: json!({"type": "object", "properties": parameters}),
            effect,
            ..Card::default()
        };
        let sku = json!({"type": "integer"});
        let cards = vec![
            card("get_price", &json!({"sku": sku}), FetchEffect::Reads),
            card(
                "set_price",
                &json!({"sku": sku, "price": {"type": "number"}}),
                FetchEffect::Writes,
            ),
        ];
        Box::pin(async move { Ok(cards) })
    }

    fn fetch(
        &self,
        function: &str,
        arguments: Map<String, Value>,
        _: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        if function == "set_price" {
            let written = format!("{}={}", arguments["sku"], arguments["price"]);
            self.written.lock().push(written);
        }
        Box::pin(async { Ok(json!({"price": 2}).into()) })
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}
