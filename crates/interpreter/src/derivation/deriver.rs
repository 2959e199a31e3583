//! A derivation as a turn drives it.

use serde_json::Value;

use super::derived::Derived;
use super::render_chart::ChartCall;
use super::run::Derivation;
use crate::contract::{ArtifactKind, DerivationCall};
use crate::error::Result;
use crate::rejection::Rejection;
use crate::turn::{self, Deriver};

/// Tokens that a model reads of one call.
const TOKENS: usize = 4000;

impl Deriver for Derivation {
    async fn derive(&mut self, call: DerivationCall) -> Result<turn::Derived> {
        Ok(told(&Self::derive(self, &call).await?))
    }

    fn refuse(&mut self, rejections: Vec<Rejection>) -> turn::Derived {
        told(&Self::refuse(self, "", rejections))
    }

    async fn render_chart(&mut self, arguments: &Value) -> Result<turn::Derived> {
        let derived = match ChartCall::read(arguments) {
            Ok(call) => Self::render_chart(self, &call).await?,
            Err(rejections) => Self::refuse(self, "", rejections),
        };
        Ok(told(&derived))
    }

    async fn close(&mut self) {
        if let Err(error) = self.session().close().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "could not end the sandbox in order"
            );
        }
    }

    fn abandon(&mut self) {
        // Its task ends the sandbox once the handle that is dropped with this is gone; a cell must not hold that up.
        self.session().interrupt();
    }
}

impl Derived {
    /// What a turn has to know of it.
    pub fn told(&self) -> turn::Derived {
        told(self)
    }
}

fn told(derived: &Derived) -> turn::Derived {
    let artifacts = derived.artifacts.iter().filter_map(|artifact| {
        Some(turn::Emitted {
            kind: ArtifactKind::of_name(artifact.kind())?,
            sha256: artifact.id().to_string(),
        })
    });
    turn::Derived {
        ok: derived.ok(),
        rejections: derived.rejections().to_vec(),
        failure: derived.failure().map(|(what, _)| what),
        attempts_left: derived.attempts_left,
        artifacts: artifacts.collect(),
        alias: derived.output_alias.clone(),
        text: derived.for_model(TOKENS),
    }
}
