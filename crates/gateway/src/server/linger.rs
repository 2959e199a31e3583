//! Rest of a body whose request is answered: it is read on for a while.
//!
//! A client that still sends when its connection closes hears of a broken pipe, and not why it was refused.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::http::header::EXPECT;
use futures_util::{Stream, StreamExt as _};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// Maximum number of bytes that are read of a body that nobody wants.
const MOST: usize = 32 << 20;
/// The longest that they are read.
const LONGEST: Duration = Duration::from_secs(5);

/// Has the rest of a request's body read when it is dropped.
pub(super) fn linger(request: Request) -> Request {
    // Who asks before it sends has nothing left to say when the answer is no.
    if request.headers().contains_key(EXPECT) || request.body().is_end_stream() {
        return request;
    }
    request.map(|body| {
        Body::from_stream(LingeringBody {
            pieces: Some(body.into_data_stream()),
        })
    })
}

/// The pieces of a body, none of them once it has ended.
struct LingeringBody {
    pieces: Option<BodyDataStream>,
}

impl Stream for LingeringBody {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(pieces) = &mut self.pieces else {
            return Poll::Ready(None);
        };
        let piece = pieces.poll_next_unpin(context);
        if matches!(piece, Poll::Ready(None | Some(Err(_)))) {
            self.pieces = None;
        }
        piece
    }
}

impl Drop for LingeringBody {
    fn drop(&mut self) {
        // Without a runtime there is no connection either.
        if let (Some(pieces), Ok(runtime)) = (self.pieces.take(), Handle::try_current()) {
            runtime.spawn(timeout(LONGEST, discard(pieces)));
        }
    }
}

async fn discard(mut pieces: BodyDataStream) {
    let mut read = 0;
    while let Some(Ok(piece)) = pieces.next().await {
        read += piece.len();
        if read > MOST {
            return;
        }
    }
}
