//! Conversions: stored data that the gateway sorts, converts, hashes or draws for a request,
//! outside cells. Each counts as a cell.
//!
//! ```text
//! // 429 or 503 with Retry-After
//! let (file, permit) = convert(&gateway, &caller.owner, async move { … }).await?;
//! // the place is free when it is sent
//! body_of(file, permit)
//! ```

use std::fs::File;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_LENGTH, HeaderName};
use cellblock_interpreter::conversion::ConversionPlace;
use futures_util::StreamExt as _;
use tokio_util::io::ReaderStream;

use crate::attended::attended;
use crate::problem::Problem;
use crate::quotas::CellPermit;
use crate::state::Gateway;

/// Bytes of a file that are in memory while it is sent.
const PIECE: usize = 64 << 10;

/// Does such work once the owner's quotas permit a cell and a processor is free. What has begun
/// goes on if its client leaves, and keeps its places until it has ended. Returns also the permit,
/// whose time has been counted.
///
/// # Errors
///
/// Those of the work, 429 if a quota is used up, and 503 if too many conversions wait.
pub(crate) async fn convert<T: Send + 'static>(
    gateway: &Gateway,
    owner: &str,
    work: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<(T, CellPermit), Problem> {
    let mut permit = gateway.quotas.cell(owner).await?;
    attended(gateway, "convert stored data", |gone| async move {
        permit.stop(Duration::ZERO);
        let place = tokio::select! {
            place = ConversionPlace::take() => place,
            () = gone.cancelled() => return None,
        };
        let place = match place {
            Ok(place) => place,
            Err(error) => return Some(Err(error.into())),
        };
        let began = tokio::time::Instant::now();
        let done = work.await;
        permit.stop(began.elapsed());
        drop(place);
        Some(done.map(|done| (done, permit)))
    })
    .await
}

/// Returns a file as a body, with its length. The permit is held until the body is sent, so that an
/// owner has few such files.
pub(crate) fn body_of(
    file: File,
    permit: CellPermit,
) -> Result<([(HeaderName, HeaderValue); 1], Body), Problem> {
    let metadata = file
        .metadata()
        .map_err(|error| Problem::internal("send a converted file", &error))?;
    let pieces = ReaderStream::with_capacity(tokio::fs::File::from_std(file), PIECE);
    let pieces = pieces.map(move |piece| {
        let _held = &permit;
        piece
    });
    let length = [(CONTENT_LENGTH, HeaderValue::from(metadata.len()))];
    Ok((length, Body::from_stream(pieces)))
}
