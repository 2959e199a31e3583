//! Connections to servers that are used again.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{OriginServer, Proxy, open, request};

#[tokio::test]
async fn a_connection_is_used_for_the_next_request_to_the_same_server() {
    let (one, two) = (OriginServer::start().await, OriginServer::start().await);
    let proxy = Proxy::allowing(&[&one.address(), &two.address()]);
    let mut client = open(&proxy);
    for server in [&one, &one, &two, &two, &one] {
        let address = server.address();
        let sent = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let reply = request(&mut client, &sent).await.unwrap();
        assert!(reply.text().contains(&format!("host: {address}\n")));
    }
    assert_eq!((one.connections(), two.connections()), (2, 1));
    let records = proxy.records(5).await;
    assert!(
        records
            .iter()
            .all(|record| record.bytes_down == records[0].bytes_down),
        "{records:?}"
    );
}

#[tokio::test]
async fn a_server_that_closed_the_connection_is_connected_to_again() {
    let server = OriginServer::listen(|mut stream, requests| async move {
        let mut request = vec![0; 1000];
        let size = stream.read(&mut request).await.unwrap();
        requests
            .lock()
            .push(String::from_utf8_lossy(&request[..size]).into_owned());
        // It does not announce that it closes the connection.
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .await
            .unwrap();
    })
    .await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let mut client = open(&proxy);
    for count in 1..=3 {
        let sent = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let reply = request(&mut client, &sent).await.unwrap();
        assert_eq!((reply.status, &*reply.text()), (200, "ok"));
        assert_eq!(server.requests().len(), count);
    }
    assert_eq!(server.connections(), 3);
}
