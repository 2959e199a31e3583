//! Ports of a session, from the host.

use cellblock_interpreter::Session;
use cellblock_interpreter::error::Error;
use cellblock_interpreter::session::ports::PortError;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::network::with_loopback;
use crate::support::{block_on, run, value};

/// Answers each connection, which says what it wants by its first byte.
const SERVER: &str = "
import hashlib, socket, threading
def answer(connection):
    with connection:
        wanted = connection.recv(1)
        if wanted == b'e':
            while part := connection.recv(65536):
                connection.sendall(part)
        elif wanted == b'h':
            digest = hashlib.sha256()
            while part := connection.recv(65536):
                digest.update(part)
            connection.sendall(digest.digest())
        elif wanted == b'f':
            try:
                while True:
                    connection.sendall(bytes(65536))
            except OSError:
                ended.set()
def serve(listener):
    while True:
        threading.Thread(target=answer, args=[listener.accept()[0]], daemon=True).start()
ended = threading.Event()
ports = []
for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
    listener = socket.create_server((host, 0), family=family)
    threading.Thread(target=serve, args=[listener], daemon=True).start()
    ports.append(listener.getsockname()[1])
' '.join(map(str, ports))";

/// Starts it; returns its ports, that of IPv4 first.
async fn serve(session: &Session) -> Vec<u16> {
    let ports = value(session, SERVER).await;
    let ports = ports.as_str().unwrap().split(' ');
    ports.map(|port| port.parse().unwrap()).collect()
}

#[test]
fn programs_are_listed_and_reached_in_both_families() {
    block_on(async {
        let session = with_loopback().await;
        assert_eq!(
            session.ports().list().await.unwrap(),
            [0_u16; 0],
            "nothing has run"
        );
        let mut ports = serve(&session).await;
        for &port in &ports {
            let mut stream = session.ports().connect(port).await.unwrap();
            for word in [&b"ehello"[..], b" again"] {
                stream.write_all(word).await.unwrap();
                let mut back = vec![0; word.len() - usize::from(word[0] == b'e')];
                stream.read_exact(&mut back).await.unwrap();
                assert!(word.ends_with(&back));
            }
            stream.shutdown().await.unwrap();
            assert_eq!(
                stream.read(&mut [0; 9]).await.unwrap(),
                0,
                "the program has ended it"
            );
        }
        ports.sort_unstable();
        assert_eq!(session.ports().list().await.unwrap(), ports);
        session.close().await.unwrap();
    });
}

#[test]
fn much_arrives_whole_and_a_side_that_is_slow_makes_the_other_wait() {
    block_on(async {
        let session = with_loopback().await;
        let port = serve(&session).await[0];
        let bytes: Vec<u8> = (0..20_000_000_u32).map(|n| (n % 251) as u8).collect();
        let mut hashed = session.ports().connect(port).await.unwrap();
        hashed.write_all(b"h").await.unwrap();
        hashed.write_all(&bytes).await.unwrap();
        hashed.shutdown().await.unwrap();
        let mut digest = Vec::new();
        hashed.read_to_end(&mut digest).await.unwrap();
        assert_eq!(digest, Sha256::digest(&bytes).as_slice());
        // Nobody reads what this one writes, and it stops nobody.
        let mut flood = session.ports().connect(port).await.unwrap();
        flood.write_all(b"f").await.unwrap();
        let (mut echo_out, mut echo_in) = {
            let mut stream = session.ports().connect(port).await.unwrap();
            stream.write_all(b"e").await.unwrap();
            let (read, write) = tokio::io::split(stream);
            (write, read)
        };
        let sent = async {
            echo_out.write_all(&bytes).await.unwrap();
            echo_out.shutdown().await.unwrap();
        };
        let mut back = Vec::new();
        let ((), read) = tokio::join!(sent, echo_in.read_to_end(&mut back));
        read.unwrap();
        assert!(back == bytes);
        assert_eq!(value(&session, "40 + 2").await, 42);
        drop(flood);
        assert_eq!(value(&session, "ended.wait(30)").await, true, "it was ended");
        session.close().await.unwrap();
    });
}

#[test]
fn many_connections_at_once_are_served_and_the_limit_is_named() {
    block_on(async {
        let session = with_loopback().await;
        let port = serve(&session).await[0];
        let mut open = Vec::new();
        let full = loop {
            match session.ports().connect(port).await {
                Ok(stream) => open.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(open.len(), 128);
        assert!(matches!(full, Error::Port(PortError::TooMany { .. })), "{full}");
        for (at, stream) in open.iter_mut().enumerate() {
            stream.write_all(format!("e{at}").as_bytes()).await.unwrap();
        }
        for (at, stream) in open.iter_mut().enumerate() {
            let mut back = vec![0; at.to_string().len()];
            stream.read_exact(&mut back).await.unwrap();
            assert_eq!(back, at.to_string().as_bytes());
        }
        drop(open);
        // They are given back.
        cellblock_testkit::wait::until_ok(async || session.ports().connect(port).await).await;
        session.close().await.unwrap();
    });
}

#[test]
fn ports_that_cannot_be_reached_are_refused_by_name() {
    block_on(async {
        let session = with_loopback().await;
        let error = session.ports().connect(8000).await.unwrap_err();
        assert!(
            matches!(error, Error::Port(PortError::NoSandbox { port: 8000 })),
            "{error}"
        );
        run(&session, "1").await;
        let error = session.ports().connect(8000).await.unwrap_err();
        assert!(
            matches!(error, Error::Port(PortError::Closed { port: 8000, .. })),
            "{error}"
        );
        session.close().await.unwrap();
        let without = crate::support::session().await;
        run(&without, "1").await;
        let error = without.ports().connect(8000).await.unwrap_err();
        assert!(
            matches!(error, Error::Port(PortError::NoNetwork { port: 8000 })),
            "{error}"
        );
        assert_eq!(without.ports().list().await.unwrap(), [0_u16; 0]);
        without.close().await.unwrap();
    });
}

#[test]
fn a_program_that_accepts_nobody_stops_nobody() {
    block_on(async {
        let session = with_loopback().await;
        let code = "
import socket
deaf = socket.socket()
deaf.bind(('127.0.0.1', 0))
deaf.listen(0)
deaf.getsockname()[1]";
        let port = value(&session, code).await;
        let port = u16::try_from(port.as_u64().unwrap()).unwrap();
        let mut open = Vec::new();
        for _ in 0..8 {
            // The kernel accepts a few for it.
            open.push(session.ports().connect(port).await);
        }
        assert_eq!(value(&session, "40 + 2").await, 42);
        session.close().await.unwrap();
    });
}
