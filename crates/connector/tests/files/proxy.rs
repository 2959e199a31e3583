//! A loopback proxy that counts what a server sends, and acts before a listing arrives.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

pub(crate) struct Proxy {
    address: String,
    sent: Arc<AtomicU64>,
}

impl Proxy {
    /// Starts a proxy of a server. `listed` runs before each part of an answer with a listing is passed on.
    pub(crate) fn start(server: &str, listed: impl Fn() + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let sent = Arc::new(AtomicU64::new(0));
        let (server, counted, listed) = (server.to_owned(), Arc::clone(&sent), Arc::new(listed));
        // It ends with the test.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(&server) else {
                    continue;
                };
                let (mut requests, mut far_requests) =
                    (client.try_clone().unwrap(), far.try_clone().unwrap());
                thread::spawn(move || {
                    let _ = std::io::copy(&mut requests, &mut far_requests);
                    let _ = far_requests.shutdown(Shutdown::Both);
                });
                let (counted, listed) = (Arc::clone(&counted), Arc::clone(&listed));
                thread::spawn(move || answer(far, client, &counted, &*listed));
            }
        });
        Self { address, sent }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the bytes that the server has sent, with the heads of its answers.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}

fn answer(mut far: TcpStream, mut client: TcpStream, counted: &AtomicU64, listed: &dyn Fn()) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = far.read(&mut buffer) {
        let part = &buffer[..read];
        if part.windows(16).any(|words| words == b"ListBucketResult") {
            listed();
        }
        counted.fetch_add(read as u64, Ordering::SeqCst);
        if client.write_all(part).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}
