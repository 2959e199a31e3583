//! The network that code of sessions can use, as the gateway and the key allow.

use cellblock_gateway::Options;
use cellblock_interpreter::egress::EgressPolicy;
use cellblock_interpreter::limits::NetworkPolicy;
use reqwest::StatusCode;
use serde_json::json;

use crate::decisions::server;
use crate::support::{Api, block_on, served};

/// A gateway that allows requests this network.
async fn of(most: NetworkPolicy) -> Api {
    let options = Options {
        max_network: most,
        ..Options::default()
    };
    served(options).await
}

const ECHO: &str = "import socket
listener = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(listener.getsockname())
client.send(b'x')
print(listener.accept()[0].recv(9))";

#[test]
fn a_session_has_the_network_that_its_request_sets() {
    block_on(async {
        let api = of(NetworkPolicy::Loopback).await;
        let session = api.session(&json!({"network": "loopback"})).await;
        let (_, told) = api.get(&session).await;
        assert_eq!(told["network"], "loopback");
        assert_eq!(told["limits"]["network"], json!(null), "it is not a limit");
        let (_, ran) = api
            .post(&format!("{session}/cells"), &json!({"code": ECHO}))
            .await;
        assert_eq!(
            (&ran["outcome"], &ran["stdout"]),
            (&json!("completed"), &json!("b'x'\n"))
        );
        assert_eq!(ran["sandbox"]["network"], "loopback");
        let usual = api.session(&json!({})).await;
        let (_, told) = api.get(&usual).await;
        assert_eq!(told["network"], "none");
        let (_, ran) = api.post(&format!("{usual}/cells"), &json!({"code": ECHO})).await;
        assert_eq!(ran["outcome"], "raised");
        for session in [session, usual] {
            api.end(&session).await;
        }
    });
}

#[test]
fn a_network_that_is_not_allowed_is_refused_by_name() {
    block_on(async {
        for (most, body, said) in [
            (
                NetworkPolicy::None,
                json!({"network": "loopback"}),
                "this gateway allows \"none\" at most",
            ),
            (
                NetworkPolicy::Loopback,
                json!({"network": "loopback", "toolset": "derivation"}),
                "a derivation never has a network",
            ),
        ] {
            let (status, refused) = of(most).await.post("/v1/sessions", &body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
            assert_eq!(refused["error"]["param"], "network");
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.contains(said), "{message}");
        }
    });
}

#[test]
fn a_session_has_the_hosts_and_placeholders_of_its_network_policy() {
    block_on(async {
        let port = server();
        let rules = [format!("127.0.0.1:{port}"), "other.invalid".to_owned()];
        let api = served(Options {
            max_network: NetworkPolicy::Egress,
            egress: Some(EgressPolicy::from_rules(rules).unwrap()),
            ..Options::default()
        })
        .await;
        let secret = json!({"domain": "127.0.0.1", "name": "API_KEY", "value": "hunter2"});
        let list = |domain: &str| json!({"type": "allowlist", "allowed_domains": [domain]});
        let mut policy = list("127.0.0.1");
        policy["domain_secrets"] = json!([secret]);
        let session = api.session(&json!({"network_policy": policy})).await;
        let (_, told) = api.get(&session).await;
        assert_eq!(told["network"], "egress");
        assert!(!told.to_string().contains("hunter2"), "{told}");
        let code = format!(
            "import os, urllib.error, urllib.request\n\
             print(os.environ['API_KEY'][:12])\n\
             for host in ['127.0.0.1:{port}', 'other.invalid']:\n\
             \x20   try: print(urllib.request.urlopen('http://' + host).status)\n\
             \x20   except urllib.error.HTTPError as error: print(error.code)"
        );
        assert_eq!(
            api.run(&session, &code).await["stdout"],
            "placeholder_\n200\n403\n"
        );
        api.end(&session).await;
        for (body, param) in [
            (
                json!({"network_policy": list("third.invalid")}),
                "network_policy.allowed_domains[0]",
            ),
            (
                json!({"network_policy": list("127.0.0.1"), "network": "loopback"}),
                "network_policy",
            ),
            (
                json!({"network_policy": {"type": "disabled"}, "network": "egress"}),
                "network_policy",
            ),
            (
                json!({"network_policy": list("127.0.0.1"), "toolset": "derivation"}),
                "network",
            ),
        ] {
            let (status, refused) = api.post("/v1/sessions", &body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
            assert_eq!(refused["error"]["param"], param, "{refused}");
        }
    });
}
