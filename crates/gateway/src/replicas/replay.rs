//! A body that a route may have begun to read before it turned out that another gateway has to.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use futures_util::{StreamExt as _, stream};
use hyper::body::{Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};

/// Bytes that are remembered: routes find out who calls before they read more than a form.
const REMEMBERED: usize = 64 << 10;

/// A body that can be read once more, from its beginning. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Replay(Arc<Mutex<ReplayInner>>);

#[derive(Debug)]
struct ReplayInner {
    rest: Body,
    read: Vec<Bytes>,
    bytes: usize,
    has_ended: bool,
}

impl Replay {
    pub(super) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(ReplayInner {
            rest: body,
            read: Vec::new(),
            bytes: 0,
            has_ended: false,
        })))
    }

    /// Returns all of it, unless more was read than is remembered.
    pub(super) fn whole(&self) -> Option<Body> {
        let mut inner = self.inner();
        if inner.bytes > REMEMBERED {
            return None;
        }
        let rest = std::mem::take(&mut inner.rest);
        let read = std::mem::take(&mut inner.read);
        if inner.has_ended {
            return Some(Body::from(read.concat()));
        }
        if read.is_empty() {
            return Some(rest);
        }
        let read = stream::iter(read.into_iter().map(Ok));
        Some(Body::from_stream(read.chain(rest.into_data_stream())))
    }

    fn inner(&self) -> MutexGuard<'_, ReplayInner> {
        self.0.lock()
    }
}

impl HttpBody for Replay {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut inner = self.inner();
        let frame = ready!(Pin::new(&mut inner.rest).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(piece) = frame.data_ref() {
                    inner.bytes += piece.len();
                    if inner.bytes <= REMEMBERED {
                        inner.read.push(piece.clone());
                    } else {
                        inner.read.clear();
                    }
                }
            }
            Some(Err(_)) => {}
            None => inner.has_ended = true,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner().rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner().rest.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn pieces(sizes: &[usize]) -> Replay {
        let pieces: Vec<_> = sizes.iter().map(|size| vec![b'x'; *size]).collect();
        let pieces = pieces
            .into_iter()
            .map(|piece| Ok::<_, axum::Error>(Bytes::from(piece)));
        Replay::new(Body::from_stream(stream::iter(pieces)))
    }

    #[tokio::test]
    async fn what_was_read_of_a_body_is_read_again_unless_it_was_much() {
        for frames in 0..4 {
            let body = pieces(&[3, 4, 5]);
            let mut first = body.clone();
            for _ in 0..frames {
                first.frame().await.unwrap().unwrap();
            }
            let again = body.whole().unwrap().collect().await.unwrap().to_bytes();
            assert_eq!(again.len(), 12, "{frames}");
        }
        let read = pieces(&[3, 4]);
        read.clone().collect().await.unwrap();
        assert_eq!(read.whole().unwrap().collect().await.unwrap().to_bytes().len(), 7);
        let large = pieces(&[REMEMBERED, 1, 1]);
        large.clone().collect().await.unwrap();
        assert!(large.whole().is_none());
    }
}
