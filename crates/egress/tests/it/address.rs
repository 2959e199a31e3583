//! Addresses that the proxy does not connect to.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use cellblock_egress::{EgressOptions, EgressTimeouts};
use serde_json::json;

use crate::support::{Answers, OriginServer, Proxy, connect, open, request};

/// An address that counts as one of the internet, and to which there is no route: its block was
/// returned to IANA.
const PUBLIC: &str = "3ffe::1";

/// A proxy that allows a name on a port, with the addresses that the name has.
fn named(port: u16, answers: &[&[&str]]) -> (Proxy, std::sync::Arc<Answers>) {
    let resolver = Answers::new(answers);
    let timeouts = EgressTimeouts {
        connect: Duration::from_millis(300),
        ..EgressTimeouts::default()
    };
    let options = EgressOptions {
        resolver: resolver.clone(),
        timeouts,
        ..EgressOptions::default()
    };
    (
        Proxy::new(json!({ "allow": [format!("a.example:{port}")] }), options),
        resolver,
    )
}

async fn get(proxy: &Proxy, host: &str) -> u16 {
    let sent = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
    request(&mut open(proxy), &sent).await.unwrap().status
}

#[tokio::test]
async fn a_name_with_a_private_address_is_denied() {
    let server = OriginServer::start().await;
    let host = format!("a.example:{}", server.port);
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "ff02::1",
        "fd00:ec2::254",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
    ] {
        let (proxy, _) = named(server.port, &[&[address]]);
        let (_, reply) = connect(&proxy, &host).await;
        assert_eq!(reply.status, 403, "{address}");
        assert!(
            reply.text().contains("private or reserved address"),
            "{}",
            reply.text()
        );
        assert!(
            !reply.text().contains(address),
            "the address is not for code: {}",
            reply.text()
        );
        assert_eq!(get(&proxy, &host).await, 403, "{address}");
        let reasons: Vec<_> = proxy
            .records(2)
            .await
            .iter()
            .map(|record| record.reason)
            .collect();
        assert_eq!(reasons, ["address", "address"]);
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_that_changes_to_a_private_address_is_denied() {
    let server = OriginServer::start().await;
    let host = format!("a.example:{}", server.port);
    let (proxy, resolver) = named(server.port, &[&[PUBLIC], &["127.0.0.1"]]);
    let first = get(&proxy, &host).await;
    assert!(matches!(first, 502 | 504), "{first}");
    // The address that was checked is the one that was connected to: there is no second look-up.
    assert_eq!(resolver.asked.load(SeqCst), 1);
    assert_eq!(get(&proxy, &host).await, 403);
    assert_eq!(connect(&proxy, &host).await.1.status, 403);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn an_answer_with_public_and_private_addresses_is_denied() {
    let server = OriginServer::start().await;
    let host = format!("a.example:{}", server.port);
    for answer in [[PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC]] {
        let (proxy, _) = named(server.port, &[&answer]);
        assert_eq!(get(&proxy, &host).await, 403);
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn metadata_and_private_literals_need_a_rule() {
    let proxy = Proxy::allowing(&["*.example", "a.example"]);
    for host in [
        "169.254.169.254",
        "[fd00:ec2::254]",
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost",
    ] {
        assert_eq!(get(&proxy, host).await, 403, "{host}");
        assert_eq!(
            connect(&proxy, &format!("{host}:80")).await.1.status,
            403,
            "{host}"
        );
    }
}

#[tokio::test]
async fn other_notations_of_an_allowed_address_are_denied() {
    let server = OriginServer::start().await;
    let (address, port) = (server.address(), server.port);
    let proxy = Proxy::allowing(&[&address, &format!("localhost:{port}")]);
    for host in [
        "2130706433",
        "0x7f.1",
        "127.1",
        "0x7f000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "127.0.0.01",
    ] {
        let sent = format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
        let reply = request(&mut open(&proxy), &sent).await.unwrap();
        assert_eq!(reply.status, 403, "{host}");
        assert!(
            reply.text().contains("write all four decimal numbers"),
            "{}",
            reply.text()
        );
        assert_eq!(
            connect(&proxy, &format!("{host}:{port}")).await.1.status,
            403,
            "{host}"
        );
    }
    assert_eq!(server.connections(), 0);
    assert_eq!(get(&proxy, &address).await, 200);
}

#[tokio::test]
async fn a_name_without_addresses_is_a_bad_gateway() {
    let (proxy, _) = named(80, &[&[]]);
    let reply = connect(&proxy, "a.example:80").await.1;
    assert_eq!(reply.status, 502);
    assert_eq!(
        reply.text(),
        "egress: cannot resolve host `a.example`: it has no address\n"
    );
    assert_eq!(proxy.reason().await, "resolve");
}
