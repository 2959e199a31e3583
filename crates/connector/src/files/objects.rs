//! An object store as a root, for the time of a call: its listing, ranges of its objects, and its
//! failures in words for code.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use cellblock_artifact::ArtifactError;
use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore, coalesce_ranges};
use parking_lot::Mutex;

use super::end::CallEnd;
use super::search::{Search, joined};

/// Number of folders that are listed at the same time.
const LISTED: usize = 8;
/// Ranges of a file with a smaller gap are one request.
const GAP: u64 = 256 << 10;

const UNAVAILABLE: ConnectorErrorKind = ConnectorErrorKind::Provider { status: None };

/// Kind and description of an error.
type ObjectFailure = (ConnectorErrorKind, String);

/// The objects below a prefix.
#[derive(Debug)]
pub(super) struct Objects {
    store: Arc<dyn ObjectStore>,
    end: CallEnd,
    /// The last failure, because errors of readers are only text.
    failure: Mutex<Option<ObjectFailure>>,
}

impl Objects {
    pub(super) fn new(store: Arc<dyn ObjectStore>, end: CallEnd) -> Self {
        Self {
            store,
            end,
            failure: Mutex::default(),
        }
    }

    /// Checks that objects can be listed.
    pub(super) fn check(&self) -> Result<(), String> {
        self.wait(async { self.store.list(None).next().await.transpose() })
            .map(drop)
    }

    /// Returns the objects that a search finds, with their paths.
    pub(super) fn files(&self, search: &mut Search<'_>) -> Result<Vec<(String, ObjectMeta)>, String> {
        let mut found = Vec::new();
        let mut folders = vec![search.start()];
        while !folders.is_empty() {
            let entered = std::mem::take(&mut folders);
            let listed = stream::iter(entered).map(|folder| async move {
                let prefix = Path::parse(&folder)?;
                let listed = self.store.list_with_delimiter(Some(&prefix)).await?;
                Ok::<_, object_store::Error>((folder, listed))
            });
            let mut listed = listed.buffered(LISTED);
            while let Some((folder, listed)) = self.wait(listed.try_next())? {
                for path in listed.common_prefixes {
                    search.count()?;
                    let path = joined(&folder, path.filename().unwrap_or_default());
                    if search.enters(&path) {
                        folders.push(path);
                    }
                }
                for object in listed.objects {
                    search.count()?;
                    let path = joined(&folder, object.location.filename().unwrap_or_default());
                    if search.finds(&path) {
                        found.push((path, object));
                    }
                }
            }
        }
        Ok(found)
    }

    /// Reads ranges of an object, which must be the one that was listed.
    pub(super) fn read(&self, object: &ObjectMeta, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, String> {
        let read = |range: Range<u64>| {
            let options = GetOptions::new()
                .with_range(Some(range))
                .with_if_match(object.e_tag.clone());
            async move {
                self.store
                    .get_opts(&object.location, options)
                    .await?
                    .bytes()
                    .await
            }
        };
        let read = self.wait(coalesce_ranges(ranges, read, GAP))?;
        let whole = |(range, bytes): (&Range<u64>, &Bytes)| bytes.len() as u64 == range.end - range.start;
        if ranges.iter().zip(&read).all(whole) {
            return Ok(read);
        }
        let text = "the object store sent fewer bytes than requested; try again later";
        Err(self.failed((UNAVAILABLE, text.to_owned())))
    }

    /// Takes the last failure, if the store failed.
    pub(super) fn take_failure(&self) -> Option<ObjectFailure> {
        self.failure.lock().take()
    }

    fn wait<T>(&self, work: impl Future<Output = object_store::Result<T>>) -> Result<T, String> {
        let failure = match self.end.wait(work) {
            Some(Ok(done)) => return Ok(done),
            Some(Err(error)) => explained(&error),
            None => {
                let text = "the object store did not answer within the limit `timeout`, or before the \
                            cell ended; choose fewer columns or rows, or try again later";
                (ConnectorErrorKind::Timeout, text.to_owned())
            }
        };
        Err(self.failed(failure))
    }

    fn failed(&self, failure: ObjectFailure) -> String {
        let text = failure.1.clone();
        *self.failure.lock() = Some(failure);
        text
    }
}

/// Returns the error for a root that cannot be opened. Its address and the server's are not for the sandbox.
pub(super) fn unopened(error: &ArtifactError) -> ConnectorError {
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "the object store of a connector cannot be opened"
    );
    let text = "the object store `root` cannot be opened; the operator sets its credentials and its \
                server in the host's environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and related \
                variables), and the host's log has the reason";
    ConnectorError::new(UNAVAILABLE, text)
}

/// Answers of a store can contain the host's credentials, such as the signed request, so they are
/// not repeated.
fn explained(error: &object_store::Error) -> ObjectFailure {
    use object_store::Error;
    let (kind, text) = match (error, status(error)) {
        (Error::NotFound { .. }, _) | (_, Some(404)) => (
            UNAVAILABLE,
            "the object store does not have it, or no longer; check the bucket of `root`, or call again",
        ),
        (Error::PermissionDenied { .. } | Error::Unauthenticated { .. }, _) | (_, Some(401 | 403)) => (
            ConnectorErrorKind::Unauthorized,
            "the object store denied access; the operator's credentials must be allowed to list the \
             bucket and to read its objects",
        ),
        (Error::Precondition { .. }, _) => (UNAVAILABLE, "it changed while it was read; call again"),
        (Error::InvalidPath { .. }, _) => (
            UNAVAILABLE,
            "an object there has a name that is not a path; rename or remove objects whose names have \
             empty parts, `.`, `..` or control characters",
        ),
        (error, _) => {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "the object store of a connector failed"
            );
            (
                UNAVAILABLE,
                "the object store failed or cannot be reached; try again later, or see the host's log",
            )
        }
    };
    (kind, text.to_owned())
}

/// Returns the HTTP status of a failed listing, which is only in its text.
fn status(error: &object_store::Error) -> Option<u16> {
    let text = error.to_string();
    let (_, after) = text.split_once("status code: ")?;
    after.get(..3)?.parse().ok()
}
