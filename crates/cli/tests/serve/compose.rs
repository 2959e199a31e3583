//! The compose files of front ends, without a container engine: their very commands and
//! configurations are served by this machine, which is asked what their environments name.

use std::path::Path;
use std::process::Command;

use cellblock_testkit::{Cli, require, workspace_root};
use serde_json::Value;

use crate::support::{GatewayProcess, serve_in};

/// Address at which the containers find the server.
const INSIDE: &str = "http://cellblock:8080";

/// A compose file, with its server and a key of it.
struct ComposeServer {
    services: Value,
    server: GatewayProcess,
    key: String,
}

impl ComposeServer {
    /// Serves what the service `cellblock` of a file does, with this text as its configuration.
    fn start(file: &str, configuration: impl FnOnce(&Value, &Path) -> String) -> Self {
        let text = std::fs::read_to_string(workspace_root().join("deploy/compose").join(file)).unwrap();
        let composed: Value = serde_saphyr::from_str(&text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("cellblock.yaml");
        std::fs::write(&own, configuration(&composed, folder.path())).unwrap();
        let state = folder.path().join("state");
        let key = Cli::new(["key", "create", "front-end"]).env("CELLBLOCK_SERVE__STATE", &state);
        let key = key.run().unwrap();
        assert_eq!(key.code(), 0, "{}", key.stderr);

        let services = composed["services"].clone();
        let command = services["cellblock"]["command"].as_array().unwrap();
        let command: Vec<_> = command.iter().map(|word| word.as_str().unwrap()).collect();
        let ["serve", arguments @ .., "--config", inside] = command.as_slice() else {
            panic!("{command:?}");
        };
        assert_eq!(*inside, "/etc/cellblock/cellblock.yaml");
        let own = own.to_string_lossy();
        let arguments = [arguments, &["--config", &own]].concat();
        // As the Containerfile has it.
        let server = serve_in(folder, &arguments, &[("CELLBLOCK_SERVE__AUTH__REQUIRED", "true")]);
        Self {
            services,
            server,
            key: key.stdout.trim().to_owned(),
        }
    }

    /// A variable of a service, with the key in it.
    fn variable(&self, service: &str, name: &str) -> String {
        let value = self.services[service]["environment"][name].as_str();
        let value = value.unwrap_or_else(|| panic!("no {name}"));
        value.replace("${CELLBLOCK_KEY:-}", &self.key)
    }

    /// Requests an address, as containers name it, with a key. Returns the status and the text of the answer.
    fn get(&self, address: &str, key: &str) -> (u16, String) {
        let path = address
            .strip_prefix(INSIDE)
            .unwrap_or_else(|| panic!("{address}"));
        let bearer = format!("Bearer {key}");
        self.server.ask(
            &format!("GET {path}"),
            &[("authorization", &bearer)],
            &Value::Null,
        )
    }
}

#[test]
fn open_webui_finds_models_terminals_and_kernels_with_its_key() {
    require!(UserNamespaces);
    let composed = ComposeServer::start("open-webui.yaml", |composed, _| {
        let mounted = composed["services"]["cellblock"]["volumes"][0].as_str().unwrap();
        let file = mounted.strip_suffix(":/etc/cellblock/cellblock.yaml:ro").unwrap();
        let text = std::fs::read_to_string(workspace_root().join("deploy/compose").join(file)).unwrap();
        // There is no model server here.
        text.replace("host.docker.internal:11434", "127.0.0.1:9")
    });
    let of = |name: &str| composed.variable("open-webui", name);
    assert_eq!(of("OPENAI_API_BASE_URL"), format!("{INSIDE}/v1"));
    let connections: Value = serde_json::from_str(&of("TERMINAL_SERVER_CONNECTIONS")).unwrap();
    let text = |name: &str| connections[0][name].as_str().unwrap();
    let schema = format!("{}{}", text("url"), text("path"));
    let (status, answer) = composed.get(&schema, text("key"));
    assert_eq!(status, 200, "{answer}");
    let schema: Value = serde_json::from_str(&answer).unwrap();
    assert!(schema["paths"]["/python"].is_object(), "{schema}");
    let files = format!("{}/files/cwd", text("url"));
    assert_eq!(composed.get(&files, text("key")).0, 200);
    assert_eq!(composed.get(&files, "wrong").0, 401);
    for engine in ["CODE_INTERPRETER", "CODE_EXECUTION"] {
        let of = |name: &str| of(&format!("{engine}_{name}"));
        assert_eq!(
            (of("ENGINE").as_str(), of("JUPYTER_AUTH").as_str()),
            ("jupyter", "token")
        );
        let kernels = format!("{}/api/kernels", of("JUPYTER_URL"));
        let (status, answer) = composed.get(&kernels, &of("JUPYTER_AUTH_TOKEN"));
        assert_eq!((status, answer.as_str()), (200, "[]"));
    }
    assert_eq!(of("OPENAI_API_KEY"), composed.key);
}

#[test]
fn librechat_is_asked_for_its_token() {
    require!(UserNamespaces);
    let composed = ComposeServer::start("librechat.yaml", |composed, folder| {
        // As the file tells its readers.
        let made = |arguments: &[&str]| {
            let ran = Command::new("openssl")
                .args(arguments)
                .current_dir(folder)
                .output()
                .unwrap();
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        };
        made(&["genpkey", "-algorithm", "ed25519", "-out", "librechat.key"]);
        made(&["pkey", "-in", "librechat.key", "-pubout", "-out", "librechat.pem"]);
        let text = composed["configs"]["cellblock"]["content"].as_str().unwrap();
        text.replace("/etc/cellblock/", &format!("{}/", folder.display()))
    });
    let address = composed.variable("librechat", "LIBRECHAT_CODE_BASEURL");
    let (status, answer) = composed.get(&format!("{address}/files/pNwkWwEv6ny-4IM_80KnT"), "not.a.token");
    assert_eq!(status, 401, "{answer}");
    assert!(answer.to_lowercase().contains("token"), "{answer}");
}
