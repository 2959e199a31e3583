//! Requests of one client connection: each is checked, and forwarded or refused.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::upgrade;
use parking_lot::Mutex;

use crate::after::ConnectionRest;
use crate::dial::{classify, dial};
use crate::entry::RequestEntry;
use crate::front::Front;
use crate::head::BodyFraming;
use crate::headers::{prepare, remove_hop_by_hop, set_websocket, wants_websocket};
use crate::proxy::ProxyState;
use crate::refusal::{EgressRefusal, MARK};
use crate::rules::{Passage, Rules, TUNNEL};
use crate::strict::Verdicts;
use crate::target::EgressTarget;
use crate::upstream::Upstream;

/// The body of an answer of the proxy, or of a server.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, hyper::Error>;

/// The state of a client connection.
#[derive(Debug)]
pub(crate) struct Exchange {
    shared: Arc<ProxyState>,
    front: Front,
    verdicts: Verdicts,
    /// The connection of the last request.
    kept: Mutex<Option<Upstream>>,
    after: Mutex<Option<ConnectionRest>>,
}

impl Exchange {
    pub(crate) fn new(shared: &Arc<ProxyState>, front: Front, verdicts: Verdicts) -> Self {
        Self {
            shared: Arc::clone(shared),
            front,
            verdicts,
            kept: Mutex::default(),
            after: Mutex::default(),
        }
    }

    /// Returns what follows the last response.
    pub(crate) fn after(&self) -> Option<ConnectionRest> {
        self.after.lock().take()
    }

    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let verdict = self.verdicts.next();
        // Only a body whose end is known is followed by a head that is checked.
        let close = !matches!(verdict, Ok(BodyFraming::Length(_)));
        let mut entry = RequestEntry::new(&self.shared, request.method().as_str());
        let target = match verdict
            .map_err(EgressRefusal::malformed)
            .and_then(|_| self.front.target(&request))
        {
            Ok(target) => target,
            Err(refusal) => {
                entry.refuse(&refusal);
                return refusal.response(close).map(own);
            }
        };
        entry.target(&target);
        let answered = if request.method() == Method::CONNECT {
            self.connect(entry, target, request).await
        } else {
            self.forward(entry, target, verdict.unwrap_or(BodyFraming::Open), request)
                .await
        };
        match answered {
            Ok(mut response) => {
                let switches = self.after.lock().is_some();
                if close && !switches {
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(CONNECTION, close);
                }
                response
            }
            Err(refusal) => refusal.response(close).map(own),
        }
    }

    async fn connect(
        &self,
        mut entry: RequestEntry,
        target: EgressTarget,
        mut request: Request<Incoming>,
    ) -> Result<Response<AnswerBody>, EgressRefusal> {
        let client = upgrade::on(&mut request);
        let connected = async {
            let passage = self.shared.rules().connect(&target)?;
            if passage == Passage::Intercept {
                return Ok(None);
            }
            self.shared.meter.begin()?;
            dial(&self.shared, &target, TUNNEL).await.map(Some)
        };
        let after = match connected.await {
            Ok(None) => {
                entry.discard();
                ConnectionRest::Intercept { client, target }
            }
            Ok(Some((upstream, _))) => {
                entry.whole_flow(&upstream.flow());
                ConnectionRest::Tunnel {
                    client,
                    upstream,
                    entry,
                }
            }
            Err(refusal) => {
                entry.refuse(&refusal);
                return Err(refusal);
            }
        };
        self.set_after(after);
        Ok(Response::new(own(Full::default())))
    }

    async fn forward(
        &self,
        mut entry: RequestEntry,
        target: EgressTarget,
        framing: BodyFraming,
        mut request: Request<Incoming>,
    ) -> Result<Response<AnswerBody>, EgressRefusal> {
        let client = upgrade::on(&mut request);
        // A response hides the secrets that its request had.
        let rules = self.shared.rules();
        let sent = match self.prepare(&rules, &target, framing, request) {
            Ok((request, websocket)) => {
                let sent = self.send(&mut entry, &target, request).await;
                sent.map(|(response, upstream)| (response, upstream, websocket))
            }
            Err(refusal) => Err(refusal),
        };
        let (mut response, upstream, websocket) = sent.inspect_err(|refusal| entry.refuse(refusal))?;
        remove_hop_by_hop(response.headers_mut());
        // Only the proxy marks its answers.
        response.headers_mut().remove(MARK);
        rules.hide(&target, response.headers_mut());
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            if !websocket {
                let refusal = EgressRefusal::upstream(&target, "it switched to another protocol");
                entry.refuse(&refusal);
                return Err(refusal);
            }
            set_websocket(response.headers_mut());
            let server = upgrade::on(&mut response);
            self.set_after(ConnectionRest::Socket {
                client,
                server,
                upstream,
                entry,
            });
            return Ok(response.map(|_| own(Full::default())));
        }
        *self.kept.lock() = Some(upstream);
        let shared = Arc::clone(&self.shared);
        // The record is written when the body ends, and with it the entry.
        let failed = move |error: hyper::Error| {
            let refusal = classify(&shared, &target, &error)
                .unwrap_or_else(|| EgressRefusal::upstream(&target, "the response ended early"));
            entry.refuse(&refusal);
            error
        };
        Ok(response.map(|body| body.map_err(failed).boxed_unsync()))
    }

    /// Checks a request, and makes it the one that the server gets.
    fn prepare(
        &self,
        rules: &Rules,
        target: &EgressTarget,
        framing: BodyFraming,
        request: Request<Incoming>,
    ) -> Result<(Request<Incoming>, bool), EgressRefusal> {
        let (mut parts, body) = request.into_parts();
        rules.request(target, parts.method.as_str())?;
        let websocket = wants_websocket(&parts.method, &parts.headers)?;
        let default_port = if self.front.encrypted() { 443 } else { 80 };
        prepare(&mut parts.headers, target, default_port, framing);
        if websocket {
            set_websocket(&mut parts.headers);
        }
        rules.add_secrets(target, self.front.encrypted(), &mut parts.headers)?;
        self.shared.meter.begin()?;
        parts.uri = match parts.uri.path_and_query() {
            Some(path) => Uri::from(path.clone()),
            None => Uri::from_static("/"),
        };
        parts.version = Version::HTTP_11;
        parts.extensions.clear();
        Ok((Request::from_parts(parts, body), websocket))
    }

    async fn send(
        &self,
        entry: &mut RequestEntry,
        target: &EgressTarget,
        request: Request<Incoming>,
    ) -> Result<(Response<Incoming>, Upstream), EgressRefusal> {
        let shared = &*self.shared;
        let method = request.method().clone();
        let kept = self.kept.lock().take();
        let mut request = request;
        if let Some(mut upstream) = kept
            && upstream.serves(shared, target, method.as_str()).await
        {
            entry.flow(&upstream.flow);
            match upstream.send(shared, request).await {
                Ok(response) => return Ok((response, upstream)),
                // The server closed the connection before it got the request.
                Err(unanswered) => request = unanswered.request.ok_or(unanswered.refusal)?,
            }
        }
        let mut upstream = Upstream::connect(shared, target, self.front.encrypted(), method.as_str()).await?;
        entry.whole_flow(&upstream.flow);
        let response = upstream.send(shared, request).await;
        let response = response.map_err(|unanswered| unanswered.refusal)?;
        Ok((response, upstream))
    }

    fn set_after(&self, after: ConnectionRest) {
        *self.after.lock() = Some(after);
    }
}

fn own(body: Full<Bytes>) -> AnswerBody {
    body.map_err(|never| match never {}).boxed_unsync()
}
