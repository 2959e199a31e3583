//! Recording the results of tools.

use std::fs::File;
use std::future::Future;
use std::io::{BufReader, Read, Seek};
use std::sync::Arc;

use bytes::Bytes;
use cellblock_artifact::{ArtifactDescription, ArtifactError, ArtifactId, Kind, Origin};
use cellblock_protocol::InputFormat;
use cellblock_settings::clock;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::entry::{Entry, WHOLE, media_type};
use super::error::{AliasError, shown};
use super::shape::Shape;
use super::store::{AliasStore, Ticket};
use super::{survey, table};

/// Number of bytes of a file that are read at a time.
const PIECE: usize = 256 * 1024;
/// Maximum number of attempts to store a result that a collector without retention removes
/// immediately.
const TRIES: usize = 3;

impl AliasStore {
    /// Records a value. The alias is assigned when this is called, before the future is first
    /// polled.
    pub fn record(
        &self,
        tool: &str,
        output: &Value,
    ) -> impl Future<Output = Result<Arc<Entry>, AliasError>> + Send + 'static + use<> {
        let bytes = serde_json::to_vec(output).map_err(|source| unreadable(tool, source));
        let begun = bytes.and_then(|bytes| {
            let ticket = self.inner.begin(tool, bytes.len() as u64)?;
            Ok((ticket, Bytes::from(bytes)))
        });
        store_json(tool.to_owned(), begun)
    }

    /// Records a JSON document unchanged, without a second copy of it. The alias is assigned when
    /// this is called.
    pub fn record_json<B: Into<Bytes> + 'static>(
        &self,
        tool: &str,
        bytes: B,
    ) -> impl Future<Output = Result<Arc<Entry>, AliasError>> + Send + 'static + use<B> {
        let bytes = bytes.into();
        let begun = self.inner.begin(tool, bytes.len() as u64);
        store_json(tool.to_owned(), begun.map(|ticket| (ticket, bytes)))
    }

    /// Records a file with a JSON document, without holding it in memory. The alias is assigned
    /// when this is called.
    pub fn record_file(
        &self,
        tool: &str,
        file: File,
    ) -> impl Future<Output = Result<Arc<Entry>, AliasError>> + Send + 'static + use<> {
        let begun = size(&file).and_then(|bytes| self.inner.begin(tool, bytes));
        store_file(tool.to_owned(), begun, file, InputFormat::Value)
    }

    /// Records a table unchanged, as Arrow IPC or Parquet. The alias is assigned when this is
    /// called.
    pub fn record_table(
        &self,
        tool: &str,
        file: File,
        format: InputFormat,
    ) -> impl Future<Output = Result<Arc<Entry>, AliasError>> + Send + 'static + use<> {
        let begun = table_size(tool, &file, format).and_then(|bytes| self.inner.begin(tool, bytes));
        store_file(tool.to_owned(), begun, file, format)
    }

    /// Records a file under a given name: `value` for a JSON document, `arrow` or `parquet` for a table.
    ///
    /// [`reserved::check`](super::reserved::check) must accept the name, and no result may have or
    /// have had it.
    pub fn insert_named(
        &self,
        alias: &str,
        file: File,
        format: InputFormat,
    ) -> impl Future<Output = Result<Arc<Entry>, AliasError>> + Send + 'static + use<> {
        let bytes = match format {
            InputFormat::Value => size(&file),
            _ => table_size(alias, &file, format),
        };
        let begun = bytes.and_then(|bytes| self.inner.begin_named(alias, bytes));
        store_file(alias.to_owned(), begun, file, format)
    }
}

async fn store_json(
    tool: String,
    begun: Result<(Ticket, Bytes), AliasError>,
) -> Result<Arc<Entry>, AliasError> {
    let (ticket, bytes) = begun?;
    let document = bytes.clone();
    let shape = blocking(&tool, move || survey::of_slice(&document)).await?;
    let shape = shape.map_err(|source| unreadable(&tool, source))?;
    let whole = (bytes.len() as u64 <= WHOLE).then(|| String::from_utf8_lossy(&bytes).into_owned());
    let about = about(&ticket, InputFormat::Value);
    let store = &ticket.inner.store;
    for attempt in 1.. {
        let id = store.put(bytes.clone(), &about).await?;
        match store.pin(&ticket.inner.owner, [id]).await {
            Err(ArtifactError::NotFound { .. }) if attempt < TRIES => {}
            pinned => {
                pinned?;
                return finish(ticket, tool, InputFormat::Value, id, shape, whole).await;
            }
        }
    }
    unreachable!("the last attempt returns")
}

async fn store_file(
    tool: String,
    begun: Result<Ticket, AliasError>,
    file: File,
    format: InputFormat,
) -> Result<Arc<Entry>, AliasError> {
    let ticket = begun?;
    let name = tool.clone();
    let examined = blocking(&tool, move || examine(&name, file, format)).await?;
    let RecordCandidate {
        file,
        shape,
        id,
        bytes,
        whole,
    } = examined?;
    if bytes != ticket.bytes() {
        return Err(AliasError::Changed { tool: shown(&tool) });
    }
    let about = about(&ticket, format);
    let store = &ticket.inner.store;
    for attempt in 1.. {
        let copy = file.try_clone().map_err(AliasError::File)?;
        let stored = store.put_file(copy, &about).await;
        match stored {
            Ok(stored) if stored == id => {}
            Ok(_) | Err(ArtifactError::Changed) => return Err(AliasError::Changed { tool: shown(&tool) }),
            Err(error) => return Err(error.into()),
        }
        match store.pin(&ticket.inner.owner, [id]).await {
            Err(ArtifactError::NotFound { .. }) if attempt < TRIES => {}
            pinned => {
                pinned?;
                return finish(ticket, tool, format, id, shape, whole).await;
            }
        }
    }
    unreachable!("the last attempt returns")
}

async fn finish(
    ticket: Ticket,
    tool: String,
    format: InputFormat,
    sha256: ArtifactId,
    shape: Shape,
    whole: Option<String>,
) -> Result<Arc<Entry>, AliasError> {
    let entry = Entry {
        alias: ticket.alias.clone(),
        tool,
        format,
        bytes: ticket.bytes(),
        sha256,
        recorded_unix_ms: clock::unix_millis(),
        shape,
        whole,
    };
    let inner = Arc::clone(&ticket.inner);
    let redeemed = ticket.redeem(entry);
    if matches!(redeemed, Err(AliasError::Closed)) {
        // Closed while this was stored: its reference is the last one.
        inner.store.unpin(&inner.owner).await?;
    }
    redeemed
}

fn about(ticket: &Ticket, format: InputFormat) -> ArtifactDescription {
    ArtifactDescription {
        kind: Kind::Result,
        media_type: media_type(format).to_owned(),
        origin: Some(Origin {
            session: ticket.inner.owner.clone(),
            name: Some(ticket.alias.clone()),
            ..Origin::default()
        }),
    }
}

struct RecordCandidate {
    file: File,
    shape: Shape,
    id: ArtifactId,
    bytes: u64,
    whole: Option<String>,
}

/// Reads a file once: checks it, and returns its shape and id.
fn examine(tool: &str, mut file: File, format: InputFormat) -> Result<RecordCandidate, AliasError> {
    file.rewind().map_err(AliasError::File)?;
    let mut named = HashingFile {
        file,
        hash: Sha256::new(),
        bytes: 0,
    };
    let shape = if format == InputFormat::Value {
        let shape = survey::of_reader(BufReader::with_capacity(PIECE, &mut named));
        shape.map_err(|source| match source.io_error_kind() {
            Some(kind) => AliasError::File(std::io::Error::new(kind, source)),
            None => unreadable(tool, source),
        })?
    } else {
        let shape = table::shape(&named.file, format);
        named.file.rewind().map_err(AliasError::File)?;
        let mut buffer = vec![0; PIECE];
        while named.read(&mut buffer).map_err(AliasError::File)? > 0 {}
        shape.map_err(|what| AliasError::Table {
            tool: shown(tool),
            what,
        })?
    };
    let mut whole = None;
    if format == InputFormat::Value && named.bytes <= WHOLE {
        named.file.rewind().map_err(AliasError::File)?;
        let mut text = String::new();
        (&named.file)
            .take(WHOLE)
            .read_to_string(&mut text)
            .map_err(AliasError::File)?;
        whole = Some(text);
    }
    Ok(RecordCandidate {
        file: named.file,
        shape,
        id: ArtifactId::from_sha256(named.hash.finalize().into()),
        bytes: named.bytes,
        whole,
    })
}

/// Hashes the bytes that are read from a file.
struct HashingFile {
    file: File,
    hash: Sha256,
    bytes: u64,
}

impl Read for HashingFile {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Runs code that is slow, or may panic over foreign data, outside the runtime's threads.
async fn blocking<T: Send + 'static>(
    tool: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, AliasError> {
    spawn_blocking(work).await.map_err(|_| AliasError::Table {
        tool: shown(tool),
        what: "its reader gave up on it".to_owned(),
    })
}

fn unreadable(tool: &str, source: serde_json::Error) -> AliasError {
    AliasError::Json {
        tool: shown(tool),
        source,
    }
}

fn size(file: &File) -> Result<u64, AliasError> {
    Ok(file.metadata().map_err(AliasError::File)?.len())
}

fn table_size(tool: &str, file: &File, format: InputFormat) -> Result<u64, AliasError> {
    match format {
        InputFormat::Arrow | InputFormat::Parquet => size(file),
        _ => Err(AliasError::Table {
            tool: shown(tool),
            what: "its format is neither Arrow nor Parquet".to_owned(),
        }),
    }
}
