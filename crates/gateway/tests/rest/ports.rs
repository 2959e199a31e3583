//! Pages of programs in sandboxes, by the key and by links.

use cellblock_gateway::Options;
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_testkit::require;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::browser::show;
use crate::support::{Api, block_on, served};

/// A program with a page, an answer that repeats a request, and an echo over WebSockets.
const PROGRAM: &str = r"
import base64, hashlib, http.server, json, threading
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *_): pass
    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        if self.headers.get('Upgrade') == 'websocket':
            return self.echo()
        if self.path == '/moved':
            return self.answer(302, b'', Location='/there', Set_Cookie='a=1')
        if self.path == '/page':
            return self.answer(200, PAGE, Content_Type='text/html')
        if self.path == '/hold':
            ended.wait(60)
        if self.path == '/done':
            ended.set()
        if self.path == '/plain':
            return self.answer(404, b'not mine', Content_Type='text/plain')
        self.repeat(b'')
    def do_POST(self):
        self.repeat(self.rfile.read(int(self.headers['Content-Length'])))
    def repeat(self, body):
        headers = {name.lower(): value for name, value in self.headers.items()}
        told = {'method': self.command, 'path': self.path, 'headers': headers, 'body': body.decode()}
        self.answer(200, json.dumps(told).encode(), Content_Type='application/json',
                    Access_Control_Allow_Origin='https://evil.example')
    def echo(self):
        key = self.headers['Sec-WebSocket-Key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
        self.send_response(101)
        self.send_header('Upgrade', 'websocket')
        self.send_header('Connection', 'Upgrade')
        digest = hashlib.sha1(key.encode()).digest()
        self.send_header('Sec-WebSocket-Accept', base64.b64encode(digest).decode())
        self.end_headers()
        while head := self.rfile.read(2):
            mask = self.rfile.read(4)
            body = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(head[1] & 127)))
            self.wfile.write(bytes([head[0], len(body)]) + body)
        self.close_connection = True
PAGE = b''
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
server.server_port";

/// A gateway of its own that allows a loopback, and a session with the program; its path and the port.
pub(crate) async fn program(api: &Api) -> (String, u64) {
    let session = api.session(&json!({"network": "loopback"})).await;
    let ran = api.run(&session, PROGRAM).await;
    let port = ran["outputs"][0]["value"].as_u64().unwrap();
    (session, port)
}

async fn api() -> Api {
    served(Options {
        max_network: NetworkPolicy::Loopback,
        ..Options::default()
    })
    .await
}

/// The path of a link to a port.
async fn link(api: &Api, session: &str, port: u64) -> String {
    let (status, link) = api
        .post(&format!("{session}/ports/{port}/links"), &json!({}))
        .await;
    assert_eq!(status, StatusCode::CREATED, "{link}");
    link["path"].as_str().unwrap().to_owned()
}

#[test]
fn a_program_is_listed_and_answers_by_key_and_by_link() {
    block_on(async {
        let api = api().await;
        let (session, port) = program(&api).await;
        let (_, listed) = api.get(&format!("{session}/ports")).await;
        let path = format!("{session}/proxy/{port}/");
        assert_eq!(listed["data"], json!([{"port": port, "path": path}]));
        let link = link(&api, &session, port).await;
        for root in [path, link] {
            let (status, told) = api.get(&format!("{root}a%20b/c?d=e&f")).await;
            assert_eq!(status, StatusCode::OK, "{told}");
            assert_eq!(told["path"], "/a%20b/c?d=e&f");
            assert_eq!(told["headers"]["host"], format!("127.0.0.1:{port}"));
            assert_eq!(told["headers"]["x-forwarded-prefix"], root.trim_end_matches('/'));
            let sent = json!({"a": 1});
            let (_, told) = api.post(&format!("{root}post"), &sent).await;
            assert_eq!(
                (&told["method"], &told["body"]),
                (&json!("POST"), &json!(sent.to_string()))
            );
            let mut socket = api.socket(&format!("{root}echo")).await.unwrap();
            socket.send(Message::text("hello")).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("hello"));
            drop(socket);
            // Its own errors are not made the gateway's.
            let answer = api.raw(&format!("{root}plain")).await;
            assert_eq!(answer.status(), StatusCode::NOT_FOUND);
            assert_eq!(answer.text().await.unwrap(), "not mine");
        }
        api.end(&session).await;
    });
}

#[test]
fn a_program_neither_gets_the_key_nor_speaks_for_the_gateway() {
    block_on(async {
        let api = api().await;
        let (session, port) = program(&api).await;
        let root = format!("{session}/proxy/{port}");
        let asked = api
            .request(Method::GET, &format!("{root}/x"))
            .bearer_auth("ck_secret")
            .header("x-api-key", "ck_secret")
            .header("cookie", "session=1");
        let told = asked.send().await.unwrap().text().await.unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        let names = told["headers"].as_object().unwrap();
        for name in ["authorization", "cookie", "x-api-key"] {
            assert!(!names.contains_key(name), "{name}");
        }
        let linked = link(&api, &session, port).await;
        for (root, allowed) in [(format!("{root}/"), None), (linked, Some("*"))] {
            let answer = api.raw(&format!("{root}x")).await;
            let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
            assert_eq!(header("access-control-allow-origin"), allowed);
            let policy = header("content-security-policy").unwrap();
            assert!(policy.starts_with("sandbox allow-scripts") && !policy.contains("same-origin"));
            assert_eq!(header("referrer-policy"), Some("no-referrer"));
            let client = reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .build()
                .unwrap();
            let url = api.request(Method::GET, &format!("{root}moved")).build().unwrap();
            let answer = client.execute(url).await.unwrap();
            assert_eq!(answer.status(), StatusCode::FOUND);
            assert_eq!(answer.headers()["location"], format!("{root}there"));
            assert!(!answer.headers().contains_key("set-cookie"));
        }
        api.end(&session).await;
    });
}

#[test]
fn what_cannot_be_reached_is_refused_by_name() {
    block_on(async {
        let api = api().await;
        let (session, port) = program(&api).await;
        let usual = api.session(&json!({})).await;
        api.run(&usual, "1").await;
        let link = link(&api, &session, port).await;
        let mut changed = link.clone().into_bytes();
        changed[30] ^= 1;
        let changed = String::from_utf8(changed).unwrap();
        for (path, status, code) in [
            (
                format!("{session}/proxy/1/"),
                StatusCode::BAD_GATEWAY,
                "port_closed",
            ),
            (
                format!("{usual}/proxy/{port}/"),
                StatusCode::BAD_REQUEST,
                "session_without_network",
            ),
            (
                format!("/v1/sessions/none/proxy/{port}/"),
                StatusCode::NOT_FOUND,
                "session_not_found",
            ),
            (changed, StatusCode::NOT_FOUND, "link_not_found"),
        ] {
            let (found, problem) = api.get(&path).await;
            assert_eq!(
                (found, &problem["error"]["code"]),
                (status, &json!(code)),
                "{path}: {problem}"
            );
        }
        for wrong in [
            json!({"valid_s": 0}),
            json!({"valid_s": 604_801}),
            json!({"until": 1}),
        ] {
            let (status, _) = api.post(&format!("{session}/ports/{port}/links"), &wrong).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}");
        }
        let (_, short) = api
            .post(&format!("{session}/ports/{port}/links"), &json!({"valid_s": 1}))
            .await;
        let short = short["path"].as_str().unwrap().to_owned();
        crate::support::until("the link has expired", async || {
            api.raw(&short).await.status() == StatusCode::GONE
        })
        .await;
        // A program that does not speak HTTP is reported.
        let code = "import socket, threading\nplain = socket.create_server(('127.0.0.1', 0))\n\
                    threading.Thread(target=lambda: plain.accept()[0].sendall(b'no http\\r\\n\\r\\n'), \
                    daemon=True).start()\n\
                    plain.getsockname()[1]";
        let port = api.run(&session, code).await["outputs"][0]["value"]
            .as_u64()
            .unwrap();
        let (status, problem) = api.get(&format!("{session}/proxy/{port}/")).await;
        assert_eq!(
            (status, &problem["error"]["code"]),
            (StatusCode::BAD_GATEWAY, &json!("program_failed"))
        );
        api.end(&session).await;
        let (status, _) = api.get(&link).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        api.end(&usual).await;
    });
}

#[test]
fn ports_of_others_are_not_found() {
    block_on(async {
        let api = Api::of("ports").await;
        let session = api.session(&json!({})).await;
        let other = Api::of("ports of another").await;
        for path in ["ports", "proxy/80/"] {
            let (status, _) = other.get(&format!("{session}/{path}")).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        }
        let (status, _) = other.post(&format!("{session}/ports/80/links"), &json!({})).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        api.end(&session).await;
    });
}

#[test]
fn a_link_ends_with_the_key_that_made_it() {
    block_on(async {
        let api = Api::of("links").await;
        let session = api.session(&json!({})).await;
        let link = link(&api, &session, 80).await;
        let (status, problem) = api.get(&link).await;
        assert_eq!(
            (status, &problem["error"]["code"]),
            (StatusCode::BAD_REQUEST, &json!("session_without_network"))
        );
        crate::support::revoke("links").await;
        let (status, problem) = api.get(&link).await;
        assert_eq!(
            (status, &problem["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("link_not_found"))
        );
    });
}

/// Attempts of a program's page against the gateway, which it shows.
const HOSTILE: &str = r"
ended = threading.Event()
PAGE = b'''<!doctype html><pre id=said></pre><img src=hold><script>
const said = [];
const tell = (what, outcome) => {
  said.push(what + ': ' + outcome);
  document.getElementById('said').textContent = said.join('|')
};
const attempt = async (what, act) => {
  try { tell(what, await act()) } catch (error) { tell(what, 'refused') }
};
(async () => {
  tell('origin', self.origin);
  await attempt('cookie', () => { document.cookie = 'a=1'; return document.cookie });
  await attempt('storage', () => { localStorage.setItem('a', '1'); return 'kept' });
  await attempt('read', async () => (await fetch('/v1/sessions')).status);
  const post = {method: 'POST', body: '{}'};
  const json = {'content-type': 'application/json'};
  await attempt('write', async () => (await fetch('/v1/sessions', {...post, headers: json})).status);
  await attempt('blind', async () => (await fetch('/v1/sessions', {...post, mode: 'no-cors'})).type);
  await attempt('socket', () => new Promise((done, failed) => {
    const it = new WebSocket(`ws://${location.host}/v1/responses`);
    it.onopen = () => done('open'); it.onerror = failed
  }));
  await attempt('worker', async () => { await navigator.serviceWorker.register('x'); return 'there' });
  await attempt('own', async () => (await fetch('own')).status);
  // The document is complete when the held picture is.
  new Image().src = 'done';
})();
</script>'''";

#[test]
fn a_page_of_a_program_cannot_act_on_the_gateway() {
    require!(Chromium);
    block_on(async {
        let api = api().await;
        let (session, port) = program(&api).await;
        let (_, before) = api.get("/v1/sessions").await;
        for (root, own) in [
            (link(&api, &session, port).await, "own: 200"),
            (format!("{session}/proxy/{port}/"), "own: refused"),
        ] {
            api.run(&session, HOSTILE).await;
            let shown = show(&api.url(&format!("{root}page"))).await;
            let said = shown
                .split("<pre id=\"said\">")
                .nth(1)
                .and_then(|rest| rest.split("</pre>").next());
            let said: Vec<_> = said.unwrap_or_else(|| panic!("{shown}")).split('|').collect();
            assert!(said.contains(&own), "{said:?}");
            for refused in [
                "origin: null",
                "cookie: refused",
                "storage: refused",
                "read: refused",
                "write: refused",
                "socket: refused",
                "worker: refused",
            ] {
                assert!(said.contains(&refused), "{refused} is not in {said:?}");
            }
        }
        let (_, after) = api.get("/v1/sessions").await;
        assert_eq!(
            before["data"].as_array().unwrap().len(),
            after["data"].as_array().unwrap().len()
        );
        api.end(&session).await;
    });
}
