//! A server with the protocol of S3, as a child process on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;

/// A server, for tests with the [`Capability::S3Server`](crate::Capability::S3Server). Dropping it ends it.
#[derive(Debug)]
pub struct S3Server {
    child: Child,
    address: String,
}

#[expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking"
)]
impl S3Server {
    /// Starts the server on a free port, and waits until it reports the port.
    pub fn start() -> Self {
        let mut child = Command::new("moto_server")
            .args(["-H", "127.0.0.1", "-p", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let mut line = String::new();
            let read = told.read_line(&mut line).unwrap();
            assert!(read > 0, "the server ended: {said}");
            said += &line;
            if let Some((_, address)) = line.trim_end().split_once("Running on http://") {
                break address.to_owned();
            }
        };
        // It logs each request, and would block if the log were not read.
        thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        Self { child, address }
    }

    /// Returns its address and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns its URL.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Creates a bucket, if there is none with this name.
    pub fn create_bucket(&self, name: &str) {
        self.request("PUT", &format!("/{name}"), b"");
    }

    /// Writes an object; the key is encoded as in a URL.
    pub fn put(&self, bucket: &str, key: &str, bytes: &[u8]) {
        self.request("PUT", &format!("/{bucket}/{key}"), bytes);
    }

    /// Removes an object.
    pub fn delete(&self, bucket: &str, key: &str) {
        self.request("DELETE", &format!("/{bucket}/{key}"), b"");
    }

    /// Rejects requests whose signature is not that of a known key, which is none, from now on.
    pub fn require_known_keys(&self) {
        self.request("POST", "/moto-api/reset-auth", b"0");
    }

    fn request(&self, method: &str, path: &str, body: &[u8]) {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        // Whoever sends no signature may not change objects; nobody checks it.
        let signature = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
                         SignedHeaders=host, Signature=0";
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nAuthorization: {signature}\r\nContent-Length: {}\r\n\
             \r\n",
            self.address,
            body.len()
        );
        connection.write_all(head.as_bytes()).unwrap();
        connection.write_all(body).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(status.starts_with('2'), "{method} {path}: {answer}");
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
