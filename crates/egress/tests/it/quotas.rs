//! Quotas of a session, and downloads that do not reach them.

use cellblock_egress::{EgressDecision, EgressOptions};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;

use crate::support::{
    Authority, OriginServer, Proxy, ProxyReply, connect, intercepted, open, pattern, request,
};

const BIG: usize = 24 << 20;

fn get(address: &str, path: &str) -> String {
    format!("GET http://{address}{path} HTTP/1.1\r\nHost: {address}\r\n\r\n")
}

fn assert_intact(reply: &ProxyReply) {
    assert_eq!(reply.body.len(), BIG);
    assert_eq!(Sha256::digest(&reply.body), Sha256::digest(pattern(BIG)));
}

#[tokio::test]
async fn requests_beyond_the_quota_are_refused() {
    let server = OriginServer::start().await;
    let address = server.address();
    let policy = json!({ "allow": [address], "quotas": { "max_requests": 3 } });
    let proxy = Proxy::new(policy, EgressOptions::default());
    let mut client = open(&proxy);
    for _ in 0..2 {
        assert_eq!(
            request(&mut client, &get(&address, "/")).await.unwrap().status,
            200
        );
    }
    // A request that no rule allows does not count, a tunnel does.
    assert_eq!(
        request(&mut client, &get("denied.example", "/"))
            .await
            .unwrap()
            .status,
        403
    );
    let (_tunnel, reply) = connect(&proxy, &address).await;
    assert_eq!(reply.status, 200);
    let reply = request(&mut client, &get(&address, "/")).await.unwrap();
    assert_eq!(reply.status, 429);
    assert_eq!(
        reply.text(),
        "egress: this session has sent 3 requests, which is its maximum; the operator can raise \
         `max_requests`\n"
    );
    assert_eq!(connect(&proxy, &address).await.1.status, 429);
    assert_eq!(server.requests().len(), 2);
    assert_eq!(proxy.proxy.usage().requests, 3);
}

#[tokio::test]
async fn a_download_ends_at_the_quota_of_bytes() {
    let server = OriginServer::start().await;
    let address = server.address();
    let max = 1 << 20;
    for tunneled in [false, true] {
        let policy = json!({ "allow": [address], "quotas": { "max_bytes": max } });
        let proxy = Proxy::new(policy, EgressOptions::default());
        let mut client = open(&proxy);
        if tunneled {
            client = connect(&proxy, &address).await.0;
        }
        let path = if tunneled {
            "/bytes/25165824".to_owned()
        } else {
            format!("http://{address}/bytes/25165824")
        };
        let sent = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        tokio::io::AsyncWriteExt::write_all(&mut client, sent.as_bytes())
            .await
            .unwrap();
        let mut got = Vec::new();
        // The connection may be reset instead of closed.
        let _ = client.read_to_end(&mut got).await;
        assert!(got.len() <= max, "{} bytes passed", got.len());
        assert!(!got.is_empty());
        let record = proxy.records(1).await.remove(0);
        assert_eq!(
            (record.decision, record.reason),
            (EgressDecision::Denied, "quota_bytes"),
            "{tunneled}"
        );
        let reply = request(&mut open(&proxy), &get(&address, "/")).await.unwrap();
        assert_eq!(reply.status, 429);
        assert!(
            reply.text().contains("1048576 bytes, which is its maximum"),
            "{}",
            reply.text()
        );
    }
}

#[tokio::test]
async fn an_upload_ends_at_the_quota_of_bytes() {
    let server = OriginServer::start().await;
    let address = server.address();
    let policy = json!({ "allow": [address], "quotas": { "max_bytes": 100_000 } });
    let proxy = Proxy::new(policy, EgressOptions::default());
    let body = "x".repeat(1_000_000);
    let sent = format!(
        "POST http://{address}/ HTTP/1.1\r\nHost: {address}\r\nContent-Length: 1000000\r\n\r\n{body}"
    );
    let reply = request(&mut open(&proxy), &sent).await;
    assert!(reply.is_none_or(|reply| reply.status == 429));
    assert_eq!(proxy.reason().await, "quota_bytes");
    let up = proxy.proxy.usage().bytes_up;
    assert!((100_000..700_000).contains(&up), "{up}");
}

#[tokio::test]
async fn big_downloads_are_intact() {
    let server = OriginServer::start().await;
    let address = server.address();
    let proxy = Proxy::allowing(&[&address]);
    let path = format!("/bytes/{BIG}");
    assert_intact(&request(&mut open(&proxy), &get(&address, &path)).await.unwrap());
    let (mut tunnel, _) = connect(&proxy, &address).await;
    assert_intact(
        &request(&mut tunnel, &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
            .await
            .unwrap(),
    );
    let records = proxy.records(1).await;
    assert!(
        records[0].bytes_down > BIG as u64 && records[0].bytes_down < BIG as u64 + 1000,
        "{records:?}"
    );
}

#[tokio::test]
async fn big_downloads_through_an_intercepted_connection_are_intact() {
    let authority = Authority::new();
    let server = OriginServer::tls(authority.server("127.0.0.1")).await;
    let address = server.address();
    let (_proxy, mut stream) = intercepted(&authority, &address).await;
    let sent = format!("GET /bytes/{BIG} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    assert_intact(&request(&mut stream, &sent).await.unwrap());
}
