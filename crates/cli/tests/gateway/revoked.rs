//! Keys that are revoked while their connections are open and their sandboxes run.

use serde_json::{Value, json};

use crate::http::{self, SentRequest};
use crate::server::{Server, ServerHome, until};

/// A server with dialects, and the secret of a key.
struct RevokedFixture {
    place: ServerHome,
    server: Server,
    secret: String,
    _folder: tempfile::TempDir,
}

impl RevokedFixture {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = "limits: {max_network: loopback}\ndialects: {e2b: {}, opensandbox: {}, jupyter: {}}\n";
        std::fs::write(folder.path().join("cellblock.yaml"), config).unwrap();
        let place = ServerHome::new();
        let server = place.serve_in(folder.path(), &[], &[]);
        Self {
            secret: String::new(),
            place,
            server,
            _folder: folder,
        }
    }

    fn create_key(&mut self) {
        let made = self
            .place
            .cellblock(&["key", "create", "--json", "guest"])
            .json()
            .unwrap();
        made["secret"].as_str().unwrap().clone_into(&mut self.secret);
    }

    fn revoke_key(&self) {
        let revoked = self.place.cellblock(&["key", "revoke", "guest"]);
        assert_eq!(revoked.code(), 0, "{}", revoked.stderr);
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.secret)
    }

    fn made(&self, path: &str, body: &Value) -> Value {
        let bearer = self.bearer();
        let headers: &[_] = &[
            ("Authorization", bearer.as_str()),
            ("X-API-Key", self.secret.as_str()),
        ];
        // Some dialects read one of them, and none reads both.
        let headers = if path.starts_with("/e2b") {
            &headers[1..]
        } else {
            &headers[..1]
        };
        let answer = self.server.post(path, headers, &body.to_string());
        assert!((200..300).contains(&answer.status), "{path}: {}", answer.body);
        answer.json()
    }

    fn sandbox_of_e2b(&self) -> [(&'static str, String); 2] {
        let made = self.made("/e2b/sandboxes", &json!({"templateID": "base", "timeout": 600}));
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        [
            ("E2b-Sandbox-Id", text("sandboxID")),
            ("X-Access-Token", text("envdAccessToken")),
        ]
    }

    fn send(&self, line: &str, headers: &[(&str, &str)], body: &Value) -> SentRequest {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        http::send(self.server.address, line, headers, &body)
    }
}

fn borrowed<'a>(headers: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect()
}

#[test]
fn open_connections_end_when_their_key_is_revoked() {
    let mut world = RevokedFixture::start();
    world.create_key();
    let bearer = world.bearer();
    let authorized = [("Authorization", bearer.as_str())];
    let endless = "print('on', flush=True)\nwhile True: pass";

    let session = world.made("/v1/sessions", &json!({}));
    let path = format!("POST /v1/sessions/{}/cells", session["id"].as_str().unwrap());
    let body = json!({"code": endless, "timeout": 200, "stream": true});
    let mut rest = world.send(&path, &authorized, &body);
    rest.until("cell.stdout");

    // Its requests present no key, but the sandbox's ID and token.
    let sandbox = world.sandbox_of_e2b();
    let mut e2b = world.send(
        "POST /e2b/execute",
        &borrowed(&sandbox),
        &json!({ "code": endless }),
    );
    e2b.until("stdout");

    let kernel = world.made("/jupyter/api/kernels", &json!({}));
    let path = format!(
        "GET /jupyter/api/kernels/{}/channels",
        kernel["id"].as_str().unwrap()
    );
    let upgrade = [
        ("Authorization", bearer.as_str()),
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let mut socket = world.send(&path, &upgrade, &Value::Null);
    socket.until("101 Switching Protocols");

    world.revoke_key();
    // Each of them would last for minutes.
    for connection in [rest, e2b, socket] {
        connection.rest();
    }
    assert!(!world.server.security("connections_ended").is_empty());
}

#[test]
fn a_sandbox_of_a_revoked_key_cannot_be_used_by_its_id_and_token() {
    let mut world = RevokedFixture::start();
    world.create_key();
    let headers = world.sandbox_of_e2b();
    let plain = json!({"image": {"uri": "x"}, "entrypoint": ["x"], "timeout": 600, "resourceLimits": {}});
    let sandbox = world.made("/opensandbox/sandboxes", &plain);
    let id = sandbox["id"].as_str().unwrap();
    let bearer = world.bearer();
    let place = format!("/opensandbox/sandboxes/{id}/endpoints/44772");
    let endpoint = world.server.get(&place, &[("Authorization", &bearer)]).json();
    let token = endpoint["headers"]["X-EXECD-ACCESS-TOKEN"].as_str().unwrap();
    let asks = || {
        let code = json!({"code": "1 + 1"});
        let e2b = world
            .server
            .post("/e2b/execute", &borrowed(&headers), &code.to_string());
        let contexts = world.server.get("/e2b/contexts", &borrowed(&headers[..1]));
        let path = format!("/opensandbox/execd/{id}/code");
        let token = [("X-EXECD-ACCESS-TOKEN", token)];
        let opensandbox = world.server.post(&path, &token, &code.to_string());
        [e2b.status, contexts.status, opensandbox.status]
    };
    assert_eq!(asks(), [200; 3]);
    world.revoke_key();
    assert_eq!(asks(), [401; 3]);
}

#[test]
fn a_link_from_before_the_first_key_opens_nothing_once_there_is_one() {
    let mut world = RevokedFixture::start();
    let session = world
        .server
        .post("/v1/sessions", &[], "{\"network\": \"loopback\"}")
        .json();
    let path = format!("/v1/sessions/{}/ports/80/links", session["id"].as_str().unwrap());
    let link = world.server.post(&path, &[], "{}").json();
    let link = link["path"].as_str().unwrap();
    // Nothing listens on the port.
    assert_eq!(world.server.get(link, &[]).status, 502);
    world.create_key();
    until(|| (world.server.get(link, &[]).status == 404).then_some(()));
}
