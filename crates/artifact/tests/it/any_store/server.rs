//! A server with the protocol of S3, as a child process on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;

use cellblock_artifact::{Credentials, S3};

/// Ends the server when dropped.
pub(crate) struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts the server on a free port, and waits until it reports the port.
    pub(crate) fn start() -> Self {
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

    /// Creates a bucket, and returns its address.
    pub(crate) fn bucket(&self, name: &str, prefix: &str) -> S3 {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "PUT /{name} HTTP/1.0\r\nHost: {}\r\nContent-Length: 0\r\n\r\n",
            self.address
        );
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.split(' ').nth(1) == Some("200"), "{answer}");
        S3 {
            endpoint: Some(format!("http://{}", self.address)),
            region: Some("us-east-1".into()),
            credentials: Some(Credentials {
                key_id: "test".into(),
                secret: "test".into(),
            }),
            ..S3::at(&format!("s3://{name}/{prefix}")).unwrap()
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
