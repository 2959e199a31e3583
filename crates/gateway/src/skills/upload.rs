//! Receiving a skill: one zip, or files with paths below one folder.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::ops::Range;

use axum::extract::multipart::Multipart;
use axum::extract::{FromRequest as _, Request};
use cellblock_agent::wire::ApiError;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::hosting::uploads::{DeclaredSize, MaxUpload, SpooledUpload};
use cellblock_interpreter::skill::{MAX_FILES, SkillError, SkillPackage};
use tokio::task::spawn_blocking;

use super::refused;
use crate::files::fetch;
use crate::files::upload::{add_field, broken};
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// Maximum number of characters of a name for people.
const DISPLAY_NAME: usize = 255;
/// First bytes of a zip archive.
const ZIP: &[u8] = b"PK";

/// A skill that was received and checked.
#[derive(Debug)]
pub(super) struct UploadedSkill {
    pub(super) package: SkillPackage,
    fields: BTreeMap<String, String>,
}

impl UploadedSkill {
    /// Returns the name for people.
    pub(super) fn display_name(&self) -> Result<Option<String>, ApiError> {
        // `display_title` is its name in older versions of the API.
        let fields = ["display_name", "display_title"];
        let name = fields.iter().find_map(|field| self.fields.get(*field));
        match name.map(|name| name.chars().count()) {
            Some(length) if length > DISPLAY_NAME => {
                let message =
                    format!("`display_name` has {length} characters; it can have at most {DISPLAY_NAME}");
                Err(ApiError::invalid("display_name", "invalid_value", message))
            }
            _ => Ok(name.cloned()),
        }
    }

    /// Returns whether a version becomes the default.
    pub(super) fn is_default(&self) -> Result<bool, ApiError> {
        match self.fields.get("default").map(String::as_str) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                let shown: String = other.chars().take(40).flat_map(char::escape_debug).collect();
                let message = format!("`default` is `{shown}`; it can be `true` or `false`");
                Err(ApiError::invalid("default", "invalid_value", message))
            }
        }
    }
}

/// Receives the form of a request, and takes its skill apart.
pub(super) async fn receive(
    gateway: &Gateway,
    caller: &Caller,
    request: Request,
) -> Result<UploadedSkill, Problem> {
    let owner = &*caller.owner;
    let size = DeclaredSize::of(request.headers());
    let allowance = gateway.quotas.upload(owner, size.at_least()).await?;
    let max = MaxUpload {
        bytes: gateway.options.files.max_upload,
        setting: "files.max_upload",
    };
    let owner = Owner::new(owner);
    let mut upload = gateway.uploads.begin(&owner, Box::new(allowance), size, max)?;
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|error| broken(&error.body_text()))?;
    let mut fields = BTreeMap::new();
    let mut files: Vec<(String, Range<u64>)> = Vec::new();
    let mut spool = upload.spool()?;
    while let Some(field) = upload
        .within(form.next_field())
        .await?
        .map_err(|error| broken(&error.body_text()))?
    {
        let name = field.name().unwrap_or_default().to_owned();
        if matches!(&*name, "files" | "files[]") {
            let path = field.file_name().unwrap_or_default().to_owned();
            if files.len() >= MAX_FILES {
                let reason = format!("the skill has more than {MAX_FILES} files");
                return Err(refused(&SkillError::Invalid(reason), "files").into());
            }
            files.push((path, upload.append(&mut spool, field).await?));
        } else {
            add_field(&upload, &mut fields, name, field).await?;
        }
    }
    if files.is_empty() {
        let message =
            "`files` is required and missing; send a zip, or the files of one folder, as files of a form";
        return Err(ApiError::invalid("files", "missing_required_parameter", message).into());
    }
    let packed = spawn_blocking(move || packed(spool, files)).await;
    let package = packed.map_err(|error| fetch::failed(&error))?;
    let package = package.map_err(|error| refused(&error, "files"))?;
    Ok(UploadedSkill { package, fields })
}

fn packed(mut spool: SpooledUpload, files: Vec<(String, Range<u64>)>) -> Result<SkillPackage, SkillError> {
    if files.len() == 1 && is_zip(&mut spool.content)? {
        return SkillPackage::from_archive(&spool.content);
    }
    SkillPackage::from_files(&spool.content, files)
}

fn is_zip(content: &mut File) -> Result<bool, SkillError> {
    let failed = |source| SkillError::File {
        action: "read the upload".to_owned(),
        source,
    };
    content.rewind().map_err(failed)?;
    let mut start = [0; ZIP.len()];
    let is_zip = content.read_exact(&mut start).is_ok() && start == *ZIP;
    content.rewind().map_err(failed)?;
    Ok(is_zip)
}
