//! Runner of a response's code on a server that keeps nothing: each call by itself, with the user's files
//! sent along.
//!
//! Files that code leaves are kept here, as those of a container that has expired: they can be
//! downloaded, and nothing runs in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cellblock_agent::turn::{CallSandbox, OutputFile, Runner};
use cellblock_agent::wire::{ApiError, Container, Ids, Item, ResponseRequest, Tool};
use cellblock_artifact::{ArtifactDescription, ArtifactId, Kind};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::place::MissingContainer;
use super::run;
use crate::engine::{RemoteEngine, keeps_nothing};
use crate::execute_server::{CodeFile, ExecuteRunner, FileStorage};
use crate::files::attach::{AttachedFile, Attachments};
use crate::files::{fetch, media, path};
use crate::now_ms;
use crate::records::{ContainerFileRow, ContainerRow};
use crate::state::Gateway;

/// Maximum number of bytes of files that are sent with a call: servers of this kind read 10 MiB, and base64
/// makes a third more of them.
const MOST: u64 = 7 << 20;

/// Returns the runner of a response's code; errors are those of its request.
pub(super) async fn runner(
    gateway: &Gateway,
    engine: &RemoteEngine,
    owner: &str,
    request: &ResponseRequest,
    container: Option<(String, Container)>,
) -> Result<Arc<dyn Runner>, ApiError> {
    if let Some(at) = request.tools.iter().position(Tool::is_hosted_shell) {
        let message = "Tool 'shell' is not supported in containers here: code runs at another server, which \
                       runs Python only; use the environment `local`";
        let path = format!("tools[{at}].type");
        return Err(ApiError::invalid(path, "unsupported_tool", message));
    }
    if let Some(at) = request.tools.iter().position(Tool::is_programs) {
        let message = "`programmatic_tool_calling` is not supported here: code runs at another server, which \
                       runs Python only; let the model call the functions (`direct`)";
        let path = format!("tools[{at}].type");
        return Err(ApiError::invalid(path, "unsupported_tool", message));
    }
    let mut attachments = Attachments::new(gateway, owner, container.is_some()).beside_code();
    if let Some((param, container)) = &container {
        let Container::Auto(options) = container else {
            return Err(ApiError {
                param: Some(param.clone()),
                ..keeps_nothing()
            });
        };
        for (is_set, key, server) in [
            (
                options.memory_limit.is_some(),
                "memory_limit",
                "that has limits of its own",
            ),
            (
                options.network_policy.is_some(),
                "network_policy",
                "whose operator sets its network",
            ),
            (!options.skills.is_empty(), "skills", "that has no skills"),
        ] {
            if is_set {
                let message = format!("code runs at a server {server}; leave `{key}` out");
                return Err(ApiError::invalid(
                    format!("{param}.{key}"),
                    "invalid_value",
                    message,
                ));
            }
        }
        attachments
            .take(&options.file_ids, &format!("{param}.file_ids"))
            .await?;
    }
    let known = attachments.files().to_vec();
    let all = attachments.check(&request.input).await?;
    sendable(&all).map_err(|message| ApiError::invalid("input", "file_too_large", message))?;
    let keeper = Keeper {
        gateway: gateway.clone(),
        owner: owner.to_owned(),
    };
    Ok(Arc::new(ResponseCalls {
        gateway: gateway.clone(),
        owner: owner.to_owned(),
        runner: ExecuteRunner::new(engine.server.clone(), engine.timeout).keeping(Arc::new(keeper)),
        interpreter: container.is_some(),
        files: known.iter().map(|file| file.path.clone()).collect(),
        attached: Mutex::new(known),
    }))
}

fn sendable(files: &[AttachedFile]) -> Result<(), String> {
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    if bytes > MOST {
        return Err(format!(
            "the user's files have {bytes} bytes, and {MOST} are the most that can be sent to the server \
             that runs code"
        ));
    }
    Ok(())
}

/// Calls of one response.
struct ResponseCalls {
    gateway: Gateway,
    owner: String,
    runner: ExecuteRunner,
    /// Whether files are sent with code, rather than read to the model.
    interpreter: bool,
    files: Vec<String>,
    attached: Mutex<Vec<AttachedFile>>,
}

impl ResponseCalls {
    fn attached(&self) -> Vec<AttachedFile> {
        self.attached.lock().clone()
    }

    /// The bytes of the user's files.
    async fn bytes(&self) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let attached = self.attached();
        sendable(&attached)?;
        let mut files = BTreeMap::new();
        for file in attached {
            let failed = |error: &(dyn std::error::Error + 'static)| fetch::failed(error).message;
            let id = file
                .sha256
                .parse::<ArtifactId>()
                .map_err(|error| failed(&error))?;
            let bytes = self.gateway.store.get(id).await.map_err(|error| failed(&error))?;
            files.insert(file.path, bytes.to_vec());
        }
        Ok(files)
    }
}

impl Runner for ResponseCalls {
    fn files(&self) -> Vec<String> {
        self.files.clone()
    }

    fn about(&self) -> Option<&str> {
        self.runner.about()
    }

    fn read(&self, items: Vec<Item>) -> BoxFuture<'_, Vec<Item>> {
        Box::pin(async move {
            let mut attachments =
                Attachments::new(&self.gateway, &self.owner, self.interpreter).beside_code();
            attachments.add(self.attached());
            let read = attachments.read_all(items).await;
            *self.attached.lock() = attachments.into_files();
            read
        })
    }

    fn place(&self, before: usize) -> BoxFuture<'_, Arc<dyn CallSandbox>> {
        Box::pin(async move {
            match self.bytes().await {
                Ok(files) => self.runner.clone().sending(files).place(before).await,
                Err(why) => Arc::new(MissingContainer::because(&why)) as Arc<dyn CallSandbox>,
            }
        })
    }
}

/// Keeps what calls leave.
struct Keeper {
    gateway: Gateway,
    owner: String,
}

impl Keeper {
    async fn add(&self, container: &str, file: CodeFile) -> Result<OutputFile, ApiError> {
        let records = &self.gateway.records;
        let about = ArtifactDescription {
            kind: Kind::File,
            media_type: media::media_type(&file.name).to_owned(),
            origin: None,
        };
        let bytes = i64::try_from(file.bytes.len()).unwrap_or(i64::MAX);
        let stored = self.gateway.store.put(file.bytes, &about).await;
        let sha256 = stored.map_err(|error| fetch::failed(&error))?.to_string();
        if records.container(&self.owner, container).await?.is_none() {
            let now = now_ms();
            let idle = self.gateway.options.containers.idle_timeout.as_millis();
            let row = ContainerRow {
                id: container.to_owned(),
                owner: self.owner.clone(),
                name: "auto".to_owned(),
                created_ms: now,
                active_ms: now,
                idle_ms: i64::try_from(idle).unwrap_or(i64::MAX),
                memory_limit: None,
                allowed_domains: None,
                automatic: false,
                // Nothing of it is in a process.
                holder: None,
            };
            records.add_container(row).await?;
        }
        let id = Ids::random().mint("cfile");
        let path = path::of_upload(&file.name);
        let row = ContainerFileRow {
            id: id.clone(),
            container: container.to_owned(),
            owner: self.owner.clone(),
            path: path.clone(),
            bytes,
            sha256,
            created_ms: now_ms(),
            source: "assistant".to_owned(),
        };
        run::insert(&self.gateway, row).await?;
        let container = container.to_owned();
        Ok(OutputFile { container, id, path })
    }
}

impl FileStorage for Keeper {
    fn keep<'a>(&'a self, container: &'a str, file: CodeFile) -> BoxFuture<'a, Option<OutputFile>> {
        Box::pin(async move {
            match self.add(container, file).await {
                Ok(made) => Some(made),
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "keep a file of code");
                    None
                }
            }
        })
    }
}
