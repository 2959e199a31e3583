//! Receiving a file: it goes to the disk as it comes, and from there to the artifact store.

use std::collections::BTreeMap;

use axum::extract::multipart::{Field, Multipart};
use axum::extract::{FromRequest as _, Request};
use cellblock_agent::wire::ApiError;
use cellblock_artifact::{ArtifactDescription, Kind};
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::hosting::uploads::{DeclaredSize, MaxUpload, Upload};

use super::fetch::failed;
use super::media::media_type;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// Maximum number of bytes of a field beside the file.
const FIELD: usize = 4096;
/// The most such fields.
const FIELDS: usize = 32;

/// A file that was received.
#[derive(Debug)]
pub(crate) struct UploadedFile {
    /// Its name, as the client gave it.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    /// Fields that were sent with it.
    pub(crate) fields: BTreeMap<String, String>,
}

/// Receives the form of a request, whose field `file` is the file. It is stored, and counts against
/// its owner's storage.
pub(crate) async fn receive(
    gateway: &Gateway,
    caller: &Caller,
    request: Request,
) -> Result<UploadedFile, Problem> {
    let owner = &*caller.owner;
    let size = DeclaredSize::of(request.headers());
    let kept = gateway.records.stored_bytes(owner).await?;
    let allowance = gateway.quotas.upload(owner, size.at_least()).await?;
    let allowance = allowance.storing(kept, size.at_least())?;
    let max = MaxUpload {
        bytes: gateway.options.files.max_upload,
        setting: "files.max_upload",
    };
    let mut upload = gateway
        .uploads
        .begin(&Owner::new(owner), Box::new(allowance), size, max)?;
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|error| broken(&error.body_text()))?;
    let mut fields = BTreeMap::new();
    let mut file = None;
    while let Some(field) = upload
        .within(form.next_field())
        .await?
        .map_err(|error| broken(&error.body_text()))?
    {
        let name = field.name().unwrap_or_default().to_owned();
        if name == "file" && file.is_none() {
            let file_name = field.file_name().unwrap_or_default().to_owned();
            file = Some((file_name, upload.receive(field).await?));
        } else {
            add_field(&upload, &mut fields, name, field).await?;
        }
    }
    let Some((name, received)) = file else {
        let message = "`file` is required and missing; send it as a file of a form";
        return Err(ApiError::invalid("file", "missing_required_parameter", message).into());
    };
    let bytes = received.bytes;
    // Others of the same owner may have been stored meanwhile.
    gateway.quotas.store_more(owner, bytes).await?;
    let about = ArtifactDescription {
        kind: Kind::File,
        media_type: media_type(&name).to_owned(),
        origin: None,
    };
    let sha256 = gateway.store.put_file(received.content, &about).await;
    let sha256 = sha256.map_err(|error| failed(&error))?.to_string();
    Ok(UploadedFile {
        name,
        bytes,
        sha256,
        fields,
    })
}

/// Reads a field beside the files.
pub(crate) async fn add_field(
    upload: &Upload,
    fields: &mut BTreeMap<String, String>,
    name: String,
    field: Field<'_>,
) -> Result<(), Problem> {
    if fields.len() >= FIELDS {
        return Err(broken("it has too many fields").into());
    }
    fields.insert(name, upload.within(text(field)).await??);
    Ok(())
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

pub(crate) fn broken(why: &str) -> ApiError {
    ApiError::invalid("file", "invalid_form", format!("the form cannot be read: {why}"))
}
