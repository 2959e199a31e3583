//! Sampling settings.

use serde::Serialize;

use super::fields::{Fields, RequestFields as _};
use crate::wire::ApiError;

/// Sampling settings under the names of the APIs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SamplingSettings {
    /// Sampling temperature, 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Sampling among the most probable tokens, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Penalty for tokens that occurred before, -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Penalty for tokens that occurred often, -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// Sequences that end the answer; only Chat Completions has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Seed of the sampling; only in Chat Completions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
}

impl SamplingSettings {
    /// Reads the fields that both APIs have.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, ApiError> {
        Ok(Self {
            temperature: fields.number("temperature", 0.0, 2.0)?,
            top_p: fields.number("top_p", 0.0, 1.0)?,
            presence_penalty: fields.number("presence_penalty", -2.0, 2.0)?,
            frequency_penalty: fields.number("frequency_penalty", -2.0, 2.0)?,
            ..Self::default()
        })
    }
}
