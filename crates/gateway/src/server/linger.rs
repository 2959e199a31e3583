//! What is left of a body when its request is answered: it is read on for a while.
//!
//! A client that still sends when its connection closes hears of a broken pipe, and not why it was refused.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::EXPECT;
use futures_util::StreamExt as _;
use hyper::body::{Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The most bytes that are read of a body that nobody wants.
const MOST: usize = 32 << 20;
/// The longest that they are read.
const LONGEST: Duration = Duration::from_secs(5);

/// Has the rest of a request's body read when it is dropped.
pub(super) fn linger(request: Request) -> Request {
    // Who asks before it sends has nothing left to say when the answer is no.
    if request.headers().contains_key(EXPECT) {
        return request;
    }
    request.map(|body| Body::new(Lingering { body }))
}

struct Lingering {
    body: Body,
}

impl Drop for Lingering {
    fn drop(&mut self) {
        if hyper::body::Body::is_end_stream(&self.body) {
            return;
        }
        // Without a runtime there is no connection either.
        if let Ok(runtime) = Handle::try_current() {
            let body = std::mem::take(&mut self.body);
            runtime.spawn(timeout(LONGEST, discard(body)));
        }
    }
}

async fn discard(body: Body) {
    let mut read = 0;
    let mut pieces = body.into_data_stream();
    while let Some(Ok(piece)) = pieces.next().await {
        read += piece.len();
        if read > MOST {
            return;
        }
    }
}

impl hyper::body::Body for Lingering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
