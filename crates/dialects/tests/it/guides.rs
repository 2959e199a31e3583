//! Configurations in the guides and the compose file.

use cellblock_dialects::DialectsOptions;
use cellblock_testkit::workspace_root;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    dialects: DialectsOptions,
}

fn read(file: &str) -> String {
    std::fs::read_to_string(workspace_root().join(file)).unwrap()
}

/// The fenced YAML of a page.
fn blocks(page: &str) -> Vec<String> {
    let parts = page.split("```yaml\n").skip(1);
    parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect()
}

fn dialects(yaml: &str) -> DialectsOptions {
    let configuration: Configuration = serde_saphyr::from_str(yaml).unwrap();
    configuration.dialects
}

#[test]
fn the_guides_configure_the_dialects_that_they_are_about() {
    let librechat = blocks(&read("docs/guides/librechat.md"));
    assert!(librechat.len() >= 2);
    assert!(librechat.iter().all(|block| dialects(block).librechat.is_some()));
    let opensandbox = blocks(&read("docs/guides/opensandbox.md"));
    assert!(dialects(&opensandbox[0]).opensandbox.is_some());
    let litellm: Value = serde_saphyr::from_str(&opensandbox[1]).unwrap();
    let tool = &litellm["sandbox_tools"][0]["litellm_params"];
    assert_eq!(tool["sandbox_provider"], "opensandbox");
    assert!(tool["api_base"].as_str().unwrap().ends_with("/opensandbox"));
}

#[test]
fn the_compose_file_gives_both_servers_the_same_key() {
    let compose: Value = serde_saphyr::from_str(&read("deploy/compose/librechat.yaml")).unwrap();
    let services = &compose["services"];
    let environment = &services["librechat"]["environment"];
    assert_eq!(
        environment["LIBRECHAT_CODE_BASEURL"],
        "http://cellblock:8080/librechat"
    );
    let options = dialects(compose["configs"]["cellblock"]["content"].as_str().unwrap());
    let jwt = options.librechat.unwrap().jwt.unwrap();
    assert_eq!(jwt.keys[0].kid, environment["CODEAPI_JWT_KID"]);
    let file = jwt.keys[0].file.to_str().unwrap();
    let mounted = services["cellblock"]["volumes"][0].as_str().unwrap();
    assert!(mounted.ends_with(&format!(":{file}:ro")), "{mounted}");
    let base: Value = serde_saphyr::from_str(&read("deploy/compose/compose.yaml")).unwrap();
    for name in base["volumes"].as_object().unwrap().keys() {
        assert!(compose["volumes"].get(name).is_some(), "{name}");
    }
}
