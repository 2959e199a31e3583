//! Peers that are slow or never end, and connections that are too many.

use std::future::pending;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use cellblock_egress::{EgressOptions, EgressTimeouts, HostResolver};
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::time::timeout;

use crate::support::{OriginServer, PATIENCE, Proxy, connect, open, request};

const SHORT: Duration = Duration::from_millis(300);

/// A proxy with one short timeout.
fn impatient(policy: serde_json::Value, set: impl FnOnce(&mut EgressTimeouts)) -> Proxy {
    let mut timeouts = EgressTimeouts::default();
    set(&mut timeouts);
    Proxy::new(
        policy,
        EgressOptions {
            timeouts,
            ..EgressOptions::default()
        },
    )
}

fn get(address: &str, path: &str) -> String {
    format!("GET http://{address}{path} HTTP/1.1\r\nHost: {address}\r\n\r\n")
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_head_is_disconnected() {
    let proxy = impatient(json!({ "allow": ["a.example"] }), |timeouts| {
        timeouts.header = SHORT;
    });
    for head in ["", "GET http://a.example/ HTTP/1.1\r\nHost: a.exa"] {
        let mut client = open(&proxy);
        client.write_all(head.as_bytes()).await.unwrap();
        let ended = timeout(PATIENCE, client.read_to_end(&mut Vec::new())).await;
        assert!(ended.is_ok(), "{head:?}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_start_tls_is_disconnected() {
    let policy = json!({ "allow": [{ "host": "a.example", "methods": ["GET"] }] });
    let proxy = impatient(policy, |timeouts| timeouts.header = SHORT);
    let (mut tunnel, reply) = connect(&proxy, "a.example:443").await;
    assert_eq!(reply.status, 200);
    let ended = timeout(PATIENCE, tunnel.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok());
    assert_eq!(proxy.reason().await, "client_tls");
}

#[tokio::test]
async fn a_server_that_never_answers_is_a_gateway_timeout() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = impatient(json!({ "allow": [address] }), |timeouts| timeouts.idle = SHORT);
    let reply = request(&mut open(&proxy), &get(&address, "/never"))
        .await
        .unwrap();
    assert_eq!(reply.status, 504);
    assert_eq!(
        reply.text(),
        format!("egress: waiting for `{address}` took longer than 0.3 seconds\n")
    );
    assert_eq!(proxy.reason().await, "timeout");
}

#[tokio::test]
async fn a_tunnel_without_traffic_is_closed() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = impatient(json!({ "allow": [address] }), |timeouts| timeouts.idle = SHORT);
    let (mut tunnel, reply) = connect(&proxy, &address).await;
    assert_eq!(reply.status, 200);
    let ended = timeout(PATIENCE, tunnel.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok());
    assert_eq!(proxy.reason().await, "ok");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = impatient(json!({ "allow": [address] }), |timeouts| timeouts.idle = SHORT);
    let (mut client, stream) = duplex(1024);
    let serving = proxy.proxy.clone();
    let serving = tokio::spawn(async move { serving.serve(stream).await });
    client
        .write_all(get(&address, "/bytes/10000000").as_bytes())
        .await
        .unwrap();
    timeout(PATIENCE, serving)
        .await
        .expect("the connection stays open")
        .unwrap();
    assert_eq!(proxy.records(1).await.len(), 1);
    drop(client);
}

#[tokio::test]
async fn a_body_that_never_ends_is_cut_off() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = impatient(json!({ "allow": [address] }), |timeouts| timeouts.idle = SHORT);
    let mut client = open(&proxy);
    let sent =
        format!("POST http://{address}/ HTTP/1.1\r\nHost: {address}\r\nContent-Length: 100\r\n\r\nbegin");
    let reply = request(&mut client, &sent).await;
    assert!(reply.is_none_or(|reply| reply.status == 504));
    assert_eq!(proxy.records(1).await.len(), 1);
}

/// A resolver that never answers.
#[derive(Debug)]
struct SilentResolver;

impl HostResolver for SilentResolver {
    fn resolve<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(pending())
    }
}

#[tokio::test]
async fn a_name_that_is_never_resolved_is_a_gateway_timeout() {
    let timeouts = EgressTimeouts {
        connect: SHORT,
        ..EgressTimeouts::default()
    };
    let options = EgressOptions {
        timeouts,
        resolver: Arc::new(SilentResolver),
        ..EgressOptions::default()
    };
    let proxy = Proxy::new(json!({ "allow": ["a.example"] }), options);
    let (_, reply) = connect(&proxy, "a.example:443").await;
    assert_eq!(reply.status, 504);
    assert_eq!(
        reply.text(),
        "egress: connecting to `a.example:443` took longer than 0.3 seconds\n"
    );
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused_until_others_end() {
    let server = OriginServer::start().await;
    let address = server.address();
    let options = EgressOptions {
        max_connections: 2,
        ..EgressOptions::default()
    };
    let proxy = Proxy::new(json!({ "allow": [address] }), options);
    let (tunnel, reply) = connect(&proxy, &address).await;
    assert_eq!(reply.status, 200);
    let mut client = open(&proxy);
    assert_eq!(
        request(&mut client, &get(&address, "/")).await.unwrap().status,
        200
    );
    let mut third = open(&proxy);
    let reply = request(&mut third, &get(&address, "/")).await.unwrap();
    assert_eq!(
        (reply.status, reply.header("x-cellblock-egress")),
        (503, Some("denied"))
    );
    assert_eq!(
        reply.text(),
        "egress: 2 connections are open, which is the maximum; close some of them, or wait\n"
    );
    drop(tunnel);
    let again = async {
        while request(&mut open(&proxy), &get(&address, "/"))
            .await
            .is_none_or(|reply| reply.status != 200)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, again)
        .await
        .expect("the ended tunnel still counts");
}
