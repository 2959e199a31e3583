//! Programs in sandboxes behind every route that forwards requests to them, and what their requests
//! to hosts leave.

use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};

use cellblock_testkit::require;
use serde_json::{Value, json};

use crate::http::{self, HttpAnswer};
use crate::server::{Server, ServerHome, until};

/// Domain of E2B's hosts, which browsers resolve to this machine.
const DOMAIN: &str = "cell.localhost";
/// Port of the program in each sandbox.
const PORT: u16 = 8123;

/// A program whose answers claim everything that they must not have, and its page, which attacks
/// the server at `GATEWAY`.
const PROGRAM: &str = r"
import http.server, json, threading
ended = threading.Event()
PAGE = '''<!doctype html><pre id=said></pre><img src=hold><script>
const said = [];
const attempt = async (what, act) => {
  let outcome = 'refused';
  try { outcome = await act() } catch (error) {}
  said.push(what + ': ' + outcome); document.getElementById('said').textContent = said.join('|');
};
const post = {method: 'POST', body: JSON.stringify({name: 'stolen', admin: true})};
(async () => {
  await attempt('origin', () => self.origin);
  await attempt('cookie', () => { document.cookie = 'a=1'; return document.cookie });
  await attempt('storage', () => { localStorage.setItem('a', '1'); return 'kept' });
  await attempt('worker', async () => { await navigator.serviceWorker.register('x'); return 'there' });
  await attempt('read', async () => (await fetch('GATEWAY/v1/sessions')).status);
  const json = {'content-type': 'application/json'};
  await attempt('write', async () => (await fetch('GATEWAY/v1/keys', {...post, headers: json})).status);
  await attempt('blind', async () => (await fetch('GATEWAY/v1/keys', {...post, mode: 'no-cors'})).type);
  // The document is complete when the held picture is.
  new Image().src = 'done';
})();
</script>'''
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        name = self.path.rsplit('/', 1)[-1]
        if name == 'hold': ended.wait(60)
        if name == 'done': ended.set()
        headers = {key.lower(): value for key, value in self.headers.items()}
        page = PAGE if name == 'page' else json.dumps(headers)
        self.send_response(200)
        for key, value in {
            'Content-Type': 'text/html' if name == 'page' else 'application/json', 'Set-Cookie': 'a=1',
            'Service-Worker-Allowed': '/', 'Access-Control-Allow-Origin': 'https://evil.example',
            'Content-Security-Policy': 'sandbox allow-scripts allow-same-origin',
            'X-Frame-Options': 'SAMEORIGIN',
        }.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(page.encode())
server = http.server.ThreadingHTTPServer(('127.0.0.1', 8123), Handler)
";

/// A server with every dialect that forwards, and a sandbox with the program in each of them.
struct ProgramsFixture {
    server: Server,
    hosts: SocketAddr,
    _place: ServerHome,
    _folder: tempfile::TempDir,
}

/// A route that forwards.
struct Route {
    name: &'static str,
    /// URL of the program's root.
    root: String,
    headers: Vec<(&'static str, String)>,
    /// Whether the program has a host of its own.
    is_host: bool,
}

impl ProgramsFixture {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = format!(
            "limits: {{max_network: egress}}\negress: {{allow: ['127.0.0.1:1']}}\n\
             mcp: {{network: egress}}\n\
             dialects: {{opensandbox: {{}}, open_terminal: {{network: egress}}, e2b: {{domain: {DOMAIN}, \
             listen: '{free}'}}}}\n"
        );
        std::fs::write(folder.path().join("cellblock.yaml"), config).unwrap();
        let place = ServerHome::new();
        let server = place.serve_in(folder.path(), &[], &[]);
        Self {
            server,
            hosts: free,
            _place: place,
            _folder: folder,
        }
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Value {
        let answer = http::send(
            self.server.address,
            &format!("{method} {path}"),
            headers,
            &body.to_string(),
        )
        .answer();
        assert!((200..300).contains(&answer.status), "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap_or(Value::String(answer.body))
    }

    /// The program as a command.
    fn command(&self) -> String {
        let program = PROGRAM.replace("GATEWAY", &format!("http://{}", self.server.address));
        format!("cat > program.py <<'END'\n{program}\nserver.serve_forever()\nEND\nexec python3 program.py")
    }

    /// A session of REST.
    fn session(&self) -> String {
        let session = self.ask("POST", "/v1/sessions", &[], &json!({"network": "loopback"}));
        let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
        let program = PROGRAM.replace("GATEWAY", &format!("http://{}", self.server.address));
        let code = format!("{program}\nthreading.Thread(target=server.serve_forever, daemon=True).start()");
        let cell = self.ask("POST", &format!("{path}/cells"), &[], &json!({"code": code}));
        assert_eq!(cell["outcome"], "completed", "{cell}");
        path
    }

    /// A sandbox of E2B.
    fn e2b(&self) -> (String, String) {
        let request = json!({"templateID": "base", "timeout": 600});
        let made = self.ask("POST", "/e2b/sandboxes", &[], &request);
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (text("sandboxID"), text("envdAccessToken"))
    }

    fn opensandbox(&self) -> (String, String) {
        let request = json!({
            "image": {"uri": "x"}, "entrypoint": ["x"], "timeout": 600, "resourceLimits": {},
        });
        let made = self.ask("POST", "/opensandbox/sandboxes", &[], &request);
        let id = made["id"].as_str().unwrap().to_owned();
        let place = format!("/opensandbox/sandboxes/{id}/endpoints/44772");
        let endpoint = self.server.get(&place, &[]).json();
        let token = endpoint["headers"]["X-EXECD-ACCESS-TOKEN"].as_str().unwrap();
        (id, token.to_owned())
    }

    /// Every route that forwards, each with a sandbox of its own in which the program runs.
    fn routes(&self) -> Vec<Route> {
        let base = format!("http://{}", self.server.address);
        let route = |name, root: String| Route {
            name,
            root,
            headers: Vec::new(),
            is_host: false,
        };
        let mut routes = Vec::new();
        let by_key = self.session();
        routes.push(route("REST", format!("{base}{by_key}/proxy/{PORT}/")));
        let linked = self.session();
        let link = self.ask("POST", &format!("{linked}/ports/{PORT}/links"), &[], &json!({}));
        routes.push(route("link", format!("{base}{}", link["path"].as_str().unwrap())));

        let command = json!({ "command": self.command() });
        self.ask("POST", "/open-terminal/execute?wait=0", &[], &command);
        routes.push(route(
            "Open Terminal",
            format!("{base}/open-terminal/proxy/{PORT}/"),
        ));

        let (id, token) = self.opensandbox();
        let headers = [("X-EXECD-ACCESS-TOKEN", token.as_str())];
        let command = json!({"command": self.command(), "background": true});
        self.ask(
            "POST",
            &format!("/opensandbox/execd/{id}/command"),
            &headers,
            &command,
        );
        routes.push(route(
            "OpenSandbox",
            format!("{base}/opensandbox/ports/{id}/{PORT}/"),
        ));

        let (id, token) = self.e2b();
        let headers = [
            ("E2b-Sandbox-Id", id.as_str()),
            ("X-Access-Token", token.as_str()),
        ];
        let code = format!(
            "import subprocess\nsubprocess.Popen(['bash', '-c', {}])\nNone",
            json!(self.command())
        );
        self.ask("POST", "/e2b/execute", &headers, &json!({ "code": code }));
        let by_header = vec![
            ("E2b-Sandbox-Id", id.clone()),
            ("E2b-Sandbox-Port", PORT.to_string()),
        ];
        routes.push(Route {
            headers: by_header,
            ..route("E2B by headers", format!("{base}/e2b/"))
        });
        let host = format!("{PORT}-{id}.{DOMAIN}:{}", self.hosts.port());
        routes.push(Route {
            is_host: true,
            ..route("E2B by host", format!("http://{host}/"))
        });
        for it in &routes {
            until(|| (it.get("x", &[]).status == 200).then_some(()));
        }
        routes
    }
}

impl Route {
    /// Requests a path of the program.
    fn get(&self, path: &str, more: &[(&str, &str)]) -> HttpAnswer {
        let (host, rest) = self
            .root
            .strip_prefix("http://")
            .unwrap()
            .split_once('/')
            .unwrap();
        let port = host.rsplit(':').next().unwrap().parse().unwrap();
        let own = self.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<_> = own.chain([("Host", host)]).chain(more.iter().copied()).collect();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        http::send(address, &format!("GET /{rest}{path}"), &headers, "").answer()
    }
}

#[test]
fn no_program_gets_secrets_of_the_server_or_speaks_for_it() {
    let world = ProgramsFixture::start();
    for route in world.routes() {
        let name = route.name;
        let sent = [
            (
                "Authorization",
                "Bearer cbk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            ),
            ("X-API-Key", "cbk_1"),
            ("Cookie", "session=1"),
            ("Referer", "http://localhost/console"),
        ];
        // A key of the caller is wrong where there are none.
        let sent = if ["link", "OpenSandbox", "Open Terminal"].contains(&name) {
            &sent[..]
        } else {
            &sent[1..]
        };
        let answer = route.get("x", sent);
        assert_eq!(answer.status, 200, "{name}: {}", answer.body);
        let heard = answer.json();
        for private in ["authorization", "x-api-key", "e2b-sandbox-id"] {
            assert_eq!(heard[private], Value::Null, "{name}: {private}");
        }
        assert_eq!(heard["host"], format!("127.0.0.1:{PORT}"), "{name}");
        let is_known = heard["cookie"] == "session=1" && heard["referer"].is_string();
        assert_eq!(is_known, route.is_host, "{name}: {heard}");
        let claims = ["set-cookie", "service-worker-allowed"].map(|it| answer.header(it).is_some());
        assert_eq!(claims, [route.is_host; 2], "{name}");
        let readers = answer.header("access-control-allow-origin");
        let expected = match name {
            "link" => Some("*"),
            "E2B by host" => Some("https://evil.example"),
            _ => None,
        };
        assert_eq!(readers, expected, "{name}");
        // Browsers apply all policies; the one of the program allows more.
        let policies = answer.headers("content-security-policy");
        let is_separate = |it: &&str| it.starts_with("sandbox ") && !it.contains("same-origin");
        assert_eq!(
            policies.iter().any(is_separate),
            !route.is_host,
            "{name}: {policies:?}"
        );
        // It is the program's answer, to which the server adds nothing.
        assert_eq!(answer.headers("x-frame-options"), ["SAMEORIGIN"], "{name}");
    }
}

#[test]
fn a_page_of_a_program_cannot_act_on_the_server_by_any_route() {
    require!(Chromium);
    let world = ProgramsFixture::start();
    // Browsers send no headers of their own.
    for route in world.routes().iter().filter(|it| it.headers.is_empty()) {
        let shown = show(&format!("{}page", route.root));
        let said = shown.split("<pre id=\"said\">").nth(1);
        let said = said.and_then(|rest| rest.split("</pre>").next());
        let said: Vec<_> = said
            .unwrap_or_else(|| panic!("{}: {shown}", route.name))
            .split('|')
            .collect();
        let own = if route.is_host {
            &["cookie: a=1", "storage: kept"][..]
        } else {
            &[
                "origin: null",
                "cookie: refused",
                "storage: refused",
                "worker: refused",
            ]
        };
        for outcome in own.iter().chain(&["read: refused", "write: refused"]) {
            assert!(
                said.contains(outcome),
                "{}: {outcome} is not in {said:?}",
                route.name
            );
        }
        assert!(said.len() == 7, "{}: {said:?}", route.name);
    }
    // Without a key, the list is open to everybody on this machine.
    let keys = world.server.get("/v1/keys", &[]);
    assert_eq!((keys.status, &keys.json()["data"]), (200, &json!([])));
}

/// Opens a page in a browser, and returns the document when it has loaded.
fn show(url: &str) -> String {
    let profile = tempfile::tempdir().unwrap();
    let shown = Command::new("timeout")
        .args(["120", "chromium"])
        // Tests run as root, for whom it has no sandbox. The page is the test's own.
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--timeout=60000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(url)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&shown.stderr);
    assert!(shown.status.success(), "{stderr}");
    String::from_utf8(shown.stdout).unwrap()
}

#[test]
fn an_address_of_e2b_is_guarded_like_the_servers_own() {
    let world = ProgramsFixture::start();
    let at = |host: &str, headers: &[(&str, &str)]| {
        let headers = [&[("Host", host)], headers].concat();
        http::send(world.hosts, "GET /v2/sandboxes", &headers, "").answer()
    };
    let api = format!("api.{DOMAIN}");
    let answer = at(&api, &[("X-Request-Id", "mine")]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    for (name, value) in [
        ("x-request-id", "mine"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    // The access log has it.
    until(|| world.server.log().contains("\"mine\"").then_some(()));
    assert_eq!(at(&api, &[("Origin", "https://evil.example")]).status, 403);
    assert_eq!(at(&api, &[("Origin", &format!("http://{api}"))]).status, 200);
    assert_eq!(
        at(&format!("49999-i1.{DOMAIN}"), &[("Origin", "null")]).status,
        403
    );
    assert_eq!(
        at(&format!("{PORT}-i1.{DOMAIN}"), &[("E2b-Sandbox-Id", "i2")]).status,
        400
    );
}

#[test]
fn requests_of_code_to_hosts_are_listed_whatever_the_protocol() {
    let world = ProgramsFixture::start();
    let code = "import urllib.request, urllib.error\n\
                try: urllib.request.urlopen('http://unlisted.example/')\n\
                except urllib.error.HTTPError as error: print(error.code)";
    let command = json!({"command": format!("python3 -c \"{code}\"")});
    let (e2b, token) = world.e2b();
    let headers = [
        ("E2b-Sandbox-Id", e2b.as_str()),
        ("X-Access-Token", token.as_str()),
    ];
    world.ask("POST", "/e2b/execute", &headers, &json!({ "code": code }));
    let (sandbox, token) = world.opensandbox();
    let headers = [("X-EXECD-ACCESS-TOKEN", token.as_str())];
    world.ask(
        "POST",
        &format!("/opensandbox/execd/{sandbox}/command"),
        &headers,
        &command,
    );
    world.ask("POST", "/open-terminal/execute?wait=60", &[], &command);
    crate::mcp::client::block_on(async {
        let client = crate::mcp::client::connect(&world.server, None).await;
        crate::mcp::client::done(&client, "run_python", json!({ "code": code })).await;
    });
    until(|| {
        let listed = world.server.get("/v1/decisions", &[]).json();
        let all = listed["data"].as_array().unwrap();
        let denied = all
            .iter()
            .filter(|it| it["host"] == "unlisted.example" && it["decision"] == "denied");
        let sessions: std::collections::BTreeSet<_> =
            denied.map(|it| it["session"].as_str().unwrap()).collect();
        (sessions.len() == 4 && sessions.contains(e2b.as_str()) && sessions.contains(sandbox.as_str()))
            .then_some(())
    });
}
