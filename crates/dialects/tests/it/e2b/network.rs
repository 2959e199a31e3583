//! Network rules: at the creation of a sandbox, and while it runs.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::routing::get;
use bytes::Bytes;
use cellblock_dialects::E2bOptions;
use cellblock_interpreter::egress::EgressPolicy;
use cellblock_interpreter::limits::NetworkPolicy;
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::{E2bFixture, Sandbox, refused};
use crate::support::{RequestExt, block_on};

/// A server of this machine.
struct OriginPage {
    address: String,
    /// Values of the header `x-key` of its requests.
    keys: Arc<Mutex<Vec<String>>>,
    /// Notified when an answer has begun that has no end.
    begun: Arc<Notify>,
}

impl OriginPage {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (keys, begun) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Notify>::default());
        let (seen, telling) = (Arc::clone(&keys), Arc::clone(&begun));
        let page = async move |headers: HeaderMap| {
            let key = headers.get("x-key").map(|it| it.to_str().unwrap().to_owned());
            seen.lock().push(key.unwrap_or_default());
            "reached"
        };
        let endless = async move || {
            telling.notify_one();
            let first = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"begun"))]);
            Body::from_stream(first.chain(futures_util::stream::pending()))
        };
        let routes = Router::new()
            .route("/", get(page))
            .route("/endless", get(endless));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { address, keys, begun }
    }

    /// Starts a server of the dialect whose sandboxes may reach the page.
    async fn allowed(&self) -> E2bFixture {
        E2bFixture::on(E2bOptions::default(), |terms| {
            terms.max_network = NetworkPolicy::Egress;
            terms.egress = Some(EgressPolicy::from_rules([&self.address]).unwrap());
        })
        .await
    }

    /// Returns code whose value is what the page says, or the error.
    fn ask(&self, path: &str) -> String {
        format!(
            // A denied loopback is the sandbox's own one: the proxy itself is asked.
            "import http.client, os, urllib.request\n\
             for name in ('no_proxy', 'NO_PROXY'): os.environ.pop(name, None)\n\
             try: said = urllib.request.urlopen('http://{}{path}').read().decode()\n\
             except (OSError, http.client.HTTPException) as error: said = repr(error) + str(error)\n\
             said",
            self.address
        )
    }
}

impl E2bFixture {
    async fn update(&self, sandbox: &Sandbox, rules: &Value) -> reqwest::Response {
        let path = format!("/sandboxes/{}/network", sandbox.id);
        self.api(Method::PUT, &path).json(rules).sent().await
    }

    async fn shown(&self, sandbox: &Sandbox) -> Value {
        self.api(Method::GET, &format!("/sandboxes/{}", sandbox.id))
            .read()
            .await
    }
}

#[test]
fn a_denied_address_is_not_reached() {
    block_on(async {
        let page = OriginPage::start().await;
        let world = page.allowed().await;
        let code = page.ask("/");
        for (network, expected) in [
            (json!({}), "reached"),
            (json!({"denyOut": ["10.0.0.0/8"]}), "reached"),
            (json!({"denyOut": ["127.0.0.1"]}), "HTTP Error 403"),
            (json!({"denyOut": ["127.0.0.0/8"]}), "HTTP Error 403"),
            (
                json!({"denyOut": ["0.0.0.0/0"], "allowOut": ["127.0.0.1"]}),
                "reached",
            ),
            (
                json!({"denyOut": ["0.0.0.0/0"], "allowOut": ["192.0.2.1"]}),
                "HTTP Error 403",
            ),
            (json!({"denyOut": ["0.0.0.0/0"]}), "Connection refused"),
        ] {
            let sandbox = world.create(json!({"timeout": 60, "network": network})).await;
            let said = world.value(&sandbox, json!({"code": code})).await;
            assert!(said.contains(expected), "{network}: {said}");
            let shown: Value = world
                .api(Method::GET, &format!("/sandboxes/{}", sandbox.id))
                .read()
                .await;
            let denied = network.get("denyOut").cloned().unwrap_or(json!([]));
            assert_eq!(shown["network"]["denyOut"], denied);
            let killed = world.api(Method::DELETE, &format!("/sandboxes/{}", sandbox.id));
            assert_eq!(killed.status().await, 204);
        }
    });
}

#[test]
fn an_update_replaces_the_rules_of_a_sandbox_that_runs() {
    block_on(async {
        let (page, other) = (OriginPage::start().await, OriginPage::start().await);
        let world = page.allowed().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        for (rules, expected) in [
            (json!({}), "reached"),
            (json!({"denyOut": ["127.0.0.0/8"]}), "403"),
            (json!({"denyOut": ["10.0.0.0/8"], "dnsServers": []}), "reached"),
            (json!({"allow_internet_access": false}), "403"),
            (
                json!({"denyOut": ["0.0.0.0/0"], "allowOut": ["127.0.0.1"]}),
                "reached",
            ),
            (json!({"allow_internet_access": true}), "reached"),
        ] {
            let updated = world.update(&sandbox, &rules).await;
            assert_eq!(updated.status(), 204, "{rules}: {:?}", updated.text().await);
            let said = world.value(&sandbox, json!({"code": page.ask("/")})).await;
            assert!(said.contains(expected), "{rules}: {said}");
            let shown = world.shown(&sandbox).await;
            let is_closed = rules["allow_internet_access"] == json!(false);
            assert_eq!(shown["allowInternetAccess"], json!(!is_closed), "{shown}");
            let allowed = rules.get("allowOut").cloned().unwrap_or(json!([]));
            assert_eq!(shown["network"]["allowOut"], allowed);
            // No rule of a client adds to the operator's list.
            let said = world.value(&sandbox, json!({"code": other.ask("/")})).await;
            assert!(said.contains("403"), "{rules}: {said}");
        }
        assert!(other.keys.lock().is_empty());
    });
}

#[test]
fn an_update_ends_what_is_open_and_waits_for_no_code() {
    block_on(async {
        let page = OriginPage::start().await;
        let world = page.allowed().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let running = world.value(&sandbox, json!({"code": page.ask("/endless")}));
        let updating = async {
            page.begun.notified().await;
            tokio::time::timeout(
                Duration::from_mins(1),
                world.update(&sandbox, &json!({"denyOut": ["127.0.0.1"]})),
            )
            .await
            .unwrap()
        };
        let (said, updated) = tokio::join!(running, updating);
        assert_eq!(updated.status(), 204);
        assert!(!said.contains("begun"), "{said}");
    });
}

#[test]
fn headers_of_rules_reach_their_host_and_are_shown_to_nobody() {
    block_on(async {
        const SECRET: &str = "opensesame-4711";
        let page = OriginPage::start().await;
        let world = page.allowed().await;
        let rules = |value: &str| json!({"127.0.0.1": [{"transform": {"headers": {"X-Key": value}}}]});
        let network = json!({"rules": rules(SECRET)});
        let sandbox = world.create(json!({"timeout": 120, "network": network})).await;
        let ask = async || world.value(&sandbox, json!({"code": page.ask("/")})).await;
        ask().await;
        let shown = world.shown(&sandbox).await;
        let hidden = json!({"127.0.0.1": [{"transform": {"headers": {"x-key": "***"}}}]});
        assert_eq!(shown["network"]["rules"], hidden);
        let search = "import os\nstr(dict(os.environ)).count('opensesame')";
        assert_eq!(world.value(&sandbox, json!({"code": search})).await, "0");
        let updated = world.update(&sandbox, &json!({"rules": rules("second")})).await;
        assert_eq!(updated.status(), 204);
        ask().await;
        assert_eq!(world.update(&sandbox, &json!({})).await.status(), 204);
        ask().await;
        assert_eq!(*page.keys.lock(), [SECRET, "second", ""]);
        assert!(world.shown(&sandbox).await["network"].get("rules").is_none());
    });
}

#[test]
fn an_update_that_cannot_be_enforced_changes_nothing() {
    block_on(async {
        let page = OriginPage::start().await;
        let world = page.allowed().await;
        let sandbox = world.create(json!({"timeout": 120})).await;
        let many: Vec<_> = (0..10_000)
            .map(|number| format!("10.0.{}.{}", number / 250, number % 250))
            .collect();
        let header = |name: &str| json!({"127.0.0.1": [{"transform": {"headers": {name: "hidden"}}}]});
        for (rules, expected) in [
            (
                json!({"denyOut": ["evil.example"]}),
                "`evil.example` is not an address",
            ),
            (
                json!({"denyOut": many}),
                "10000 rules are too many, the limit is 256",
            ),
            (
                json!({"allowOut": ["a.example"]}),
                "`a.example` is not on this server's list",
            ),
            (
                json!({"rules": {"a.example": []}}),
                "`a.example` is not on this server's list",
            ),
            (json!({"rules": header("Host")}), "`network.rules`"),
            (json!({"rules": {"127.0.0.1": [{"match": "x"}]}}), "`match`"),
            (json!({"dnsServers": ["1.1.1.1"]}), "`network.dnsServers`"),
            (
                json!({"egressProxy": {"address": "p.example:1"}}),
                "`network.egressProxy`",
            ),
            (json!({"allowPublicTraffic": false}), "`allowPublicTraffic`"),
        ] {
            let message = refused(world.update(&sandbox, &rules).await, 400).await;
            assert!(
                message.contains(expected) && !message.contains("hidden"),
                "{message}"
            );
        }
        let said = world.value(&sandbox, json!({"code": page.ask("/")})).await;
        assert_eq!(said, "reached");

        // A sandbox without a way out gets none.
        let closed = world
            .create(json!({"timeout": 120, "allow_internet_access": false}))
            .await;
        let message = refused(world.update(&closed, &json!({})).await, 409).await;
        assert!(message.contains("created without a way out"), "{message}");
        let still = world
            .update(&closed, &json!({"allow_internet_access": false}))
            .await;
        assert_eq!(still.status(), 204);

        let path = format!("/sandboxes/{}/network", sandbox.id);
        let others = world
            .http
            .put(world.url(&path))
            .header("x-api-key", "e2b_ff")
            .json(&json!({}));
        refused(others.sent().await, 404).await;
        let keyless = world.http.put(world.url(&path)).json(&json!({}));
        refused(keyless.sent().await, 401).await;
        let pause = world.api(Method::POST, &format!("/sandboxes/{}/pause", sandbox.id));
        assert_eq!(pause.status().await, 204);
        let message = refused(world.update(&sandbox, &json!({})).await, 404).await;
        assert!(message.contains("is paused"), "{message}");
    });
}
