//! Strategies that generate connectors.

use cellblock_protocol::{Bundle, Card, FetchEffect};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use serde_json::Value;

use super::{text, value};

fn card() -> impl Strategy<Value = Card> {
    let effect = prop::sample::select(vec![FetchEffect::Reads, FetchEffect::Writes]);
    (text(), text(), text(), value(), of(any::<bool>()), effect).prop_map(
        |(name, function, description, parameters, returns, effect)| Card {
            name,
            function,
            description,
            parameters,
            returns: returns.map(Value::from),
            effect,
        },
    )
}

pub(super) fn bundle() -> impl Strategy<Value = Bundle> {
    (text(), text(), vec(card(), 0..3), of(text())).prop_map(|(name, description, functions, unavailable)| {
        Bundle {
            name,
            description,
            functions,
            unavailable,
        }
    })
}
