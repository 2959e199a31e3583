//! `PUT /v1/sessions/{id}/inputs/{name}`: data that code finds bound to a name.

use std::borrow::Borrow;
use std::pin::pin;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_agent::wire::{ApiError, ErrorKind};
use cellblock_artifact::ArtifactId;
use cellblock_interpreter::Input;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::hosting::uploads::{DeclaredSize, SpooledUpload};
use cellblock_interpreter::input::InputFormat;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::body;
use crate::artifacts;
use crate::json::Json;
use crate::problem::Problem;
use crate::state::sessions::{RestSession, SessionInput, lock};
use crate::state::{Caller, Gateway};

/// Data in a request: one of `value`, `data` and `artifact`.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = Given)]
pub(crate) struct InputValue {
    /// Any JSON value, bound as the equivalent Python object. It goes there as it was sent: numbers
    /// have any size.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<Object>)]
    pub(super) value: Option<Box<RawValue>>,
    /// Bytes as base64, in `format`.
    pub(super) data: Option<String>,
    /// The sha256 of one of the caller's artifacts, in `format`.
    pub(super) artifact: Option<String>,
    /// `csv`, `tsv`, `parquet`, `json`, `ndjson`, `arrow`, `xlsx`, `bytes`, or `value` for a JSON document.
    #[schema(value_type = Option<String>)]
    pub(super) format: Option<InputFormat>,
}

/// Format in which the bytes of a body are read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FormatQuery {
    format: Option<InputFormat>,
}

/// An input that was bound.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct InputBound {
    /// `session.input`.
    object: &'static str,
    /// Its name in the code.
    name: String,
    format: InputFormat,
    /// Its size.
    bytes: u64,
    /// Detected properties, in words, if the file is not plain: separator, decimal mark, encoding,
    /// compression, sheet, and columns that are left as text because their values could mean two things. The
    /// next cell's `note` says it, too.
    detected: Vec<String>,
}

/// Binds an input: the body's bytes with a `format` or a matching content type; or, as
/// `application/json` without a `format`, one of `value`, `data` and `artifact`.
#[utoipa::path(
    put, operation_id = "bind_input", path = "/v1/sessions/{id}/inputs/{name}", tag = "sessions",
    params(
        ("id" = String, Path),
        ("name" = String, Path, description = "A Python identifier"),
        ("format" = Option<String>, Query, description = "Format of the body"),
    ),
    request_body(content((InputValue = "application/json"), (Vec<u8> = "application/octet-stream"))),
    responses(
        (status = 200, description = "The input was bound", body = crate::openapi::InputBound),
        (status = 400, description = "The input cannot be bound", body = crate::openapi::Error),
        (status = 404, description = "There is no such session or artifact", body = crate::openapi::Error),
        (status = 408, description = "It took longer than `uploads.timeout`", body = crate::openapi::Error),
        (status = 413, description = "It is too large", body = crate::openapi::Error),
        (
            status = 429,
            description = "A quota of the key is used up, or too many bytes are being received",
            body = crate::openapi::Error
        ),
    )
)]
pub(crate) async fn put(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, name)): Path<(String, String)>,
    Query(query): Query<FormatQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<InputBound>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let bound = if query.format.is_none() && body::is_json(&headers) {
        let bytes = to_bytes(body, gateway.options.http.max_body)
            .await
            .map_err(|_| Problem::body_too_large(gateway.options.http.max_body))?;
        let given: InputValue = body::json(&headers, &bytes)?;
        let _turn = held.turn().await?;
        bind_given(&gateway, &caller, &held, &name, given).await?
    } else {
        let format = query.format.or_else(|| format_of(&headers)).ok_or_else(|| {
            Problem::invalid(
                "format",
                "say how the bytes are read: `?format=csv`, or a content type such as `text/csv`",
            )
        })?;
        let size = DeclaredSize::of(&headers);
        let mut upload = gateway.begin_upload(&caller, size, gateway.max_upload()).await?;
        let received = upload.receive(body.into_data_stream()).await?;
        let _turn = held.turn().await?;
        bind(&gateway, &held, &name, format, received).await?
    };
    Ok(Json(bound))
}

/// Binds what a request gives.
pub(super) async fn bind_given(
    gateway: &Gateway,
    caller: &Caller,
    held: &RestSession,
    name: &str,
    given: InputValue,
) -> Result<InputBound, Problem> {
    let (received, format) = file_of(gateway, caller, given, &format!("inputs.{name}")).await?;
    bind(gateway, held, name, format, received).await
}

/// Puts what a request gives into a file.
pub(super) async fn file_of(
    gateway: &Gateway,
    caller: &Caller,
    given: InputValue,
    field: &str,
) -> Result<(SpooledUpload, InputFormat), Problem> {
    let wants_format = || {
        Problem::invalid(
            &format!("{field}.format"),
            "say how the bytes are read, such as \"csv\"",
        )
    };
    match given {
        InputValue {
            value: Some(value),
            data: None,
            artifact: None,
            format: None | Some(InputFormat::Value),
        } => {
            let bytes = value.get().as_bytes().to_vec();
            Ok((gateway.spool(caller, bytes).await?, InputFormat::Value))
        }
        InputValue {
            value: None,
            data: Some(data),
            artifact: None,
            format,
        } => {
            let format = format.ok_or_else(wants_format)?;
            let bytes = STANDARD.decode(data).map_err(|error| {
                Problem::invalid(
                    &format!("{field}.data"),
                    format!("it is not valid base64: {error}"),
                )
            })?;
            Ok((gateway.spool(caller, bytes).await?, format))
        }
        InputValue {
            value: None,
            data: None,
            artifact: Some(sha256),
            format,
        } => {
            let format = format.ok_or_else(wants_format)?;
            let id = artifacts::visible(gateway, caller, &sha256).await?;
            Ok((copy(gateway, caller, id).await?, format))
        }
        _ => Err(Problem::invalid(
            field,
            "give one of `value`, `data` with `format`, and `artifact` with `format`",
        )),
    }
}

async fn bind(
    gateway: &Gateway,
    held: &RestSession,
    name: &str,
    format: InputFormat,
    received: SpooledUpload,
) -> Result<InputBound, Problem> {
    let bytes = received.bytes;
    let input = Input::from_file(name, format, received.content);
    input.check(&held.terms.limits)?;
    // One that is bound anew frees what was there.
    let before = lock(&held.inputs).get(name).map_or(0, |bound| bound.bytes);
    held.claim(bytes, gateway.options.sessions.max_data)?;
    let detected = match held.session.bind(input).await {
        Ok(detected) => detected,
        Err(error) => {
            held.release(bytes);
            return Err(error.into());
        }
    };
    held.release(before);
    lock(&held.inputs).insert(name.to_owned(), SessionInput { format, bytes });
    Ok(InputBound {
        object: "session.input",
        name: name.to_owned(),
        format,
        bytes,
        detected,
    })
}

/// Copies an artifact into a file. It is stored already, so that it does not count as an upload of the day.
async fn copy(gateway: &Gateway, caller: &Caller, id: ArtifactId) -> Result<SpooledUpload, Problem> {
    let failed = |error: cellblock_artifact::ArtifactError| Problem::internal("read the artifact", &error);
    let reader = gateway.store.reader(id).await.map_err(failed)?;
    let (owner, size) = (Owner::new(&*caller.owner), DeclaredSize::Unknown);
    let mut copying = gateway
        .uploads
        .begin(&owner, Box::new(()), size, gateway.max_upload())?;
    let pieces = stream::try_unfold(reader, async |mut reader| {
        let piece = reader.next().await?;
        Ok::<_, cellblock_artifact::ArtifactError>(piece.map(|piece| (piece, reader)))
    });
    Ok(copying.receive(pin!(pieces)).await?)
}

/// The format that a content type tells.
pub(super) fn format_of(headers: &HeaderMap) -> Option<InputFormat> {
    Some(match body::essence(headers)?.as_str() {
        "text/csv" => InputFormat::Csv,
        "text/tab-separated-values" => InputFormat::Tsv,
        "application/vnd.apache.parquet" => InputFormat::Parquet,
        "application/x-ndjson" | "application/jsonl" => InputFormat::Ndjson,
        "application/vnd.apache.arrow.file" | "application/vnd.apache.arrow.stream" => InputFormat::Arrow,
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
        | "application/vnd.ms-excel"
        | "application/vnd.oasis.opendocument.spreadsheet" => InputFormat::Xlsx,
        "application/octet-stream" => InputFormat::Bytes,
        _ => return None,
    })
}

/// A field that is there counts, also as null.
pub(super) fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

/// A name in a request that nobody has.
pub(super) fn unknown(what: &str, name: &str, known: &[impl Borrow<str>]) -> Problem {
    let shown: String = name.chars().take(60).collect();
    ApiError {
        kind: ErrorKind::NotFound,
        code: Some(format!("{what}_not_found")),
        message: format!("there is no {what} {shown:?}; there are {}", known.join(", ")),
        param: None,
    }
    .into()
}
