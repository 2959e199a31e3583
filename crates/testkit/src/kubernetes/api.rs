//! The API server: paths, verbs and watches over the store.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::fault::{FaultKind, Faults};
use super::status::{Resource, failure};
use super::store::{Event, Store, merge, timestamp};
use super::{ADMIN, GATEWAY, NOBODY};

/// Largest body of a request.
const BODY: usize = 1 << 20;

#[derive(Clone)]
pub(super) struct ApiServer {
    store: Arc<Store>,
    faults: Arc<Faults>,
}

/// Target of a request: resource, namespace, name, subresource.
pub(super) struct Target {
    pub(super) resource: &'static Resource,
    namespace: String,
    name: Option<String>,
    sub: Option<String>,
}

impl ApiServer {
    pub(super) const fn new(store: Arc<Store>, faults: Arc<Faults>) -> Self {
        Self { store, faults }
    }

    pub(super) fn router(self) -> Router {
        Router::new().fallback(answer).with_state(self)
    }
}

async fn answer(State(server): State<ApiServer>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, BODY).await.unwrap_or_default();
    let query = query(&parts.uri);
    let path = parts.uri.path().trim_matches('/').to_owned();
    if let Some(refused) = unauthorized(&parts.headers) {
        return refused;
    }
    if let Some(found) = server.discovery(&path, &parts.headers, &body) {
        return found;
    }
    let Some(target) = target(&path) else {
        return refuse(&failure(
            404,
            "NotFound",
            "the server could not find the requested resource",
        ));
    };
    let method = target.method(parts.method.as_str(), &query);
    if !server.permits(&parts.headers, target.resource.plural, verb(method)) {
        let (verb, name) = (verb(method), target.name.as_deref());
        let user = if is_nobody(&parts.headers) {
            "dev"
        } else {
            "gateway"
        };
        return refuse(&target.resource.forbidden(verb, name, &target.namespace, user));
    }
    let fault = server.faults.next(method, target.resource.plural);
    if let Some(FaultKind::Status(code)) = fault {
        return broken(code);
    }
    let response = match method {
        "WATCH" => server.watch(&target, &query),
        "GET" | "LIST" => server.read(&target, &query),
        "POST" => server.create(&target, &body),
        "PATCH" => server.patch(&target, &body),
        "DELETE" => server.delete(&target, &query, &body),
        _ => refuse(&failure(
            405,
            "MethodNotAllowed",
            "the server does not allow this method",
        )),
    };
    if fault == Some(FaultKind::Cut) {
        return cut();
    }
    response
}

/// The answer of an API server that cannot do it now.
pub(super) fn broken(code: u16) -> Response {
    let mut refused = failure(code, reason(code), "the server has asked us to try again later");
    refused["details"] = json!({"retryAfterSeconds": u8::from(code == 429)});
    refuse(&refused)
}

/// An answer that ends in the middle, with its connection.
pub(super) fn cut() -> Response {
    let cut = stream::once(async { Err::<Bytes, _>(std::io::Error::other("cut")) });
    Response::new(Body::from_stream(cut))
}

/// Returns the values of a query by their keys.
pub(super) fn query(uri: &Uri) -> impl Fn(&str) -> Option<String> + use<> {
    let text = uri.query().unwrap_or("").as_bytes();
    let query: Vec<(String, String)> = url::form_urlencoded::parse(text).into_owned().collect();
    move |key| {
        let found = query.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.clone())
    }
}

impl ApiServer {
    fn permits(&self, headers: &HeaderMap, resource: &str, verb: &str) -> bool {
        match token(headers) {
            NOBODY => false,
            GATEWAY => self.faults.permits(resource, verb),
            _ => true,
        }
    }

    fn discovery(&self, path: &str, headers: &HeaderMap, body: &Bytes) -> Option<Response> {
        match path {
            "apis/extensions.agents.x-k8s.io" => {
                let version = if self.faults.is_old_version() {
                    "v1alpha1"
                } else {
                    "v1beta1"
                };
                let version = json!({"groupVersion": format!("extensions.agents.x-k8s.io/{version}"),
                    "version": version});
                Some(found(&json!({
                    "kind": "APIGroup", "apiVersion": "v1", "name": "extensions.agents.x-k8s.io",
                    "versions": [version], "preferredVersion": version,
                })))
            }
            "apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
                let mut review: Value = serde_json::from_slice(body).unwrap_or_default();
                let asked = &review["spec"]["resourceAttributes"];
                let text = |key: &str| asked[key].as_str().unwrap_or_default();
                review["status"] = json!({"allowed": self.permits(headers, text("resource"), text("verb"))});
                Some((StatusCode::CREATED, axum::Json(review)).into_response())
            }
            _ => None,
        }
    }

    fn read(&self, target: &Target, query: &dyn Fn(&str) -> Option<String>) -> Response {
        if let Some(name) = &target.name {
            return reply(StatusCode::OK, self.store.get(target.resource.plural, name));
        }
        let mut items = self.store.list(target.resource.plural);
        items.retain(|object| selects(object, query));
        found(&json!({
            "kind": format!("{}List", target.resource.kind),
            "apiVersion": target.resource.api_version(),
            "metadata": {"resourceVersion": self.store.version().to_string()},
            "items": items,
        }))
    }

    fn create(&self, target: &Target, body: &Bytes) -> Response {
        let object: Value = match serde_json::from_slice(body) {
            Ok(object) => object,
            Err(error) => return refuse(&failure(400, "BadRequest", &error.to_string())),
        };
        let (plural, namespace) = (target.resource.plural, &target.namespace);
        if let (Some(name), Some("binding")) = (&target.name, target.sub.as_deref()) {
            let node = object["target"]["name"].clone();
            let bound = self
                .store
                .update(plural, namespace, name, |pod| pod["spec"]["nodeName"] = node);
            return reply(StatusCode::CREATED, bound);
        }
        reply(StatusCode::CREATED, self.store.create(plural, namespace, object))
    }

    fn patch(&self, target: &Target, body: &Bytes) -> Response {
        let patch: Value = match serde_json::from_slice(body) {
            Ok(patch) => patch,
            Err(error) => return refuse(&failure(400, "BadRequest", &error.to_string())),
        };
        let name = target.name.as_deref().unwrap_or_default();
        let change = |object: &mut Value| {
            if target.sub.as_deref() == Some("status") {
                merge(&mut object["status"], &patch["status"]);
            } else {
                let status = object["status"].clone();
                merge(object, &patch);
                object["status"] = status;
            }
        };
        let (plural, namespace) = (target.resource.plural, &target.namespace);
        reply(StatusCode::OK, self.store.update(plural, namespace, name, change))
    }

    /// Deletes at once, except pods on a node, which their kubelet deletes.
    fn delete(&self, target: &Target, query: &dyn Fn(&str) -> Option<String>, body: &Bytes) -> Response {
        let options: Value = serde_json::from_slice(body).unwrap_or_default();
        let name = target.name.as_deref().unwrap_or_default();
        let object = match self.store.get(target.resource.plural, name) {
            Ok(object) => object,
            Err(missing) => return refuse(&missing),
        };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        if let Some(wanted) = options["preconditions"]["uid"].as_str().filter(|it| *it != uid) {
            return refuse(&target.resource.precondition(name, wanted, uid));
        }
        let now =
            options["gracePeriodSeconds"] == 0 || query("gracePeriodSeconds").is_some_and(|it| it == "0");
        let (plural, namespace) = (target.resource.plural, &target.namespace);
        if plural == "pods" && object["spec"]["nodeName"].is_string() && !now {
            let marked = self.store.update(plural, namespace, name, |pod| {
                pod["metadata"]["deletionTimestamp"] = json!(timestamp());
            });
            return reply(StatusCode::OK, marked);
        }
        reply(StatusCode::OK, self.store.remove(plural, namespace, name))
    }

    /// Streams events after a version; from `0` or nothing, what exists comes first.
    fn watch(&self, target: &Target, query: &dyn Fn(&str) -> Option<String>) -> Response {
        let plural = target.resource.plural;
        let from = query("resourceVersion")
            .and_then(|it| it.parse::<u64>().ok())
            .unwrap_or(0);
        let (mut first, mut version) = (Vec::new(), from);
        if from == 0 {
            version = self.store.version();
            first = self.store.list(plural);
        }
        let selector = [query("fieldSelector"), query("labelSelector")];
        let wanted = move |object: &Value| {
            selects(object, &|key| match key {
                "fieldSelector" => selector[0].clone(),
                _ => selector[1].clone(),
            })
        };
        first.retain(|object| wanted(object));
        let initial = first
            .iter()
            .map(|object| line("ADDED", object))
            .collect::<String>();
        let (store, changes) = (Arc::clone(&self.store), self.store.changes());
        let state = (store, changes, version, false);
        let later = stream::unfold(state, move |(store, mut changes, mut version, mut over)| {
            let wanted = wanted.clone();
            async move {
                loop {
                    if over {
                        return None;
                    }
                    changes.mark_unchanged();
                    let text = match store.since(plural, version, &wanted) {
                        Ok((events, last)) => {
                            version = last;
                            let lines = events.iter().map(|Event { kind, object, .. }| line(kind, object));
                            lines.collect()
                        }
                        Err(expired) => {
                            over = true;
                            line("ERROR", &expired)
                        }
                    };
                    if !text.is_empty() {
                        return Some((
                            Ok::<_, Infallible>(Bytes::from(text)),
                            (store, changes, version, over),
                        ));
                    }
                    if changes.changed().await.is_err() {
                        return None;
                    }
                }
            }
        });
        let all = stream::once(async move { Ok(Bytes::from(initial)) }).chain(later);
        Response::new(Body::from_stream(all))
    }
}

fn line(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

impl Target {
    /// Returns the method, with `WATCH` and `LIST` apart from `GET`.
    pub(super) fn method<'a>(&self, method: &'a str, query: &dyn Fn(&str) -> Option<String>) -> &'a str {
        match (method, query("watch"), &self.name) {
            ("GET", Some(_), _) => "WATCH",
            ("GET", None, None) => "LIST",
            (method, ..) => method,
        }
    }
}

pub(super) fn target(path: &str) -> Option<Target> {
    let parts: Vec<&str> = path.split('/').collect();
    let (["apis", _, _, "namespaces", rest @ ..] | ["api", "v1", "namespaces", rest @ ..]) = parts.as_slice()
    else {
        return None;
    };
    let (namespace, plural) = (rest.first()?, rest.get(1)?);
    Some(Target {
        resource: Resource::of(plural)?,
        namespace: (*namespace).to_owned(),
        name: rest.get(2).map(|it| (*it).to_owned()),
        sub: rest.get(3).map(|it| (*it).to_owned()),
    })
}

/// Applies the selectors of a list or watch: `a=b` of labels, `metadata.name=x` of fields.
fn selects(object: &Value, query: &dyn Fn(&str) -> Option<String>) -> bool {
    let each = |selector: Option<String>, value: &dyn Fn(&str) -> Option<String>| {
        selector
            .unwrap_or_default()
            .split(',')
            .filter(|it| !it.is_empty())
            .all(|it| {
                let (key, wanted) = it.split_once('=').unwrap_or((it, ""));
                value(key).is_some_and(|has| has == wanted)
            })
    };
    each(query("labelSelector"), &|key| {
        object["metadata"]["labels"][key].as_str().map(str::to_owned)
    }) && each(query("fieldSelector"), &|key| {
        let found = key.split('.').fold(object, |at, part| &at[part]);
        found.as_str().map(str::to_owned)
    })
}

fn token(headers: &HeaderMap) -> &str {
    let brought = headers.get("authorization").and_then(|it| it.to_str().ok());
    brought
        .and_then(|it| it.strip_prefix("Bearer "))
        .unwrap_or_default()
}

fn is_nobody(headers: &HeaderMap) -> bool {
    token(headers) == NOBODY
}

fn unauthorized(headers: &HeaderMap) -> Option<Response> {
    let known = [ADMIN, GATEWAY, NOBODY].contains(&token(headers));
    (!known).then(|| refuse(&failure(401, "Unauthorized", "Unauthorized")))
}

fn verb(method: &str) -> &'static str {
    match method {
        "WATCH" => "watch",
        "POST" => "create",
        "PATCH" => "patch",
        "DELETE" => "delete",
        "LIST" => "list",
        _ => "get",
    }
}

const fn reason(code: u16) -> &'static str {
    match code {
        403 => "Forbidden",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    }
}

fn reply(status: StatusCode, result: Result<Value, Value>) -> Response {
    match result {
        Ok(object) => (status, axum::Json(object)).into_response(),
        Err(refused) => refuse(&refused),
    }
}

fn found(object: &Value) -> Response {
    axum::Json(object).into_response()
}

fn refuse(refused: &Value) -> Response {
    let code = refused["code"].as_u64().and_then(|it| u16::try_from(it).ok());
    let code = code.and_then(|it| StatusCode::from_u16(it).ok());
    let status = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, axum::Json(refused)).into_response()
}
