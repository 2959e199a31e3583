//! Texts that dialects keep: a client that sends as much as a body may have, in every field, does
//! not fill the server's memory.

use serde_json::{Value, json};

use crate::http::{self, HttpAnswer};
use crate::server::{Server, ServerHome, until};

/// A text that nearly fills a body.
const LARGE: usize = 15 << 20;
/// Number of requests for each field.
const TIMES: usize = 3;
/// Place of the text in a request.
const TEXT: &str = "TEXT";
/// Bytes by which a server may grow, whatever it is sent: allocators return memory late.
const GROWTH: usize = 80 << 20;

struct KeptFixture {
    server: Server,
    _place: ServerHome,
    _folder: tempfile::TempDir,
}

impl KeptFixture {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = "dialects: {e2b: {}, opensandbox: {}, jupyter: {}, open_terminal: {}, librechat: {}}\n";
        std::fs::write(folder.path().join("cellblock.yaml"), config).unwrap();
        let place = ServerHome::new();
        let server = place.serve_in(folder.path(), &[], &[]);
        Self {
            server,
            _place: place,
            _folder: folder,
        }
    }

    fn send(&self, request: &str, headers: &[(&str, &str)], body: &str) -> HttpAnswer {
        http::send(self.server.address, request, headers, body).answer()
    }

    fn made(&self, request: &str, body: &Value) -> Value {
        let answer = self.send(request, &[], &body.to_string());
        assert!((200..300).contains(&answer.status), "{request}: {}", answer.body);
        answer.json()
    }

    /// Sends requests of one dialect, each with a large text, and looks at the server's memory.
    fn check(&self, headers: &[(&str, &str)], fields: &[(&str, Value)]) {
        let large = "x".repeat(LARGE);
        let before = self.server.memory();
        for (request, body) in fields {
            let body = body.to_string().replace(TEXT, &large);
            for _ in 0..TIMES {
                let status = self.send(request, headers, &body).status;
                assert!(status < 500, "{request}: {status}");
            }
        }
        assert!(fields.len() * TIMES * LARGE > 2 * GROWTH);
        // What is not kept is given back, at the latest when there is something else to do.
        until(|| {
            self.server.get("/healthz", &[]);
            (self.server.memory().saturating_sub(before) < GROWTH).then_some(())
        });
    }
}

#[test]
fn fields_of_e2b_that_are_kept_have_a_limit() {
    let world = KeptFixture::start();
    let made = world.made(
        "POST /e2b/sandboxes",
        &json!({"templateID": "base", "timeout": 600}),
    );
    let (id, token) = (&made["sandboxID"], &made["envdAccessToken"]);
    let headers = [
        ("E2b-Sandbox-Id", id.as_str().unwrap()),
        ("X-Access-Token", token.as_str().unwrap()),
    ];
    let create = |field: &str, value: Value| {
        let mut body = json!({"templateID": "base", "timeout": 600});
        body[field] = value;
        ("POST /e2b/sandboxes", body)
    };
    let start = |process: Value, tag: &str| {
        let body = json!({"process": process, "tag": tag});
        ("POST /e2b/process.Process/Start", body)
    };
    world.check(
        &headers,
        &[
            create("templateID", json!("base:TEXT")),
            create("metadata", json!({"a": TEXT})),
            create("metadata", json!({TEXT: "a"})),
            create("envVars", json!({"a": TEXT})),
            ("POST /e2b/contexts", json!({"cwd": TEXT})),
            ("POST /e2b/contexts", json!({"language": TEXT})),
            start(json!({"cmd": "true"}), TEXT),
            start(json!({"cmd": TEXT}), ""),
            start(json!({"cmd": "true", "args": [TEXT]}), ""),
            start(json!({"cmd": "true", "envs": {"a": TEXT}}), ""),
            start(json!({"cmd": "true", "cwd": TEXT}), ""),
            (
                "POST /e2b/filesystem.Filesystem/CreateWatcher",
                json!({"path": TEXT}),
            ),
        ],
    );
}

#[test]
fn fields_of_opensandbox_that_are_kept_have_a_limit() {
    let world = KeptFixture::start();
    let plain = json!({"image": {"uri": "x"}, "entrypoint": ["x"], "timeout": 600, "resourceLimits": {}});
    let made = world.made("POST /opensandbox/sandboxes", &plain);
    let id = made["id"].as_str().unwrap();
    let create = |field: &str, value: Value| {
        let mut body = plain.clone();
        body[field] = value;
        ("POST /opensandbox/sandboxes".to_owned(), body)
    };
    let inside = |path: &str, body: Value| (format!("POST /opensandbox/execd/{id}/{path}"), body);
    let metadata = format!("PATCH /opensandbox/sandboxes/{id}/metadata");
    let fields = [
        create("image", json!({"uri": TEXT})),
        create("entrypoint", json!([TEXT])),
        create("env", json!({"a": TEXT})),
        create("metadata", json!({"a": TEXT})),
        create("extensions", json!({"a": TEXT})),
        (metadata, json!({"a": TEXT})),
        inside("pty", json!({"cwd": TEXT})),
        inside("pty", json!({"command": TEXT})),
        inside("session", json!({"cwd": TEXT})),
        inside("command", json!({"command": TEXT, "background": true})),
        inside(
            "command",
            json!({"command": "true", "cwd": TEXT, "background": true}),
        ),
        inside(
            "command",
            json!({"command": "true", "envs": {"a": TEXT}, "background": true}),
        ),
        inside("code/context", json!({"language": "python", "id": TEXT})),
    ];
    let fields: Vec<_> = fields
        .iter()
        .map(|(request, body)| (request.as_str(), body.clone()))
        .collect();
    world.check(&[], &fields);
}

#[test]
fn fields_of_jupyter_that_are_kept_have_a_limit() {
    let world = KeptFixture::start();
    let kernel = world.made("POST /jupyter/api/kernels", &json!({}));
    let kernel = json!({"id": kernel["id"]});
    let session = |field: &str, value: &str| {
        let mut body = json!({"kernel": kernel, "path": "", "name": "", "type": "notebook"});
        body[field] = json!(value);
        ("POST /jupyter/api/sessions", body)
    };
    let document = world.made(
        "POST /jupyter/api/sessions",
        &json!({"kernel": kernel, "path": "a"}),
    );
    let change = format!("PATCH /jupyter/api/sessions/{}", document["id"].as_str().unwrap());
    world.check(
        &[],
        &[
            session("path", TEXT),
            session("name", TEXT),
            session("type", TEXT),
            (&change, json!({"path": TEXT})),
            (&change, json!({"name": TEXT})),
            (&change, json!({"type": TEXT})),
            ("POST /jupyter/api/sessions", json!({"kernel": {"name": TEXT}})),
            ("POST /jupyter/api/kernels", json!({"name": TEXT})),
        ],
    );
    // Many small documents are as much as a large one.
    let one = |_| {
        world
            .send(
                "POST /jupyter/api/sessions",
                &[],
                &json!({"kernel": kernel}).to_string(),
            )
            .status
    };
    let made = (0..100).map(one).filter(|it| *it == 201).count();
    assert_eq!(made, 63);
    let login = |password: &str| {
        let headers = [("Cookie", "_xsrf=a"), ("X-XSRFToken", "a")];
        let body = format!("password={password}");
        world.send("POST /jupyter/login", &headers, &body).status
    };
    assert_eq!(login(&"x".repeat(300)), 400);
}

#[test]
fn fields_of_open_terminal_and_librechat_that_are_kept_have_a_limit() {
    let world = KeptFixture::start();
    world.made(
        "POST /open-terminal/files/write",
        &json!({"path": "a", "content": "a"}),
    );
    let execute = |body: Value| ("POST /open-terminal/execute?wait=0", body);
    let exec = |field: &str, value: Value| {
        let mut body = json!({"lang": "py", "code": "1"});
        body[field] = value;
        ("POST /librechat/exec", body)
    };
    world.check(
        &[],
        &[
            ("POST /open-terminal/files/cwd", json!({"path": TEXT})),
            ("POST /open-terminal/notebooks", json!({"path": TEXT})),
            execute(json!({"command": TEXT})),
            execute(json!({"command": "true", "cwd": TEXT})),
            execute(json!({"command": "true", "env": {"a": TEXT}})),
            exec("runtime_session_hint", json!(TEXT)),
            exec("lang", json!(TEXT)),
            exec("args", json!([TEXT])),
            exec("code", json!(TEXT)),
            exec(
                "files",
                json!([{"id": TEXT, "name": "a", "storage_session_id": "a"}]),
            ),
            exec(
                "files",
                json!([{"id": "a", "name": TEXT, "storage_session_id": "a"}]),
            ),
        ],
    );
}
