//! Networks of containers: hosts of an allowlist, and secrets that these hosts receive and code never has.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use cellblock_agent::provider::scripted::ScriptedAnswer;
use cellblock_gateway::Options;
use cellblock_gateway::records::Records;
use cellblock_interpreter::egress::EgressPolicy;
use cellblock_interpreter::limits::NetworkPolicy;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::{bench, block_on, logs, runs, start};

const SECRET: &str = "opensesame-4711-opensesame";

/// A server of the host that remembers the heads of requests.
struct OriginServer {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl OriginServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&heads);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                    head.push(byte[0]);
                }
                seen.lock().push(String::from_utf8_lossy(&head).to_lowercase());
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
                let _ = stream.write_all(answer);
            }
        });
        Self { port, heads }
    }

    /// Allows it, and hosts that do not exist.
    fn allow(&self, options: &mut Options) {
        let rules = [
            format!("127.0.0.1:{}", self.port),
            "*.operator.invalid".to_owned(),
        ];
        options.max_network = NetworkPolicy::Egress;
        options.egress = Some(EgressPolicy::from_rules(rules).unwrap());
    }

    /// Code that prints its placeholder, and what it gets from this server and from another allowed host.
    fn code(&self) -> String {
        format!(
            "import os, urllib.error, urllib.request\n\
             print(os.environ['API_KEY'])\n\
             for host in ['127.0.0.1:{}', 'x.operator.invalid']:\n\
             \x20   headers = {{'Authorization': 'Bearer ' + os.environ['API_KEY']}}\n\
             \x20   request = urllib.request.Request(f'http://{{host}}/', headers=headers)\n\
             \x20   try: print(urllib.request.urlopen(request, timeout=30).read().decode())\n\
             \x20   except urllib.error.HTTPError as error: print(error.code)",
            self.port
        )
    }
}

/// A policy with a secret of the server.
fn policy(value: &str) -> Value {
    let secret = json!({"domain": "127.0.0.1", "name": "API_KEY", "value": value});
    json!({"type": "allowlist", "allowed_domains": ["127.0.0.1"], "domain_secrets": [secret]})
}

/// The policy as it is returned.
fn returned() -> Value {
    json!({"type": "allowlist", "allowed_domains": ["127.0.0.1"]})
}

/// Whether a file of a folder contains the secret.
fn is_stored(folder: &Path) -> bool {
    let files = std::fs::read_dir(folder).unwrap();
    let contents: Vec<_> = files
        .map(|it| std::fs::read(it.unwrap().path()).unwrap())
        .collect();
    assert!(contents.iter().any(|it| it.len() > 4096), "there are records");
    let holds = |bytes: &Vec<u8>| bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
    contents.iter().any(holds)
}

#[test]
fn code_reaches_the_listed_domain_only_and_the_secret_is_nowhere_but_there() {
    block_on(async {
        let server = OriginServer::start();
        let folder = tempfile::tempdir().unwrap();
        let records = Records::open(&folder.path().join("records.db")).unwrap();
        let bench = start(records, |options| server.allow(options)).await;
        let body = json!({"name": "net", "network_policy": policy(SECRET)});
        let made = bench.post("containers", &body).await.ok();
        let id = made["id"].as_str().unwrap();
        assert_eq!(made["network_policy"], returned());
        let found = bench.get(&format!("containers/{id}")).await.ok();
        assert_eq!(found, made);

        let ran = bench.run(id, &server.code()).await;
        let printed = logs(&ran);
        assert!(printed.starts_with("placeholder_"), "{printed}");
        assert!(printed.contains("\nhello\n403"), "{printed}");
        let head = server.heads.lock().remove(0);
        assert!(
            head.contains(&format!("authorization: bearer {SECRET}\r\n")),
            "{head}"
        );
        assert!(!ran.to_string().contains(SECRET));

        let forked = bench.post(&format!("containers/{id}/fork"), &json!({})).await;
        assert_eq!(forked.status, 201, "{}", forked.body);
        let fork = &forked.body["containers"][0];
        assert_eq!(fork["network_policy"], returned());
        let again = bench.run(fork["id"].as_str().unwrap(), &server.code()).await;
        assert_eq!(logs(&again), printed);
        assert_eq!(server.heads.lock().remove(0), head);

        bench.delete(&format!("containers/{id}")).await.ok();
        let used = bench.respond("nobody", &json!("go"), &json!(id)).await;
        assert_eq!(used.error(), (404, "container_not_found"));
        assert!(!is_stored(folder.path()));
    });
}

#[test]
fn a_conversation_has_its_container_again_only_with_the_same_policy() {
    block_on(async {
        let server = OriginServer::start();
        let folder = tempfile::tempdir().unwrap();
        let records = Records::open(&folder.path().join("records.db")).unwrap();
        let bench = start(records, |options| server.allow(options)).await;
        let mut previous = Value::Null;
        let mut respond = async |container: Value| -> (String, String, Value) {
            let script = bench.script(
                "net",
                [
                    runs("c", "import os\nprint(os.environ.get('API_KEY'))"),
                    ScriptedAnswer::new().text("Done."),
                ],
            );
            let body = json!({
                "model": "net", "input": "go", "previous_response_id": previous,
                "include": ["code_interpreter_call.outputs"],
                "tools": [{"type": "code_interpreter", "container": container}],
            });
            let response = bench.post("responses", &body).await.ok();
            previous = response["id"].clone();
            let call = &response["output"][0];
            let description = script.asked()[0].tools[0].description.clone().unwrap();
            let container = call["container_id"].as_str().unwrap().to_owned();
            (container, description, response)
        };
        let auto = |value: &str| json!({"type": "auto", "network_policy": policy(value)});
        let (first, description, response) = respond(auto(SECRET)).await;
        assert!(
            description.contains("`127.0.0.1`") && description.contains("`API_KEY`"),
            "{description}"
        );
        assert_eq!(response["tools"][0]["container"]["network_policy"], returned());
        let path = format!("responses/{}", response["id"].as_str().unwrap());
        let stored = bench.get(&path).await.ok();
        assert_eq!(stored["tools"], response["tools"]);
        let (second, ..) = respond(auto(SECRET)).await;
        assert_eq!(second, first);
        let (third, ..) = respond(auto("another")).await;
        assert_ne!(third, second);
        let (fourth, description, response) = respond(json!({"type": "auto"})).await;
        assert_ne!(fourth, third);
        assert!(description.contains("without a network"), "{description}");
        assert!(logs(&response["output"][0]).contains("None"), "{response}");
        assert!(!is_stored(folder.path()));
    });
}

#[test]
fn a_policy_that_the_operator_does_not_allow_is_refused_by_name() {
    block_on(async {
        let server = OriginServer::start();
        let open = start(Records::in_memory().unwrap(), |options| server.allow(options)).await;
        let closed = bench().await;
        let list = |domains: &[&str]| json!({"type": "allowlist", "allowed_domains": domains});
        let mut unlisted = policy(SECRET);
        unlisted["domain_secrets"][0]["domain"] = json!("x.operator.invalid");
        for (bench, policy, param) in [
            (closed, list(&["127.0.0.1"]), "type"),
            (&open, json!({"type": "open"}), "type"),
            (&open, list(&["127.0.0.1", "other.invalid"]), "allowed_domains[1]"),
            (&open, list(&["operator.invalid"]), "allowed_domains[0]"),
            (&open, list(&[]), "allowed_domains"),
            (&open, unlisted, "domain_secrets[0].domain"),
        ] {
            let made = bench
                .post("containers", &json!({"name": "x", "network_policy": policy}))
                .await;
            let auto = json!({"type": "auto", "network_policy": policy});
            let answered = bench.respond("nobody", &json!("go"), &auto).await;
            for (refused, before) in [(made, ""), (answered, "tools[0].container.")] {
                assert_eq!(refused.status, 400, "{}", refused.body);
                let param = format!("{before}network_policy.{param}");
                assert_eq!(refused.body["error"]["param"], param, "{}", refused.body);
                assert!(!refused.body.to_string().contains(SECRET));
            }
        }
    });
}
