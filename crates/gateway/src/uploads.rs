//! Uploads of the gateway's own routes.

use std::convert::Infallible;

use axum::body::Bytes;
use axum::http::StatusCode;
use cellblock_agent::wire::ErrorKind;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::hosting::uploads::{DeclaredSize, MaxUpload, SpooledUpload, Upload, UploadError};
use futures_util::stream;

use crate::problem::Problem;
use crate::state::{Caller, Gateway};

impl Gateway {
    /// Begins an upload if the quota and the room of its owner have room for it.
    pub(crate) async fn begin_upload(
        &self,
        caller: &Caller,
        declared: DeclaredSize,
        max: MaxUpload,
    ) -> Result<Upload, Problem> {
        let allowance = self.quotas.upload(&caller.owner, declared.at_least()).await?;
        let owner = Owner::new(&*caller.owner);
        Ok(self.uploads.begin(&owner, Box::new(allowance), declared, max)?)
    }

    /// Counts bytes that came within a document, and puts them into a file.
    pub(crate) async fn spool(&self, caller: &Caller, bytes: Vec<u8>) -> Result<SpooledUpload, Problem> {
        let size = DeclaredSize::File(bytes.len() as u64);
        let mut upload = self.begin_upload(caller, size, self.max_upload()).await?;
        let whole = stream::iter([Ok::<_, Infallible>(Bytes::from(bytes))]);
        Ok(upload.receive(whole).await?)
    }

    /// Maximum size of a file, an input or a dataset of a session.
    pub(crate) fn max_upload(&self) -> MaxUpload {
        MaxUpload {
            bytes: self.options.sessions.max_upload,
            setting: "sessions.max_upload",
        }
    }
}

impl From<UploadError> for Problem {
    fn from(error: UploadError) -> Self {
        let (status, code) = match error {
            UploadError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
            UploadError::Denied(_) => {
                let (status, kind) = (StatusCode::TOO_MANY_REQUESTS, ErrorKind::TooManyRequests);
                return Self::new(status, kind, "rate_limit_exceeded", error.to_string());
            }
            UploadError::Busy { .. } => return Self::busy("uploads_busy", error.to_string()),
            UploadError::TimedOut(_) => (StatusCode::REQUEST_TIMEOUT, "upload_timeout"),
            UploadError::Broken(_) => (StatusCode::BAD_REQUEST, "incomplete_body"),
            UploadError::File(source) => return Self::internal("keep the upload", &source),
        };
        Self::new(status, ErrorKind::InvalidRequestError, code, error.to_string())
    }
}
