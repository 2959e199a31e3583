//! Rules that are replaced while their session runs.

use cellblock_egress::{EgressOptions, EgressPolicy, EgressRestriction, EgressSecret, HeaderRule};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{
    Answers, Authority, OriginServer, Proxy, connect, handshake, open, request, trusting, wait,
};
use crate::websocket::echo;

/// A proxy whose rules can be replaced.
fn replaceable(rules: &[&str], options: EgressOptions) -> Proxy {
    let policy = EgressPolicy {
        replaceable: true,
        ..EgressPolicy::from_rules(rules).unwrap()
    };
    Proxy::of(policy, options)
}

fn denying(destinations: &[&str]) -> EgressRestriction {
    EgressRestriction {
        deny: destinations.iter().map(|it| it.parse().unwrap()).collect(),
        except: Vec::new(),
    }
}

fn header(host: &str, value: &str) -> HeaderRule {
    HeaderRule {
        host: host.parse().unwrap(),
        headers: vec![("x-key".to_owned(), EgressSecret::new(value))],
    }
}

fn get(address: &str) -> String {
    format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n")
}

#[tokio::test]
async fn a_host_is_refused_from_the_next_request_on_and_allowed_again() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = replaceable(&[&address], EgressOptions::default());
    let mut kept = open(&proxy);
    assert_eq!(request(&mut kept, &get(&address)).await.unwrap().status, 200);
    proxy
        .proxy
        .replace(denying(&["127.0.0.0/8"]), Vec::new())
        .unwrap();
    let refused = request(&mut kept, &get(&address)).await.unwrap();
    assert_eq!(refused.status, 403);
    assert!(
        refused.text().contains("denied by the network rules"),
        "{}",
        refused.text()
    );
    let (_, reply) = connect(&proxy, &address).await;
    assert_eq!(reply.status, 403);
    // What the operator does not allow stays out of reach.
    proxy
        .proxy
        .replace(EgressRestriction::default(), Vec::new())
        .unwrap();
    assert_eq!(
        request(&mut open(&proxy), &get(&address)).await.unwrap().status,
        200
    );
    let other = OriginServer::start().await;
    let refused = request(&mut open(&proxy), &get(&other.address())).await.unwrap();
    assert_eq!(refused.status, 403);
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn a_tunnel_and_a_websocket_end_when_their_host_is_removed() {
    let server = OriginServer::listen(|stream, _| async move { drop(echo(stream).await) }).await;
    let address = server.address();
    let proxy = replaceable(&[&address], EgressOptions::default());
    let upgrade = format!(
        "GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: y\r\n\r\n"
    );
    let mut socket = open(&proxy);
    assert_eq!(request(&mut socket, &upgrade).await.unwrap().status, 101);
    let (mut tunnel, _) = connect(&proxy, &address).await;
    assert_eq!(
        request(&mut tunnel, "GET / HTTP/1.1\r\n\r\n")
            .await
            .unwrap()
            .status,
        101
    );
    // Rules that still allow the host change nothing.
    proxy.proxy.replace(denying(&["10.0.0.0/8"]), Vec::new()).unwrap();
    for stream in [&mut socket, &mut tunnel] {
        stream.write_all(b"still").await.unwrap();
        let mut echoed = [0; 5];
        stream.read_exact(&mut echoed).await.unwrap();
        assert_eq!(&echoed, b"still");
    }
    proxy.proxy.replace(denying(&["0.0.0.0/0"]), Vec::new()).unwrap();
    for stream in [&mut socket, &mut tunnel] {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty());
    }
    let records = proxy.records(2).await;
    assert!(
        records.iter().all(|record| record.reason == "restricted"),
        "{records:?}"
    );
}

#[tokio::test]
async fn a_response_that_is_being_sent_ends_when_its_host_is_removed() {
    let server = OriginServer::listen(|mut stream, requests| async move {
        let mut head = [0; 16];
        stream.read_exact(&mut head).await.unwrap();
        let begun = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun";
        stream.write_all(begun).await.unwrap();
        // The proxy ends the connection.
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.ok();
        requests.lock().push("ended".to_owned());
    })
    .await;
    let address = server.address();
    let proxy = replaceable(&[&address], EgressOptions::default());
    let mut stream = open(&proxy);
    stream.write_all(get(&address).as_bytes()).await.unwrap();
    let mut got = Vec::new();
    while !got.ends_with(b"begun") {
        got.push(stream.read_u8().await.unwrap());
    }
    proxy.proxy.replace(denying(&["127.0.0.1"]), Vec::new()).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.ok();
    assert!(rest.is_empty());
    wait(|| !server.requests().is_empty()).await;
    assert_eq!(proxy.reason().await, "restricted");
}

#[tokio::test]
async fn a_header_is_added_from_the_next_request_on_and_its_tunnels_end() {
    let authority = Authority::new();
    let server = OriginServer::tls(authority.server("a.example")).await;
    let host = format!("a.example:{}", server.port);
    let options = EgressOptions {
        resolver: Answers::loopback(),
        roots: vec![authority.root()],
        ..EgressOptions::default()
    };
    let proxy = replaceable(&[&host, &server.address()], options);
    let own = trusting(&proxy.proxy.ca_pem().unwrap());
    let sent = format!("GET / HTTP/1.1\r\nHost: {host}\r\nOrigin: hunter2-hunter2\r\n\r\n");
    let (tunnel, _) = connect(&proxy, &host).await;
    let mut tunnel = handshake(tunnel, "a.example", authority.root()).await.unwrap();
    assert_eq!(request(&mut tunnel, &sent).await.unwrap().status, 200);

    let rules = vec![
        header("*.example", "wide"),
        header("a.example", "hunter2-hunter2"),
    ];
    proxy.proxy.replace(EgressRestriction::default(), rules).unwrap();
    assert!(
        request(&mut tunnel, &sent).await.is_none(),
        "a tunnel would miss the header"
    );
    let (stream, _) = connect(&proxy, &host).await;
    let mut stream = handshake(stream, "a.example", own).await.unwrap();
    let reply = request(&mut stream, &sent).await.unwrap();
    assert!(
        reply.text().contains("x-key: hunter2-hunter2\n"),
        "{}",
        reply.text()
    );
    assert_eq!(reply.header("access-control-allow-origin"), Some("***"));

    // The connection that is decrypted stays, without the header.
    proxy
        .proxy
        .replace(EgressRestriction::default(), Vec::new())
        .unwrap();
    let reply = request(&mut stream, &sent).await.unwrap();
    assert!(!reply.text().contains("x-key"), "{}", reply.text());
}

#[tokio::test]
async fn an_invalid_header_changes_nothing() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = replaceable(&[&address], EgressOptions::default());
    for rule in [header("127.0.0.1", "hunter2\n"), header("b.example", "hunter2")] {
        let error = proxy
            .proxy
            .replace(denying(&["0.0.0.0/0"]), vec![rule])
            .unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert_eq!(
            request(&mut open(&proxy), &get(&address)).await.unwrap().status,
            200
        );
    }
}

#[tokio::test]
async fn the_operators_header_replaces_one_of_the_session_and_a_branch_has_its_own_rules() {
    let server = OriginServer::start().await;
    let address = server.address();
    let secrets = json!([{ "host": "127.0.0.1", "header": "X-Key", "value": "operator" }]);
    let policy = EgressPolicy {
        replaceable: true,
        headers: vec![header("127.0.0.1", "session")],
        ..serde_json::from_value(json!({ "allow": [address], "secrets": secrets })).unwrap()
    };
    let proxy = Proxy::of(policy, EgressOptions::default());
    let address = server.address();
    let reply = request(&mut open(&proxy), &get(&address)).await.unwrap();
    assert!(reply.text().contains("x-key: operator\n"), "{}", reply.text());

    proxy.proxy.replace(denying(&["0.0.0.0/0"]), Vec::new()).unwrap();
    let branch = proxy.proxy.branch("branch", None);
    branch.replace(EgressRestriction::default(), Vec::new()).unwrap();
    assert_eq!(
        request(&mut open(&proxy), &get(&address)).await.unwrap().status,
        403
    );
    let (mut client, stream) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move { branch.serve(stream).await });
    assert_eq!(request(&mut client, &get(&address)).await.unwrap().status, 200);
}
