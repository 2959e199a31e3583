//! Receiving a file: it goes to the disk as it comes, and from there to the artifact store.

use std::collections::BTreeMap;
use std::io::Seek as _;

use axum::extract::multipart::{Field, Multipart};
use axum::extract::{FromRequest as _, Request};
use cellblock_agent::wire::ApiError;
use cellblock_artifact::{About, Kind};
use tokio::io::AsyncWriteExt as _;

use super::fetch::failed;
use super::media::media_type;
use crate::state::Gateway;

/// The most bytes of a field beside the file.
const FIELD: usize = 4096;
/// The most such fields.
const FIELDS: usize = 32;

/// A file that was received.
#[derive(Debug)]
pub(crate) struct Uploaded {
    /// Its name, as the client gave it.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    /// What was said beside it.
    pub(crate) fields: BTreeMap<String, String>,
}

/// Receives the form of a request, whose field `file` is the file.
pub(crate) async fn receive(gateway: &Gateway, owner: &str, request: Request) -> Result<Uploaded, ApiError> {
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|error| broken(&error.body_text()))?;
    let mut fields = BTreeMap::new();
    let mut file = None;
    while let Some(field) = form
        .next_field()
        .await
        .map_err(|error| broken(&error.body_text()))?
    {
        let name = field.name().unwrap_or_default().to_owned();
        if name == "file" && file.is_none() {
            let called = field.file_name().unwrap_or_default().to_owned();
            file = Some((called, keep(gateway, field).await?));
        } else if fields.len() < FIELDS {
            let text = text(field).await?;
            fields.insert(name, text);
        } else {
            return Err(broken("it has too many fields"));
        }
    }
    let Some((name, (file, bytes))) = file else {
        let message = "`file` is required and missing; send it as a file of a form";
        return Err(ApiError::invalid("file", "missing_required_parameter", message));
    };
    gateway.quotas.upload(owner, bytes).await?;
    let kept = gateway.records.stored_bytes(owner).await?;
    gateway.quotas.store(owner, kept, bytes).await?;
    let about = About {
        kind: Kind::File,
        media_type: media_type(&name).to_owned(),
        origin: None,
    };
    let sha256 = gateway.store.put_file(file, &about).await;
    let sha256 = sha256.map_err(|error| failed(&error))?.to_string();
    Ok(Uploaded {
        name,
        bytes,
        sha256,
        fields,
    })
}

async fn keep(gateway: &Gateway, mut field: Field<'_>) -> Result<(std::fs::File, u64), ApiError> {
    let most = gateway.options.files.max_upload;
    let file = tempfile::tempfile().map_err(|error| failed(&error))?;
    let mut file = tokio::fs::File::from_std(file);
    let mut bytes = 0;
    while let Some(piece) = field.chunk().await.map_err(|error| broken(&error.body_text()))? {
        bytes += piece.len() as u64;
        if bytes > most {
            return Err(cut(most));
        }
        file.write_all(&piece).await.map_err(|error| failed(&error))?;
    }
    file.flush().await.map_err(|error| failed(&error))?;
    let mut file = file.into_std().await;
    file.rewind().map_err(|error| failed(&error))?;
    Ok((file, bytes))
}

async fn text(mut field: Field<'_>) -> Result<String, ApiError> {
    let mut text = Vec::new();
    while let Some(piece) = field.chunk().await.map_err(|error| broken(&error.body_text()))? {
        if text.len() + piece.len() > FIELD {
            return Err(broken("a field is too long"));
        }
        text.extend_from_slice(&piece);
    }
    String::from_utf8(text).map_err(|_| broken("a field is not UTF-8"))
}

/// A file, or a body, that has more bytes than it may.
pub(crate) fn cut(most: u64) -> ApiError {
    let message = format!("the file has more than {most} bytes, the most that are taken here");
    ApiError::invalid("file", "file_too_large", message)
}

fn broken(why: &str) -> ApiError {
    ApiError::invalid("file", "invalid_form", format!("the form cannot be read: {why}"))
}
