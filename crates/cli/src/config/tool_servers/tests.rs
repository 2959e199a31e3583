//! Servers of tools in a configuration: what is made of them, what is told of mistakes, and that no
//! secret is shown.

use std::fmt::Write as _;
use std::path::Path;

use cellblock_agent::{ToolReply, ToolServerAddress};
use serde_json::{Map, json};

use super::*;
use crate::config::Sources;

/// Writes a configuration beside a file with a secret, and reads it.
fn load(folder: &Path, text: &str) -> Result<LoadedConfig, ConfigError> {
    let file = folder.join("cellblock.yaml");
    std::fs::write(&file, text).unwrap();
    std::fs::write(folder.join("secret"), "hunter2\n").unwrap();
    std::fs::write(folder.join("empty"), "\n").unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    sources.load()
}

const WHOLE: &str = "
mcp_servers:
  weather:
    command: [weather-mcp, --region, eu]
    env: {REGION: eu}
    env_from: {API_TOKEN: CARGO_PKG_NAME}
    env_files: {PASSWORD: secret}
    allowed_tools: [get_weather]
    timeout: 2m
    max_result: 1MiB
  prices:
    url: https://prices.example/mcp
    key_file: secret
    headers: {X-Tenant: a}
    headers_from: {X-Api-Key: CARGO_PKG_NAME}
    offer: on_request
mcp_requests: {allowed_urls: ['https://*.example.com/mcp'], timeout: 5}
";

#[test]
fn servers_are_created_from_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = load(folder.path(), WHOLE).unwrap();
    let (offered, requested) = loaded.tool_servers().unwrap();
    let named: Vec<_> = offered
        .iter()
        .map(|offered| (offered.server().label().to_owned(), offered.offer))
        .collect();
    assert_eq!(
        named,
        [
            ("prices".to_owned(), OfferPolicy::OnRequest),
            ("weather".to_owned(), OfferPolicy::Model)
        ]
    );
    assert!(offered.iter().all(|offered| offered.connector().is_none()));
    let made = format!("{offered:?}");
    for part in [
        "timeout: 120s",
        "max_result: 1048576",
        "\"get_weather\"",
        "\"REGION\", \"API_TOKEN\", \"PASSWORD\"",
        "url: https://prices.example/mcp, headers: [\"x-tenant\", \"x-api-key\", \"authorization\"]",
    ] {
        assert!(made.contains(part), "{part}: {made}");
    }
    let at = |url: &str| {
        requested.at(ToolServerAddress {
            label: "a".to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
        })
    };
    assert!(at("https://a.example.com/mcp/x").is_ok());
    assert!(at("https://example.com/mcp").is_err());
    let (offered, requested) = load(folder.path(), "").unwrap().tool_servers().unwrap();
    assert!(offered.is_empty());
    let nowhere = requested.at(ToolServerAddress {
        label: "a".to_owned(),
        url: "https://a.example.com/mcp".to_owned(),
        headers: Vec::new(),
    });
    assert!(nowhere.is_err());
}

#[test]
fn what_counts_is_shown_without_secrets_and_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = load(folder.path(), WHOLE).unwrap();
    let shown = loaded.show();
    let again = load(folder.path(), &shown).unwrap();
    let values = |loaded: &LoadedConfig| serde_json::to_value(&loaded.settings).unwrap();
    assert_eq!(values(&again), values(&loaded));
    let made = format!("{:?}", loaded.tool_servers().unwrap());
    for text in [&shown, &made] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    let begin = shown.find("mcp_servers").unwrap();
    let end = shown.find("limits:").unwrap();
    let folder_name = format!("{}/", folder.path().display());
    insta::assert_snapshot!(shown[begin..end].replace(&folder_name, ""));
}

#[test]
fn mistakes_are_told_with_their_place_and_a_repair() {
    let folder = tempfile::tempdir().unwrap();
    let mut told = String::new();
    for text in [
        "mcp_server: {}",
        "mcp_servers: {a: {}}",
        "mcp_servers: {'a b': {command: [x]}}",
        "mcp_servers: {a: {command: x}}",
        "mcp_servers: {a: {comand: [x]}}",
        "mcp_servers: {a: {command: [x], url: 'https://h/'}}",
        "mcp_servers: {a: {command: [x], headers: {X: a}, allow_http: true}}",
        "mcp_servers: {a: {url: 'https://h/', env: {X: a}}}",
        "mcp_servers: {a: {command: [x], env: {API_KEY: hunter2}}}",
        "mcp_servers: {a: {url: 'https://h/', headers: {Authorization: Bearer hunter2}}}",
        "mcp_servers: {a: {url: 'https://h/', key_env: A, key_file: secret}}",
        "mcp_servers: {a: {command: [x], env: {X: a}, env_from: {X: B, Y: C}, env_files: {Y: secret}}}",
        "mcp_servers: \
         {a: {command: [x], env_from: {X: CELLBLOCK_TEST_NO_SUCH_KEY}, env_files: {Y: nowhere, Z: empty}}}",
        "mcp_servers: {a: {url: 'https://h/', headers_files: {Authorization: nowhere}}}",
        "mcp_servers: {a: {url: 'https://h/', key_env: CELLBLOCK_TEST_NO_SUCH_KEY}}",
        "mcp_servers: {a: {url: 'https://user:hunter2@h/'}}",
        "mcp_servers: {a: {url: 'http://h/'}}",
        "mcp_servers: {a: {url: 'https://h/?a=1&apiKey=hunter2'}}",
        "mcp_servers: {a: {url: 'https://h/', url_env: A}}",
        "mcp_servers: {a: {url_env: CARGO_PKG_NAME}}",
        "mcp_servers: {a: {url: h}}",
        "mcp_servers: {a: {url: 'https://h/', headers: {Host: a}}}",
        "mcp_servers: {a: {command: [x], timeout: 0, connect_timeout: soon}}",
        "mcp_servers: {a: {command: [x], timeout: 0, connect_timeout: 0, max_result: 1}}",
        "mcp_servers: {a: {command: [x], offer: never}}",
        "mcp_servers: {print: {command: [x], offer: code}}",
        "mcp_servers: {my-server: {command: [x], offer: both}}",
        "mcp_requests: {allowed: []}",
        "mcp_requests: {allowed_urls: ['*', 'http://h/', 'https://h/?a', 'h']}",
        "mcp_requests: {timeout: 0, max_result: 2GiB}",
    ] {
        let made = load(folder.path(), text).and_then(|loaded| loaded.tool_servers().map(drop));
        let error = made.unwrap_err().to_string();
        let error = error.replace(&format!("{}/", folder.path().display()), "");
        assert!(!error.contains("hunter2"), "{error}");
        let _ = writeln!(told, "{text}\n    {}\n", error.replace('\n', "\n    "));
    }
    insta::assert_snapshot!(told);
}

/// A program that speaks the protocol well enough to be called, and answers with what it was given.
const SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "t", "version": "1"}},
        "tools/call": {"structuredContent": [os.environ["REGION"], os.environ["PASSWORD"]]},
    }.get(message["method"])
    if "id" in message:
        answer = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"]} | answer), flush=True)
"#;

#[tokio::test]
async fn a_server_gets_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.py");
    std::fs::write(&script, SERVER).unwrap();
    let text = format!(
        "mcp_servers: {{a: {{command: [python3, {}], env: {{REGION: eu}}, env_files: {{PASSWORD: \
         secret}}, offer: both}}}}",
        script.display()
    );
    let (offered, _) = load(folder.path(), &text).unwrap().tool_servers().unwrap();
    let reply = offered[0].server().call("work", Map::new()).await.unwrap();
    assert_eq!(reply, ToolReply::Result(json!(["eu", "hunter2"])));
    // Code would get the answer without the secret.
    let mut answer = json!(["eu", "hunter2", 1]);
    let connector = offered[0].connector().unwrap();
    connector.redaction().value(&mut answer);
    assert_eq!(answer, json!(["eu", "[redacted]", 1]));
}

#[test]
fn a_secret_address_is_secret_in_its_parts() {
    let url = "https://mcp.example.com/s/0123456789abcdef?apiKey=fedcba9876543210";
    let secrets = parts(url);
    for part in [url, "0123456789abcdef", "fedcba9876543210"] {
        assert!(secrets.iter().any(|secret| secret == part), "{part}: {secrets:?}");
    }
}
