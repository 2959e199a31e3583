//! Decisions about what code and requests wanted.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use cellblock_gateway::Options;
use cellblock_interpreter::egress::EgressPolicy;
use cellblock_interpreter::limits::NetworkPolicy;
use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Api, block_on, served, until};

/// A server of the host that answers everything in the same way; its port.
pub(crate) fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                head.push(byte[0]);
            }
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
        }
    });
    port
}

#[test]
fn requests_of_code_to_hosts_are_listed_with_what_the_proxy_decided() {
    block_on(async {
        let port = server();
        let api = served(Options {
            max_network: NetworkPolicy::Egress,
            egress: Some(EgressPolicy {
                allow: vec![format!("127.0.0.1:{port}").parse().unwrap()],
                ..EgressPolicy::default()
            }),
            ..Options::default()
        })
        .await;
        let session = api.session(&json!({"network": "egress"})).await;
        let code = format!(
            "import urllib.request, urllib.error\n\
             for host in ['127.0.0.1:{port}', '127.0.0.1:{port}', 'unlisted.example']:\n\
             \x20   try: print(urllib.request.urlopen('http://' + host + '/secret-path').status)\n\
             \x20   except urllib.error.HTTPError as error: print(error.code)"
        );
        let ran = api.run(&session, &code).await;
        assert_eq!(ran["stdout"], "200\n200\n403\n", "{ran}");
        let id = session.rsplit('/').next().unwrap();
        let path = format!("/v1/decisions?session={id}");
        // A request is recorded when its connection has ended.
        until("all requests are recorded", || async {
            let (_, listed) = api.get(&path).await;
            let counts = listed["data"].as_array().unwrap().iter();
            counts.map(|it| it["count"].as_u64().unwrap()).sum::<u64>() == 3
        })
        .await;
        let (_, listed) = api.get(&path).await;
        let of = |host: &str| {
            let all = listed["data"].as_array().unwrap();
            all.iter().find(|it| it["host"] == host).unwrap().clone()
        };
        let (allowed, denied) = (of("127.0.0.1"), of("unlisted.example"));
        assert_eq!(
            (
                &allowed["kind"],
                &allowed["decision"],
                &allowed["reason"],
                &allowed["count"]
            ),
            (&json!("egress"), &json!("allowed"), &json!("ok"), &json!(2))
        );
        assert!(allowed["bytes_down"].as_u64().unwrap() > 10, "{allowed}");
        assert_eq!(
            (&denied["decision"], &denied["reason"]),
            (&json!("denied"), &json!("host"))
        );
        assert_eq!(denied["session"], id);
        assert!(!listed.to_string().contains("secret-path"));
        let (_, other) = api.get("/v1/decisions?session=another").await;
        assert_eq!(other["data"], json!([]));
        let (status, _) = api.get("/v1/decisions?limit=501").await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        api.end(&session).await;
    });
}

#[test]
fn a_quota_that_is_used_up_is_listed_for_its_key_alone() {
    block_on(async {
        let api = Api::of("one noted fetch").await;
        let session = api.session(&json!({"toolset": "notebook"})).await;
        let id = session.rsplit('/').next().unwrap();
        let path = format!("/v1/decisions?session={id}");
        for city in ["Kyiv", "Lviv"] {
            api.run(&session, &format!("weather.get_forecast({city:?})"))
                .await;
        }
        let (_, listed) = api.get(&path).await;
        let refused = &listed["data"][0];
        assert_eq!(
            (&refused["kind"], &refused["quota"], &refused["limit"]),
            (&json!("quota"), &json!("fetches_per_minute"), &json!(1))
        );
        let stranger = Api::of("a stranger to decisions").await;
        for path in [path.as_str(), "/v1/decisions"] {
            assert_eq!(stranger.get(path).await.1["data"], json!([]), "{path}");
        }
        api.end(&session).await;
    });
}
