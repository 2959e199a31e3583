//! A run as one document.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_artifact::Store;
use cellblock_interpreter::input::InputFormat;
use cellblock_interpreter::run_record::RunRecord;
use serde::Serialize;

use super::Chain;

/// Maximum size of all inputs in a document.
const INPUTS: u64 = 32 << 20;

/// A run with the runs before it in its sandbox, their code and their inputs.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct RunExport {
    /// `run.export`.
    pub object: &'static str,
    /// The runs, with their code; the last is the one that is exported.
    pub runs: Vec<RunRecord>,
    /// Reason that runs before these are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
    /// Inputs of these runs.
    pub inputs: Vec<ExportedInput>,
}

/// An input of a run.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ExportedInput {
    /// Name in the code.
    pub name: String,
    /// Format of the bytes.
    pub format: InputFormat,
    /// SHA-256 of the bytes, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Bytes as base64; absent if they are omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Reason that the bytes are omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted: Option<String>,
}

impl RunExport {
    /// Reads the inputs of some runs.
    pub async fn of(chain: Chain, store: &Store) -> Self {
        let mut inputs: Vec<ExportedInput> = Vec::new();
        let mut left = INPUTS;
        for input in chain.records.iter().flat_map(|record| &record.inputs) {
            let known = |other: &ExportedInput| other.name == input.name && other.sha256 == input.sha256;
            if inputs.iter().any(known) {
                continue;
            }
            let read = if input.bytes > left {
                Err(format!("all inputs have more than {INPUTS} bytes, the maximum"))
            } else {
                match input.sha256.as_ref().and_then(|it| it.parse().ok()) {
                    Some(id) => {
                        let read = store.get(id).await;
                        read.map_err(|_| "it is no longer in the artifact store".to_owned())
                    }
                    None => Err("it could not be hashed".to_owned()),
                }
            };
            let (data, omitted) = match read {
                Ok(bytes) => {
                    left = left.saturating_sub(bytes.len() as u64);
                    (Some(STANDARD.encode(bytes)), None)
                }
                Err(reason) => (None, Some(reason)),
            };
            inputs.push(ExportedInput {
                name: input.name.clone(),
                format: input.format,
                sha256: input.sha256.clone(),
                data,
                omitted,
            });
        }
        Self {
            object: "run.export",
            runs: chain.records,
            gap: chain.gap,
            inputs,
        }
    }
}
