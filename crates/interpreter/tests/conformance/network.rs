//! The network policy of a session: servers on its own loopback, and nothing beyond it.

use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::toolset::ToolsetTerms;
use cellblock_interpreter::{Session, mint};

use crate::support::{block_on, interpreter, run, session, value};

/// A session whose code has a loopback.
pub(crate) async fn with_loopback() -> Session {
    let interpreter = interpreter().await;
    interpreter.session(SessionOptions {
        limits: Some(Limits {
            network: NetworkPolicy::Loopback,
            ..interpreter.limits().clone()
        }),
        ..SessionOptions::default()
    })
}

const SERVE: &str = "
import http.server, socket, threading, urllib.request
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
class Six(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
servers = [http.server.ThreadingHTTPServer(('127.0.0.1', 0), Quiet), Six(('::1', 0), Quiet)]
for server in servers:
    threading.Thread(target=server.serve_forever, daemon=True).start()
four, six = (server.server_port for server in servers)
";

#[test]
fn servers_on_the_loopback_answer_clients_in_the_same_session() {
    block_on(async {
        let session = with_loopback().await;
        run(&session, SERVE).await;
        for host in ["127.0.0.1:{four}", "localhost:{four}", "[::1]:{six}"] {
            let code = format!("urllib.request.urlopen(f'http://{host}/').status");
            assert_eq!(value(&session, &code).await, 200, "{host}");
        }
        // A process that code starts has the same network.
        let client = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', f'import \
                      urllib.request as u; print(u.urlopen(\"http://127.0.0.1:{four}/\").status)'], \
                      capture_output=True, text=True).stdout.strip()";
        assert_eq!(value(&session, client).await, "200");
    });
}

#[test]
fn managers_datagrams_and_event_loops_work_on_the_loopback() {
    block_on(async {
        let session = with_loopback().await;
        let managers = "
from multiprocessing.managers import SyncManager
manager = SyncManager(address=('127.0.0.1', 0), authkey=b'key')
manager.start()
shared = manager.list([1, 2])
shared.append(3)
total = sum(shared)
manager.shutdown()
total";
        assert_eq!(value(&session, managers).await, 6);
        let datagrams = "
import socket
ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
ends[0].bind(('127.0.0.1', 0))
ends[1].sendto(b'hello', ends[0].getsockname())
ends[0].recv(10).decode()";
        assert_eq!(value(&session, datagrams).await, "hello");
        let echo = "
import asyncio
async def answer(reader, writer):
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()
server = await asyncio.start_server(answer, 'localhost', 0)
reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
writer.write(b'echo\\n')
line = (await reader.readline()).decode().strip()
server.close()
line";
        assert_eq!(value(&session, echo).await, "echo");
    });
}

#[test]
fn a_loopback_leads_nowhere_else_and_is_reported() {
    block_on(async {
        let host = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = host.local_addr().unwrap().port();
        let session = with_loopback().await;
        for address in [
            format!("127.0.0.1', {port}"),
            "192.0.2.1', 80".to_owned(),
            "169.254.169.254', 80".to_owned(),
        ] {
            let code = format!(
                "import socket\ntry:\n    socket.create_connection(('{address}), timeout=2)\n    reached \
                 = True\nexcept OSError:\n    reached = False\nreached"
            );
            assert_eq!(value(&session, &code).await, false, "{address}");
        }
        let told = session.execute("1").await.unwrap();
        assert_eq!(told.sandbox.network, NetworkPolicy::Loopback);
        let told = crate::support::session().await.execute("1").await.unwrap();
        assert_eq!(told.sandbox.network, NetworkPolicy::None);
    });
}

#[test]
fn sessions_without_a_loopback_have_no_sockets_beside_those_that_have_one() {
    block_on(async {
        let with = with_loopback().await;
        let without = session().await;
        let code = "import socket\ntry:\n    socket.socket().close()\n    made = True\n\
                    except PermissionError:\n    made = False\nmade";
        assert_eq!(value(&with, code).await, true);
        assert_eq!(value(&without, code).await, false);
    });
}

#[test]
fn a_new_kernel_has_the_loopback_of_its_session() {
    block_on(async {
        let session = with_loopback().await;
        let lost = session.execute("import os\nos._exit(1)").await.unwrap();
        assert_ne!(lost.outcome, Outcome::Completed);
        run(&session, SERVE).await;
        let code = "urllib.request.urlopen(f'http://127.0.0.1:{four}/').status";
        assert_eq!(value(&session, code).await, 200);
    });
}

#[test]
fn a_derivation_refuses_a_session_that_has_a_network() {
    block_on(async {
        let interpreter = interpreter().await;
        let kind = cellblock_interpreter::derivation::KIND;
        let terms = ToolsetTerms {
            owner: mint("owner_"),
            ..ToolsetTerms::default()
        };
        let opened = (kind.open)(interpreter, with_loopback().await, &terms).await;
        let error = opened.map(drop).unwrap_err().to_string();
        assert!(
            error
                .starts_with("a derivation runs without a network, and this session has `network: loopback`"),
            "{error}"
        );
    });
}
