//! Services beside the gateway's routes: what an owner has in one is in one gateway, and is used
//! through the others.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::extract::ws::{Message as Said, WebSocketUpgrade};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post, put};
use bytes::Bytes;
use cellblock_agent::provider::scripted::ScriptedProvider;
use cellblock_gateway::Gateway;
use cellblock_gateway::server::Mount;
use cellblock_testkit::{DatabaseServer, require};
use futures_util::{SinkExt as _, StreamExt as _};
use parking_lot::Mutex;
use reqwest::Method;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::support::{Api, block_on, code, database, key, read, replica_with, shared_interpreter};

/// A service that keeps a note for each owner, and says in which gateway.
#[derive(Clone)]
struct Notes {
    gateway: Gateway,
    kept: Arc<Mutex<HashMap<String, String>>>,
}

impl Notes {
    fn mount(gateway: &Gateway) -> Vec<Mount> {
        let notes = Self {
            gateway: gateway.clone(),
            kept: Arc::default(),
        };
        let routes = Router::new()
            .route("/note", get(note))
            .route("/form", post(form))
            .route("/file", put(file))
            .route("/socket", any(socket))
            .route("/opened", get(opened))
            .with_state(notes);
        vec![Mount::below("/notes", routes).naming(named)]
    }

    /// The caller, as dialects find it.
    async fn caller(&self, headers: &HeaderMap) -> Result<String, Response> {
        let secret = headers["authorization"].to_str().unwrap().strip_prefix("Bearer ");
        let caller = self.gateway.identify(secret, "/notes", None).await;
        let owner = caller
            .map_err(|_| StatusCode::UNAUTHORIZED.into_response())?
            .owner;
        if self.gateway.at_home(&owner).await.unwrap() {
            Ok(owner)
        } else {
            Err("elsewhere".into_response())
        }
    }

    fn name(&self) -> &str {
        self.gateway.mark().unwrap()
    }
}

fn named(parts: &Parts) -> Option<String> {
    Some(parts.headers.get("note-id")?.to_str().ok()?.to_owned())
}

async fn note(State(notes): State<Notes>, headers: HeaderMap) -> Response {
    match notes.caller(&headers).await {
        Ok(owner) => notes
            .kept
            .lock()
            .get(&owner)
            .cloned()
            .unwrap_or_default()
            .into_response(),
        Err(response) => response,
    }
}

/// Reads its body before it knows who calls.
async fn form(State(notes): State<Notes>, headers: HeaderMap, body: Bytes) -> Response {
    match notes.caller(&headers).await {
        Ok(owner) => {
            let text = String::from_utf8(body.to_vec()).unwrap();
            notes.kept.lock().insert(owner, text);
            notes.name().to_owned().into_response()
        }
        Err(response) => response,
    }
}

/// Counts the bytes of a body.
async fn file(State(notes): State<Notes>, headers: HeaderMap, body: Body) -> Response {
    if let Err(response) = notes.caller(&headers).await {
        return response;
    }
    let mut pieces = body.into_data_stream();
    let mut bytes = 0;
    while let Some(piece) = pieces.next().await {
        bytes += piece.unwrap().len();
    }
    bytes.to_string().into_response()
}

async fn socket(State(notes): State<Notes>, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    match notes.caller(&headers).await {
        Ok(_) => upgrade.on_upgrade(async move |mut socket| {
            while let Some(Ok(Said::Text(text))) = socket.recv().await {
                let answer = format!("{} {text}", notes.name());
                if socket.send(Said::text(answer)).await.is_err() {
                    break;
                }
            }
        }),
        Err(response) => response,
    }
}

/// Needs no key.
async fn opened(State(notes): State<Notes>) -> String {
    notes.name().to_owned()
}

#[test]
fn what_an_owner_has_in_a_mounted_service_is_used_through_any_gateway() {
    require!(Postgres);
    block_on(async {
        let server = DatabaseServer::shared_postgres().await;
        let url = database(&server).await;
        let interpreter = shared_interpreter().await;
        let start = async || {
            let model = Arc::new(ScriptedProvider::new([]));
            replica_with(&url, model, Arc::clone(&interpreter), |_| {}, Notes::mount).await
        };
        let ((first, at), (second, other)) = (start().await, start().await);
        let ann = key(&first, "ann").await;
        let (one, two) = (Api::new(at, &ann), Api::new(other, &ann));
        let text = async |api: &Api, method: Method, path: &str, body: Vec<u8>| {
            let answer = api.request(method, path).body(body).send().await.unwrap();
            assert_eq!(answer.status(), 200);
            answer.text().await.unwrap()
        };
        let home = first.mark().unwrap();
        // The first gateway that is asked is the home, and the other one passes on what its service has read.
        let kept = text(&one, Method::POST, "/notes/form", b"a".to_vec()).await;
        assert_eq!(kept, home);
        let kept = text(&two, Method::POST, "/notes/form", b"b".to_vec()).await;
        assert_eq!(kept, home);
        for api in [&one, &two] {
            assert_eq!(text(api, Method::GET, "/notes/note", Vec::new()).await, "b");
        }
        // Another owner's home is another one, and that of a wrong key nowhere.
        let eve = key(&first, "eve").await;
        let (one_eve, two_eve) = (one.with_key(&eve), two.with_key(&eve));
        let kept = text(&two_eve, Method::POST, "/notes/form", b"e".to_vec()).await;
        assert_eq!(kept, second.mark().unwrap());
        assert_eq!(text(&one_eve, Method::GET, "/notes/note", Vec::new()).await, "e");
        assert_eq!(two.with_key("cbk_unknown").get("/notes/note").await.0, 401);

        // A body that nobody has read passes through, whatever its size; of one that was read, not
        // more than is remembered.
        let large = vec![b'x'; 3 << 20];
        let counted = text(&two, Method::PUT, "/notes/file", large.clone()).await;
        assert_eq!(counted, large.len().to_string());
        let refused = two
            .request(Method::POST, "/notes/form")
            .body(large[..100 << 10].to_vec());
        let refused = read(refused.send().await.unwrap()).await;
        assert_eq!(code(&refused), (503, "gateway_failed"));

        let mut request = format!("ws://{other}/notes/socket")
            .into_client_request()
            .unwrap();
        let bearer = format!("Bearer {ann}").parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        let (mut socket, _) = connect_async(request).await.unwrap();
        socket.send(Message::text("hello")).await.unwrap();
        let said = tokio::time::timeout(Duration::from_mins(1), socket.next()).await;
        assert_eq!(
            said.unwrap().unwrap().unwrap(),
            Message::text(format!("{home} hello"))
        );

        // Without a key, an id leads to the gateway that made it.
        for gateway in [&first, &second] {
            let id = format!("{}0123", gateway.mark().unwrap());
            let asked = two.request(Method::GET, "/notes/opened").header("note-id", id);
            let answer = asked.send().await.unwrap().text().await.unwrap();
            assert_eq!(answer, gateway.mark().unwrap());
        }
        for gateway in [first, second] {
            gateway.stop();
            gateway.stop();
        }
    });
}
