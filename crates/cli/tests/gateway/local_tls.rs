//! E2B at a domain of this machine, whose certificate the server makes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::blocking::Client;
use reqwest::{Certificate, Method};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use crate::server::{Server, ServerHome, until};

/// Maximum time for an answer.
const PATIENCE: Duration = Duration::from_mins(1);

/// Code that serves a page on port 8123, and a WebSocket that repeats what it gets on port 8124.
const PROGRAM: &str = r"
import http.server, socket, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'page')
server = http.server.ThreadingHTTPServer(('127.0.0.1', 8123), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
listener = socket.create_server(('127.0.0.1', 8124))
def echo():
    connection, _ = listener.accept()
    head = b''
    while not head.endswith(b'\r\n\r\n'):
        head += connection.recv(1)
    connection.sendall(b'HTTP/1.1 101 It\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n')
    while piece := connection.recv(100):
        connection.sendall(piece)
threading.Thread(target=echo, daemon=True).start()
";

/// A client as E2B's SDK is one with `E2B_DOMAIN`.
struct DomainClient {
    http: Client,
    authority: Vec<u8>,
    address: SocketAddr,
    domain: String,
}

impl DomainClient {
    fn new(place: &ServerHome, address: SocketAddr) -> Self {
        let _ = ring::default_provider().install_default();
        let authority = place.home().join("authorities/cell.localhost/authority.pem");
        let authority = std::fs::read(authority).unwrap();
        let trusted = Certificate::from_pem(&authority).unwrap();
        Self {
            http: Client::builder()
                .no_proxy()
                .tls_certs_only([trusted])
                .resolve("api.cell.localhost", address)
                .build()
                .unwrap(),
            authority,
            address,
            domain: format!("cell.localhost:{}", address.port()),
        }
    }

    /// Asks a host of the domain.
    fn ask(&self, host: &str, method: Method, path: &str, body: &Value) -> Option<(u16, String)> {
        // Only names that the client was built with lead to the server.
        let url = format!("https://api.{}{path}", self.domain);
        let request = self
            .http
            .request(method, url)
            .header("host", format!("{host}.{}", self.domain));
        let request = request.header("content-type", "application/json");
        let answer = request.body(body.to_string()).send().ok()?;
        Some((answer.status().as_u16(), answer.text().ok()?))
    }

    /// Opens a WebSocket to a host of the domain.
    fn socket(&self, host: &str) -> impl Read + Write + use<> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(&self.authority).unwrap())
            .unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(format!("{host}.cell.localhost")).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        let request = format!(
            "GET / HTTP/1.1\r\nHost: {host}.{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: x\r\n\r\n",
            self.domain
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        assert!(
            head.starts_with(b"HTTP/1.1 101"),
            "{}",
            String::from_utf8_lossy(&head)
        );
        stream
    }

    fn get(&self, host: &str, path: &str) -> Option<(u16, String)> {
        self.ask(host, Method::GET, path, &json!({}))
    }
}

fn start(place: &ServerHome, folder: &Path, address: SocketAddr) -> (Server, DomainClient) {
    let config = format!(
        "limits: {{max_network: loopback}}\n\
         dialects: {{e2b: {{domain: \"cell.localhost:{}\", tls: local}}}}\n",
        address.port()
    );
    std::fs::write(folder.join("cellblock.yaml"), config).unwrap();
    let server = place.serve_in(folder, &[], &[]);
    let client = DomainClient::new(place, address);
    until(|| {
        client
            .get("api", "/sandboxes")
            .filter(|(status, _)| *status == 200)
    });
    (server, client)
}

#[test]
fn hosts_of_a_local_domain_are_reached_with_tls_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = ServerHome::new();
    let (server, client) = start(&place, folder.path(), address);
    let request = json!({"templateID": "base", "timeout": 600, "secure": false});
    let (status, made) = client.ask("api", Method::POST, "/sandboxes", &request).unwrap();
    assert_eq!(status, 201, "{made}");
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(made["domain"], client.domain.as_str());
    let id = made["sandboxID"].as_str().unwrap();
    let run = json!({ "code": PROGRAM });
    let ran = client.ask(&format!("49999-{id}"), Method::POST, "/execute", &run);
    assert_eq!(ran.unwrap().0, 200);
    let program = format!("8123-{id}");
    assert_eq!(client.get(&program, "/").unwrap(), (200, "page".to_owned()));
    let mut socket = client.socket(&format!("8124-{id}"));
    let mut echoed = [0; 5];
    for frame in [b"first", b"again"] {
        socket.write_all(frame).unwrap();
        socket.read_exact(&mut echoed).unwrap();
        assert_eq!(&echoed, frame);
    }
    assert_eq!(client.get("49999-i0000", "/health").unwrap().0, 502);
    assert_eq!(client.get("other", "/").unwrap().0, 404);
    // Plain HTTP is not spoken there.
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).ok();
    assert!(!answer.starts_with(b"HTTP"));
    drop(server);
    let (_server, _) = start(&place, folder.path(), address);
    assert_eq!(client.get("api", "/sandboxes").unwrap(), (200, "[]".to_owned()));
}
