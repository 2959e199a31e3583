//! Tools for files of a session.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_interpreter::render::CHARS_PER_TOKEN;
use cellblock_interpreter::toolset::{ToolDefinition, ToolEffect};
use cellblock_interpreter::workbench::{Encoding, Workbench, WorkbenchOptions, WriteArgs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, schema};
use crate::answer::{CallAnswer, Link};
use crate::refusal::Refusal;
use crate::resources::{MOST_BYTES, dataset_at};
use crate::shared::McpShared;
use crate::uri::{self, media_type};

/// Files that are listed.
const LISTED: usize = 100;
/// Characters around the names of a listed file.
const AROUND: usize = 40;
/// Directories whose files are worth listing.
const ROOTS: [&str; 2] = ["/workspace", "/tmp/output"];

/// A file to put into a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Upload {
    /// The session's handle; without one a new session is made, and the answer tells its handle.
    #[serde(default)]
    session_id: Option<String>,
    /// Path in the sandbox: below /workspace/ or /tmp/, or relative to /workspace. Folders that it needs are
    /// made.
    path: String,
    /// Its whole content, at most 5242880 bytes.
    content: String,
    /// Encoding of `content`.
    #[serde(default)]
    encoding: FileEncoding,
}

/// Encoding of bytes as text.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FileEncoding {
    /// As UTF-8.
    #[default]
    Text,
    /// As standard base64.
    Base64,
}

/// A file that was put there.
#[derive(Debug, Serialize, JsonSchema)]
struct UploadReceipt {
    /// The session's handle.
    session_id: String,
    /// Path of the file.
    path: String,
    /// Its size.
    bytes: u64,
    /// Its URI, for `resources/read`.
    uri: String,
}

/// A file to get.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Download {
    /// The session's handle.
    session_id: String,
    /// The file: an absolute path in the sandbox, or one relative to /workspace.
    path: String,
    /// Whether the answer has all of it, as text or base64, however long it is. Otherwise it has as
    /// much as a model can read, and clients read the rest by its URI.
    #[serde(default)]
    embed: bool,
}

/// A file of a session.
#[derive(Debug, Serialize, JsonSchema)]
struct DownloadAnswer {
    /// The session's handle.
    session_id: String,
    /// Its path.
    path: String,
    /// Its size.
    bytes: u64,
    /// Its media type, by its name.
    media_type: String,
    /// Its URI, for `resources/read`.
    uri: String,
    /// Its text, as far as there is room for it; null if it is not text.
    text: Option<String>,
    /// All of it as base64, if it is not text and `embed` asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// Whether there is more of it.
    truncated: bool,
}

/// Whose files to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// The session's handle.
    session_id: String,
}

/// The files of a session.
#[derive(Debug, Serialize, JsonSchema)]
struct FilesAnswer {
    /// The session's handle.
    session_id: String,
    /// Files below /workspace and /tmp/output, in the order of their paths, as many as there is room for.
    files: Vec<File>,
    /// Number of all files.
    total: u64,
    /// Files that were there from the start, read-only.
    datasets: Vec<File>,
}

/// A file.
#[derive(Debug, Serialize, JsonSchema)]
struct File {
    /// Its path in the sandbox.
    path: String,
    /// Its size.
    bytes: u64,
    /// Its URI, for `resources/read`.
    uri: String,
}

pub(super) fn upload_definition() -> ToolDefinition {
    ToolDefinition::new(
        "upload_file",
        "Upload a file",
        "Creates or replaces a file in a session, for its code to read.",
        schema::read::<Upload>(),
        ToolEffect::Settles,
    )
    .returns(schema::written::<UploadReceipt>())
}

pub(super) fn download_definition() -> ToolDefinition {
    ToolDefinition::new(
        "download_file",
        "Download a file",
        "Gets a file of a session: its text, or a picture for clients that show pictures. Clients read \
         other files by the URI that the answer gives; `embed` answers them as base64.",
        schema::read::<Download>(),
        ToolEffect::Reads,
    )
    .returns(schema::written::<DownloadAnswer>())
}

pub(super) fn list_definition() -> ToolDefinition {
    ToolDefinition::new(
        "list_files",
        "List files",
        "Lists the files that a session's code has made or was given.",
        schema::read::<ListArguments>(),
        ToolEffect::Reads,
    )
    .returns(schema::written::<FilesAnswer>())
}

pub(super) async fn upload(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let upload: Upload = call.read()?;
    let bytes = match upload.encoding {
        FileEncoding::Text => upload.content.len(),
        FileEncoding::Base64 => upload.content.len() / 4 * 3,
    };
    server.options.meter.uploaded(&call.owner, bytes as u64).await?;
    let used = call.session(server, upload.session_id.as_deref()).await?;
    let _turn = call.turn(&used).await?;
    let workbench = Workbench::new(used.session.clone(), WorkbenchOptions::default());
    let written = workbench.write_file(WriteArgs {
        file_path: absolute(&upload.path),
        content: upload.content,
        encoding: match upload.encoding {
            FileEncoding::Text => Encoding::Text,
            FileEncoding::Base64 => Encoding::Base64,
        },
        reasoning_trace: None,
    });
    match written.await? {
        Ok(written) => Ok(CallAnswer::of(&UploadReceipt {
            session_id: used.id.clone(),
            uri: uri::file(&used.id, &written.file_path),
            path: written.file_path,
            bytes: written.bytes_written,
        })),
        Err(refused) => Err(Refusal::new(format!(
            "{}. {}",
            refused.error, refused.hint.message
        ))),
    }
}

pub(super) async fn download(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let Download {
        session_id,
        path,
        embed,
    } = call.read()?;
    let used = call.find(server, &session_id)?;
    let path = absolute(&path);
    let content = match dataset_at(server, &used, &path).await {
        Some(content) => content?,
        None => used.session.read_file_within(&*path, MOST_BYTES).await?,
    };
    let link = Link {
        uri: uri::file(&session_id, &path),
        name: path.rsplit('/').next().unwrap_or(&path).to_owned(),
        media_type: media_type(&path).to_owned(),
        bytes: Some(content.len() as u64),
    };
    let room = if embed {
        usize::MAX
    } else {
        server.options.max_tokens * CHARS_PER_TOKEN
    };
    let bytes = content.len();
    let text = std::str::from_utf8(&content).ok();
    let text: Option<String> = text.map(|text| text.chars().take(room).collect());
    let base64 = (embed && text.is_none()).then(|| STANDARD.encode(&content));
    let truncated = base64.is_none() && text.as_ref().is_none_or(|text| text.len() < bytes);
    let mut answer = CallAnswer::default();
    // Its content comes last, so that it ends where the answer does.
    answer.text(format!("[session_id] {session_id}"));
    answer.text(format!("[path] {path}"));
    answer.text(link.line("file"));
    match (&text, &base64) {
        (Some(text), _) => {
            if truncated {
                answer.text(format!(
                    "[truncated] these are the first {room} characters: read on in code, or by the URI"
                ));
            }
            answer.text(text);
        }
        (None, Some(base64)) => answer.text(base64),
        (None, None) => answer.text("[not text] read it in code, by the URI, or with `embed` as base64"),
    }
    if ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&&*link.media_type) {
        answer.picture_of(content, link.media_type.clone());
    }
    answer.structured(&DownloadAnswer {
        session_id,
        path,
        bytes: bytes as u64,
        media_type: link.media_type.clone(),
        uri: link.uri.clone(),
        text,
        base64,
        truncated,
    });
    answer.link(&link);
    Ok(answer)
}

pub(super) async fn list(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let ListArguments { session_id } = call.read()?;
    let used = call.find(server, &session_id)?;
    let (mut listed, mut total) = (Vec::new(), 0);
    for root in ROOTS {
        let most = u32::try_from(LISTED).unwrap_or(u32::MAX);
        let found = used.session.list_files(root, most).await?;
        total += found.total;
        listed.extend(found.files);
    }
    let listed = listed.into_iter().take(LISTED).map(|file| File {
        uri: uri::file(&session_id, &file.path),
        path: file.path,
        bytes: file.bytes,
    });
    // As many as a model has room for.
    let mut room = server.options.max_tokens * CHARS_PER_TOKEN / 2;
    let files = listed.take_while(|file| {
        let taken = file.path.len() + file.uri.len() + AROUND;
        let fits = taken <= room;
        room = room.saturating_sub(taken);
        fits
    });
    let datasets = used.datasets.iter().map(|dataset| File {
        path: dataset.path.clone(),
        bytes: dataset.bytes,
        uri: uri::dataset(&session_id, &dataset.name),
    });
    Ok(CallAnswer::of(&FilesAnswer {
        files: files.collect(),
        total,
        datasets: datasets.collect(),
        session_id,
    }))
}

/// A path as code in `/workspace` reads it.
fn absolute(path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    format!("/workspace/{}", path.trim_start_matches("./"))
}
