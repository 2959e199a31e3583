//! Files of messages: with the interpreter they are put into its container, without it texts and
//! pictures are read to the model.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_agent::wire::{ApiError, FunctionOutput, Item, Part};
use cellblock_artifact::{ArtifactDescription, ArtifactId, Kind};

use super::fetch::failed;
use super::media::{media_type, picture};
use super::path;
use crate::state::Gateway;

/// A file that containers are to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttachedFile {
    /// Path, as models use it.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// Reads messages with their files.
#[derive(Debug)]
pub(crate) struct Attachments<'a> {
    gateway: &'a Gateway,
    owner: &'a str,
    /// Whether there is an interpreter.
    interpreter: bool,
    /// Whether they lie beside code, where it runs, rather than in a container.
    beside: bool,
    files: Vec<AttachedFile>,
    /// Bytes of text that the model may still be read.
    left: u64,
}

/// A file of a message.
struct MessageFile {
    name: String,
    bytes: u64,
    sha256: String,
}

impl<'a> Attachments<'a> {
    pub(crate) fn new(gateway: &'a Gateway, owner: &'a str, interpreter: bool) -> Self {
        Self {
            gateway,
            owner,
            interpreter,
            beside: false,
            files: Vec::new(),
            left: gateway.options.files.max_inline_text,
        }
    }

    /// Files lie in the directory where code runs, by their names alone.
    #[must_use]
    pub(crate) const fn beside_code(mut self) -> Self {
        self.beside = true;
        self
    }

    /// Adds files that are known already.
    pub(crate) fn add(&mut self, files: Vec<AttachedFile>) {
        self.files.extend(files);
    }

    /// Adds uploaded files by their ids, which stand at `param`.
    pub(crate) async fn take(&mut self, ids: &[String], param: &str) -> Result<(), ApiError> {
        for (at, id) in ids.iter().enumerate() {
            let param = format!("{param}[{at}]");
            let sent = self.uploaded(id, &param).await?;
            self.attach(sent, &param)?;
        }
        Ok(())
    }

    /// Files that containers are to have.
    pub(crate) fn files(&self) -> &[AttachedFile] {
        &self.files
    }

    pub(crate) fn into_files(self) -> Vec<AttachedFile> {
        self.files
    }

    /// Checks the files of a request's input. Returns all of them in their order, or the first error.
    pub(crate) async fn check(mut self, items: &[Item]) -> Result<Vec<AttachedFile>, ApiError> {
        for (index, item) in items.iter().enumerate() {
            let (key, parts) = match item {
                Item::Message(message) => ("content", &message.content[..]),
                Item::FunctionCallOutput(call) => match &call.output {
                    FunctionOutput::Parts(parts) => ("output", &parts[..]),
                    FunctionOutput::Text(_) => continue,
                },
                _ => continue,
            };
            for (at, part) in parts.iter().enumerate() {
                self.read(part.clone(), &format!("input[{index}].{key}[{at}]"))
                    .await?;
            }
        }
        Ok(self.files)
    }

    /// Items as a model reads them. What cannot be read any more, as a file that was deleted since,
    /// is said in its place.
    pub(crate) async fn read_all(&mut self, mut items: Vec<Item>) -> Vec<Item> {
        for item in &mut items {
            let parts = match item {
                Item::Message(message) => &mut message.content,
                Item::FunctionCallOutput(call) => match &mut call.output {
                    FunctionOutput::Parts(parts) => parts,
                    FunctionOutput::Text(_) => continue,
                },
                _ => continue,
            };
            for part in parts {
                if !matches!(part, Part::InputFile { .. } | Part::InputImage { .. }) {
                    continue;
                }
                *part = self
                    .read(part.clone(), "input")
                    .await
                    .unwrap_or_else(|error| Part::InputText {
                        text: format!("(a file of the user cannot be read: {error})"),
                    });
            }
        }
        items
    }

    async fn read(&mut self, part: Part, param: &str) -> Result<Part, ApiError> {
        match part {
            Part::InputImage {
                image_url: None,
                file_id: Some(id),
                detail,
            } => {
                let sent = self.uploaded(&id, &format!("{param}.file_id")).await?;
                let shown = self.picture(&sent, detail).await?;
                shown.ok_or_else(|| {
                    let message = format!("`{param}` is not a picture in PNG, JPEG, GIF or WebP");
                    ApiError::invalid(param, "invalid_value", message)
                })
            }
            Part::InputFile {
                filename,
                file_data,
                file_id,
                file_url,
            } => {
                let sent = match (file_id, file_data, file_url) {
                    (Some(id), ..) => self.uploaded(&id, &format!("{param}.file_id")).await?,
                    (None, Some(data), _) => {
                        self.sent(filename, &data, &format!("{param}.file_data")).await?
                    }
                    (None, None, _) => {
                        let param = format!("{param}.file_url");
                        let message = format!(
                            "`{param}`: files are not fetched from elsewhere; upload it to `/v1/files`"
                        );
                        return Err(ApiError::invalid(param, "invalid_value", message));
                    }
                };
                self.file(sent, param).await
            }
            other => Ok(other),
        }
    }

    async fn file(&mut self, sent: MessageFile, param: &str) -> Result<Part, ApiError> {
        if self.interpreter {
            let (name, bytes) = (sent.name.clone(), sent.bytes);
            let path = self.attach(sent, param)?;
            let text = format!("(The user's file `{name}` of {bytes} bytes is at `{path}`.)");
            return Ok(Part::InputText { text });
        }
        if let Some(shown) = self.picture(&sent, "auto".to_owned()).await? {
            return Ok(shown);
        }
        let name = &sent.name;
        let refuse = |why: String| {
            let message =
                format!("`{param}`: {why}; offer the tool `code_interpreter`, whose code can read it");
            ApiError::invalid(param, "invalid_value", message)
        };
        if sent.bytes > self.left {
            let most = self.gateway.options.files.max_inline_text;
            return Err(refuse(format!(
                "files have more than {most} bytes of text, the most that a model reads"
            )));
        }
        let bytes = self.gateway.store.get(artifact(&sent)?).await;
        let bytes = bytes.map_err(|error| failed(&error))?;
        let text = std::str::from_utf8(&bytes)
            .ok()
            .filter(|text| !text.contains('\0'));
        let text = text.ok_or_else(|| refuse(format!("`{name}` is not text")))?;
        self.left -= sent.bytes;
        let text = format!("The user's file `{name}`:\n\n{text}");
        Ok(Part::InputText { text })
    }

    /// A picture for the model; `None` where it is none.
    async fn picture(&self, sent: &MessageFile, detail: String) -> Result<Option<Part>, ApiError> {
        let most = self.gateway.options.files.max_image;
        let start = self
            .gateway
            .store
            .get_range(artifact(sent)?, 0..sent.bytes.min(16))
            .await;
        let Some(format) = picture(&start.map_err(|error| failed(&error))?) else {
            return Ok(None);
        };
        if sent.bytes > most {
            let message = format!(
                "the picture `{}` has {} bytes; models are shown at most {most}",
                sent.name, sent.bytes
            );
            return Err(ApiError::invalid("input", "file_too_large", message));
        }
        let bytes = self.gateway.store.get(artifact(sent)?).await;
        let bytes = bytes.map_err(|error| failed(&error))?;
        Ok(Some(Part::InputImage {
            image_url: Some(format!("data:{format};base64,{}", STANDARD.encode(&bytes))),
            file_id: None,
            detail,
        }))
    }

    async fn uploaded(&self, id: &str, param: &str) -> Result<MessageFile, ApiError> {
        let row = super::find(self.gateway, self.owner, id, param).await?;
        Ok(MessageFile {
            name: row.filename,
            bytes: u64::try_from(row.bytes).unwrap_or(0),
            sha256: row.sha256,
        })
    }

    /// A file that came in a message, in base64 or as a `data:` URL.
    async fn sent(&self, filename: Option<String>, data: &str, param: &str) -> Result<MessageFile, ApiError> {
        let encoded = match data.strip_prefix("data:") {
            Some(url) => url.split_once(";base64,").map(|(_, encoded)| encoded),
            None => Some(data),
        };
        let bytes = encoded
            .and_then(|encoded| STANDARD.decode(encoded.trim()).ok())
            .ok_or_else(|| {
                let message = format!("`{param}` has to be base64, or a `data:` URL in base64");
                ApiError::invalid(param, "invalid_value", message)
            })?;
        let name = filename.unwrap_or_else(|| "file".to_owned());
        let about = ArtifactDescription {
            kind: Kind::File,
            media_type: media_type(&name).to_owned(),
            origin: None,
        };
        let length = bytes.len() as u64;
        let sha256 = self.gateway.store.put(bytes, &about).await;
        Ok(MessageFile {
            name,
            bytes: length,
            sha256: sha256.map_err(|error| failed(&error))?.to_string(),
        })
    }

    /// Adds a file to those that containers are to have, and says where. Another one by the same
    /// name gets a number.
    fn attach(&mut self, sent: MessageFile, param: &str) -> Result<String, ApiError> {
        let name = path::file_name(&sent.name, param)?;
        let (stem, extension) = match name.rsplit_once('.') {
            Some((stem, extension)) if !stem.is_empty() => (stem.to_owned(), format!(".{extension}")),
            _ => (name.clone(), String::new()),
        };
        let place = |name: &str| {
            if self.beside {
                name.to_owned()
            } else {
                path::of_upload(name)
            }
        };
        let mut path = place(&name);
        let mut number = 1;
        while let Some(other) = self.files.iter().find(|file| file.path == path) {
            if other.sha256 == sent.sha256 {
                return Ok(path);
            }
            number += 1;
            path = place(&format!("{stem}-{number}{extension}"));
        }
        self.files.push(AttachedFile {
            path: path.clone(),
            bytes: sent.bytes,
            sha256: sent.sha256,
        });
        Ok(path)
    }
}

fn artifact(sent: &MessageFile) -> Result<ArtifactId, ApiError> {
    sent.sha256.parse().map_err(|error| failed(&error))
}
