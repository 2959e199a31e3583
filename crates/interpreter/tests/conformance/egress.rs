//! The network policy `egress`: listed hosts through a proxy, and nothing else.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use cellblock_interpreter::egress::{
    AllowRule, EgressPolicy, EgressRestriction, EgressSecret, HeaderRule, SecretRule,
};
use cellblock_interpreter::error::Error;
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::session::processes::{MAX_WAIT, ProcessOrder};
use cellblock_interpreter::{Execution, Session};
use parking_lot::Mutex;

use cellblock_testkit::{pip_wheel, require};

use crate::support::{block_on, interpreter, run, value};

pub(crate) const SECRET: &str = "opensesame-4711-opensesame";

/// A server of the host that remembers what it is asked.
pub(crate) struct OriginServer {
    pub(crate) port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl OriginServer {
    pub(crate) fn start() -> Self {
        Self::serving(|_| (200, "text/plain", b"hello".to_vec()))
    }

    /// Answers a path with a status, a type and a body.
    fn serving(answers: impl Fn(&str) -> (u16, &'static str, Vec<u8>) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let head = answer(stream, &answers).unwrap_or_default();
                kept.lock().push(head);
            }
        });
        Self { port, heads }
    }

    pub(crate) fn rule(&self) -> AllowRule {
        format!("127.0.0.1:{}", self.port).parse().unwrap()
    }

    pub(crate) fn heard(&self) -> Vec<String> {
        self.heads.lock().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    answers: impl Fn(&str) -> (u16, &'static str, Vec<u8>),
) -> std::io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? > 0 {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let (status, kind, body) = answers(head.split(' ').nth(1).unwrap_or_default());
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} It\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
         \r\n"
    )?;
    stream.write_all(&body)?;
    Ok(head)
}

pub(crate) async fn with_egress(policy: Option<EgressPolicy>) -> Session {
    let interpreter = interpreter().await;
    interpreter.session(SessionOptions {
        limits: Some(Limits {
            network: NetworkPolicy::Egress,
            ..interpreter.limits().clone()
        }),
        egress: policy,
        ..SessionOptions::default()
    })
}

pub(crate) fn allowing(rule: AllowRule) -> EgressPolicy {
    EgressPolicy {
        allow: vec![rule],
        ..EgressPolicy::default()
    }
}

fn fetch(url: &str) -> String {
    format!("import urllib.request\nurllib.request.urlopen({url:?}, timeout=30).read().decode()")
}

fn said(execution: &Execution) -> String {
    format!("{:?} {execution:?}", execution.outcome)
}

#[test]
fn listed_hosts_are_reached_and_no_others() {
    block_on(async {
        let server = OriginServer::start();
        let other = OriginServer::start();
        let session = with_egress(Some(allowing(server.rule()))).await;
        let url = format!("http://127.0.0.1:{}/x?y", server.port);
        let first = run(&session, &fetch(&url)).await;
        assert_eq!(crate::support::scalar(&first), "hello");
        assert_eq!(first.sandbox.network, NetworkPolicy::Egress);
        for denied in [
            format!("http://127.0.0.1:{}/", other.port),
            "http://169.254.169.254/latest".to_owned(),
            "http://example.com/".to_owned(),
        ] {
            let ran = run(&session, &fetch(&denied)).await;
            assert!(said(&ran).contains("403"), "{denied}: {ran:#?}");
        }
        assert_eq!(other.heard(), [""; 0]);
        // Without the proxy there is no way.
        let direct = format!(
            "import socket\ntry:\n    socket.create_connection(('127.0.0.1', {}), 5)\n    way = 'found'\n\
             except OSError as error:\n    way = type(error).__name__\nway",
            server.port
        );
        assert_eq!(value(&session, &direct).await, "ConnectionRefusedError");
        // Servers of the sandbox itself are reached without it.
        let own = "import http.server, threading, urllib.request\n\
                   own = http.server.ThreadingHTTPServer(('127.0.0.1', 0), \
                   http.server.SimpleHTTPRequestHandler)\n\
                   threading.Thread(target=own.serve_forever, daemon=True).start()\n\
                   urllib.request.urlopen(f'http://localhost:{own.server_port}/').status";
        assert_eq!(value(&session, own).await, 200);
        assert_eq!(server.heard().len(), 1);
        session.close().await.unwrap();
    });
}

#[test]
fn the_way_out_is_there_for_processes_and_after_a_reset() {
    block_on(async {
        let server = OriginServer::start();
        let session = with_egress(Some(allowing(server.rule()))).await;
        let url = format!("http://127.0.0.1:{}/", server.port);
        let script = format!("import urllib.request\nprint(urllib.request.urlopen({url:?}).read().decode())");
        let order = ProcessOrder {
            command: ["python", "-c", &script].map(str::to_owned).to_vec(),
            ..ProcessOrder::default()
        };
        let id = session.processes().start(order).await.unwrap().id;
        let ended = session.processes().wait(&id, MAX_WAIT).await.unwrap();
        let output = session
            .processes()
            .output(&id, 0, 1 << 16, MAX_WAIT)
            .await
            .unwrap();
        assert_eq!(
            (ended.exit_code, output.into_text().0.as_str()),
            (Some(0), "hello\n")
        );
        for _ in 0..2 {
            assert_eq!(value(&session, &fetch(&url)).await, "hello");
            session.reset().await.unwrap();
        }
        // A kernel that ended itself has one again.
        run(&session, "import os\nos._exit(1)").await;
        assert_eq!(value(&session, &fetch(&url)).await, "hello");
        session.close().await.unwrap();
    });
}

/// A wheel of pure Python with one module.
fn wheel(name: &str, module: &str) -> Vec<u8> {
    let info = format!("{name}-1.0.dist-info");
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, text) in [
        (format!("{name}.py"), module.to_owned()),
        (
            format!("{info}/METADATA"),
            format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"),
        ),
        (
            format!("{info}/WHEEL"),
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n".to_owned(),
        ),
        (
            format!("{info}/RECORD"),
            format!("{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"),
        ),
    ] {
        zip.start_file(path, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn pip_installs_from_an_index_that_is_allowed() {
    require!(PipWheel);
    let pip = std::fs::read(pip_wheel().unwrap()).unwrap();
    let digest = cellblock_interpreter::artifact::ArtifactId::of(&pip);
    let page = |links: String| (200, "text/html", format!("<!DOCTYPE html>{links}").into_bytes());
    let index = OriginServer::serving(move |path| match path {
        "/simple/pip/" => page(format!(
            "<a href='/files/pip-1.0-py3-none-any.whl' data-requires-python='&gt;=3.99'>old</a><a \
             href='../../files/pip-99.0-py3-none-any.whl#sha256={digest}' \
             data-requires-python='&gt;=3.9'>new</a>"
        )),
        "/files/pip-99.0-py3-none-any.whl" => (200, "application/zip", pip.clone()),
        "/simple/greeting/" => page("<a href='/files/greeting-1.0-py3-none-any.whl'>it</a>".to_owned()),
        "/files/greeting-1.0-py3-none-any.whl" => (
            200,
            "application/zip",
            wheel("greeting", "words = 'good morning'"),
        ),
        _ => (404, "text/plain", b"no".to_vec()),
    });
    block_on(async move {
        let session = with_egress(Some(allowing(index.rule()))).await;
        let install = format!(
            "import os, subprocess\n\
             os.environ['PIP_INDEX_URL'] = 'http://127.0.0.1:{}/simple'\n\
             done = subprocess.run(['pip', 'install', '--disable-pip-version-check', '--quiet', \
             'greeting'], capture_output=True, text=True)\n\
             str((done.returncode, done.stderr))",
            index.port
        );
        assert_eq!(value(&session, &install).await, "(0, '')");
        assert_eq!(
            value(&session, "import greeting\ngreeting.words").await,
            "good morning"
        );
        let elsewhere = "import subprocess, sys\n\
                         subprocess.run([sys.executable, '-c', 'import greeting; print(greeting.words)'], \
                         capture_output=True, text=True).stdout";
        assert_eq!(value(&session, elsewhere).await, "good morning\n");
        // An index that is not allowed is named, with what allows it.
        let denied = "subprocess.run(['pip', 'install', '-i', 'http://example.com/simple', 'greeting'], \
                      capture_output=True, text=True).stderr\n";
        let denied = format!("import shutil\nshutil.rmtree('/tmp/.cellblock/packages')\n{denied}");
        let told = value(&session, &denied).await.as_str().unwrap().to_owned();
        assert!(
            told.contains("http://example.com/simple: HTTP Error 403") && told.contains("egress.allow"),
            "{told}"
        );
        session.close().await.unwrap();
    });
}

/// Code that looks for a secret in its environment, its memory and its files. Its value is the places, and
/// whether it has searched enough.
pub(crate) fn search(secret: &str) -> String {
    let (first, second) = secret.split_at(13);
    let backwards: String = second.chars().rev().collect();
    // The code never puts the halves together, so that it does not find itself.
    format!(
        "import os
first, second = {first:?}.encode(), {backwards:?}.encode()
def holds(part):
    at = part.find(first)
    while at >= 0:
        if part[at + len(first):at + len(first) + len(second)][::-1] == second:
            return True
        at = part.find(first, at + 1)
    return False
places, searched = [], 0
if any(holds(text.encode()) for pair in os.environ.items() for text in pair):
    places.append('environ')
with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb', 0) as memory:
    for line in maps.read().splitlines():
        start, end = (int(bound, 16) for bound in line.split()[0].split('-'))
        for at in range(start, end, 1 << 24):
            try:
                memory.seek(at)
                part = memory.read(min(end - at, (1 << 24) + 64))
            except (OSError, ValueError, OverflowError):
                continue
            searched += len(part)
            if holds(part):
                places.append(line)
for root in ('/tmp', '/workspace'):
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                with open(os.path.join(folder, name), 'rb') as file:
                    if holds(file.read()):
                        places.append(os.path.join(folder, name))
            except OSError:
                pass
str((places, searched > 50_000_000))"
    )
}

#[test]
fn a_secret_is_added_outside_and_is_nowhere_inside() {
    block_on(async {
        let server = OriginServer::start();
        let policy = EgressPolicy {
            secrets: vec![SecretRule {
                host: "127.0.0.1".parse().unwrap(),
                header: "x-token".to_owned(),
                value: EgressSecret::new(SECRET),
                allow_http: false,
            }],
            ..allowing(server.rule())
        };
        let session = with_egress(Some(policy)).await;
        let url = format!("http://127.0.0.1:{}/", server.port);
        assert_eq!(value(&session, &fetch(&url)).await, "hello");
        let heads = server.heard();
        assert!(
            heads[0].to_lowercase().contains(&format!("x-token: {SECRET}")),
            "{heads:?}"
        );
        assert_eq!(value(&session, &search(SECRET)).await, "([], True)");
        session.close().await.unwrap();
    });
}

#[test]
fn rules_are_replaced_while_code_runs_and_hold_in_the_next_sandbox() {
    block_on(async {
        let server = OriginServer::start();
        let policy = EgressPolicy {
            replaceable: true,
            ..allowing(server.rule())
        };
        let session = with_egress(Some(policy)).await;
        let url = format!("http://127.0.0.1:{}/", server.port);
        assert_eq!(value(&session, &fetch(&url)).await, "hello");
        let closed = EgressRestriction::to([]);
        // The cell waits for the new rules, which no longer allow its host.
        let waiting = format!(
            "import time, urllib.error, urllib.request\n\
             status, ending = 200, time.monotonic() + 60\n\
             while status == 200 and time.monotonic() < ending:\n    try:\n        \
             status = urllib.request.urlopen({url:?}, timeout=30).status\n    \
             except urllib.error.HTTPError as error:\n        status = error.code\n\
             status"
        );
        let heard = server.heard().len();
        let replacing = async {
            cellblock_testkit::wait::until("a request of the cell", || server.heard().len() > heard).await;
            session.replace_egress(closed.clone(), Vec::new()).unwrap();
        };
        let (status, ()) = tokio::join!(value(&session, &waiting), replacing);
        assert_eq!(status, 403);
        let heard = server.heard().len();
        // A kernel and a sandbox that come after it have the same rules.
        session.reset().await.unwrap();
        let denied = run(&session, &fetch(&url)).await;
        assert!(
            said(&denied).contains("denied by the network rules"),
            "{denied:#?}"
        );
        assert_eq!(server.heard().len(), heard);
        let headers = vec![HeaderRule {
            host: "127.0.0.1".parse().unwrap(),
            headers: vec![("x-token".to_owned(), EgressSecret::new(SECRET))],
        }];
        session
            .replace_egress(EgressRestriction::default(), headers)
            .unwrap();
        assert_eq!(value(&session, &fetch(&url)).await, "hello");
        let last = server.heard().pop().unwrap().to_lowercase();
        assert!(last.contains(&format!("x-token: {SECRET}")), "{last}");
        assert_eq!(value(&session, &search(SECRET)).await, "([], True)");
        session.close().await.unwrap();

        let fixed = with_egress(Some(allowing(server.rule()))).await;
        let error = fixed.replace_egress(closed, Vec::new()).unwrap_err();
        assert!(
            error.to_string().contains("no rules that can be replaced"),
            "{error}"
        );
        fixed.close().await.unwrap();
    });
}

#[test]
fn egress_without_a_list_is_refused_by_name() {
    block_on(async {
        let session = with_egress(None).await;
        let error = session.execute("1").await.unwrap_err();
        assert!(
            matches!(error, Error::Argument { name: "network", .. }),
            "{error}"
        );
        assert!(error.to_string().contains("list of allowed hosts"), "{error}");
        session.close().await.unwrap();
    });
}
