//! Calls from code that publish and load datasets.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::Arc;

use cellblock_artifact::ArtifactError;
use cellblock_protocol::{Blob, CallError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::load::{self, LoadError};
use super::publication::Publication;
use super::publish::{self, Evidence, PublishError};
use super::{DatasetVersion, ProjectMember, PublishedDataset};
use crate::connector::Grants;
use crate::host_call::{HostCall, HostReply, shown};
use crate::lineage::VariableOrigin;
use crate::output::DecodingLimits;

/// Maximum number of columns and datasets in an answer.
const LISTED: usize = 1_000;

/// Calls of a cell in its session's project.
#[derive(Clone, Debug)]
pub(crate) struct ProjectCalls {
    pub(crate) member: Arc<ProjectMember>,
    /// The number of the cell.
    pub(crate) cell: u64,
    pub(crate) producer: Option<String>,
    /// Origins of the variables before the cell.
    pub(crate) origins: Arc<BTreeMap<String, VariableOrigin>>,
    /// Fetches of the cell.
    pub(crate) grants: Grants,
    pub(crate) limits: DecodingLimits,
}

/// Parameters of the methods `dataset.load` and `dataset.read`.
#[derive(Deserialize)]
struct DatasetName {
    slug: String,
}

impl ProjectCalls {
    /// Answers a call of a method that begins with `dataset.`.
    pub(crate) async fn call(self, call: HostCall) -> Result<HostReply, CallError> {
        let HostCall {
            method,
            params,
            mut blobs,
            ..
        } = call;
        match method.as_str() {
            "dataset.list" => self.list().await,
            "dataset.read" => self.read(parsed(params)?).await,
            "dataset.load" => self.load(parsed(params)?).await,
            "dataset.publish" => {
                let table = blobs
                    .pop()
                    .ok_or_else(|| failed("invalid_call", "the call has no table"))?;
                self.publish(parsed(params)?, table).await
            }
            other => Err(failed(
                "unknown_method",
                format!("the host offers no method `{}` to this session", shown(other)),
            )),
        }
    }

    async fn list(&self) -> Result<HostReply, CallError> {
        let datasets = self.member.project.datasets().await;
        let datasets = datasets.map_err(|error| stored(&error))?;
        let listed = datasets.iter().take(LISTED).map(|dataset| {
            let current = &dataset.current;
            json!({
                "slug": dataset.slug,
                "title": dataset.title,
                "rows": current.rows,
                "columns": current.columns.len(),
                "versions": dataset.versions,
                "published_at": current.published_at(),
                "session": current.session,
                "producer": current.producer,
                "seen": self.member.may_load(dataset),
            })
        });
        Ok(answer(listed.collect()))
    }

    async fn read(&self, DatasetName { slug }: DatasetName) -> Result<HostReply, CallError> {
        let dataset = load::find(&self.member.project, &slug).await;
        let dataset = dataset.map_err(|error| not_loaded(&error))?;
        self.member.read_by_code(&slug);
        Ok(answer(described(&dataset)))
    }

    async fn load(&self, DatasetName { slug }: DatasetName) -> Result<HostReply, CallError> {
        let loaded = load::load(&self.member, &slug).await;
        let load::LoadedDataset { slug, version, file } = loaded.map_err(|error| not_loaded(&error))?;
        let DatasetVersion {
            sha256,
            library,
            bytes,
            ..
        } = version;
        self.member.loaded(format!("{slug}@{sha256}"));
        Ok(HostReply {
            value: json!({"slug": slug, "library": library, "sha256": sha256}),
            blobs: vec![Blob::File(file, bytes)],
        })
    }

    async fn publish(self, publication: Publication, table: Blob) -> Result<HostReply, CallError> {
        let (fetches, artifacts) = self.grants.references();
        let variable = publication.variable.as_ref();
        let evidence = Evidence {
            cell: self.cell,
            producer: self.producer,
            origin: variable.and_then(|name| self.origins.get(name).cloned()),
            fetches,
            artifacts,
        };
        let published = publish::publish(&self.member, publication, table, self.limits, evidence).await;
        let dataset = published.map_err(|error| {
            if let Some(source) = error.source() {
                tracing::warn!(error = source, "could not publish a dataset");
            }
            let code = match &error {
                PublishError::Argument(_) => "invalid_argument",
                _ => "not_published",
            };
            failed(code, error.to_string())
        })?;
        Ok(answer(described(&dataset)))
    }
}

/// Describes a dataset for code.
fn described(dataset: &PublishedDataset) -> Value {
    let mut value = json!(dataset);
    value["current"]["published_at"] = dataset.current.published_at().into();
    if let Some(columns) = value["current"]["columns"].as_array_mut() {
        columns.truncate(LISTED);
    }
    value
}

fn parsed<T: for<'de> Deserialize<'de>>(params: Value) -> Result<T, CallError> {
    serde_json::from_value(params)
        .map_err(|error| failed("invalid_call", format!("the call is malformed: {error}")))
}

fn answer(value: Value) -> HostReply {
    HostReply {
        value,
        blobs: Vec::new(),
    }
}

fn not_loaded(error: &LoadError) -> CallError {
    if let Some(source) = error.source() {
        tracing::warn!(error = source, "could not load a dataset");
    }
    failed("not_loaded", error.to_string())
}

fn stored(error: &ArtifactError) -> CallError {
    tracing::warn!(error = error as &dyn std::error::Error, "could not list datasets");
    failed(
        "not_loaded",
        "the artifact store failed; its operator's log has the reason",
    )
}

fn failed(code: &str, message: impl Into<String>) -> CallError {
    CallError {
        code: code.to_owned(),
        message: message.into(),
        details: Value::Null,
    }
}
