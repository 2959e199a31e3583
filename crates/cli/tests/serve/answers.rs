//! Answers of a configured server.

use cellblock_testkit::{Cli, require};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{PATIENCE, Upstream, said, serve, serve_in};

fn names(list: &Value) -> Vec<(&str, &str)> {
    let models = list["data"].as_array().unwrap().iter();
    models
        .map(|model| {
            assert_eq!(model["object"], "model");
            assert!(model["created"].as_u64().unwrap() > 0);
            (model["id"].as_str().unwrap(), model["owned_by"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn a_configured_model_answers_under_its_names_and_is_listed() {
    require!(UserNamespaces);
    let upstream = Upstream::saying("hello");
    let config = format!(
        "providers:
  local:
    type: chat
    base_url: http://{}/v1
    key_env: LOCAL_KEY
    rename: {{fast: qwen3}}
  down:
    type: chat
    base_url: http://127.0.0.1:1/v1
    models: [one, 'two-*']
    retries: {{count: 0}}
",
        upstream.address
    );
    // A proxy that is not there: this machine is never behind one.
    let environment = [
        ("LOCAL_KEY", "sk-secret"),
        ("HTTP_PROXY", "http://127.0.0.1:1"),
        ("http_proxy", "http://127.0.0.1:1"),
    ];
    let server = serve(&config, &[], &environment);
    let (status, answer) = server.respond(&json!({"model": "fast", "input": "hi"}));
    assert_eq!((status, said(&answer).as_str()), (200, "hello"));
    assert_eq!(answer["model"], "fast");
    let (head, body) = upstream.asked().remove(0);
    assert!(head.starts_with("post /v1/chat/completions "), "{head}");
    assert!(head.contains("authorization: bearer sk-secret"), "{head}");
    assert_eq!(body["model"], "qwen3");

    let (status, list) = server.get("/v1/models");
    assert_eq!((status, &list["object"]), (200, &json!("list")));
    let expected = [
        ("fast", "local"),
        ("one", "down"),
        ("qwen3", "local"),
        ("org/llama", "local"),
    ];
    assert_eq!(names(&list), expected);
    let (status, model) = server.get("/v1/models/org/llama");
    assert_eq!((status, &model["id"]), (200, &json!("org/llama")));
    let (status, error) = server.get("/v1/models/none");
    assert_eq!(
        (status, &error["error"]["code"]),
        (404, &json!("model_not_found"))
    );

    assert_eq!(server.end(Signal::TERM), Some(0));
}

#[test]
fn the_demonstration_says_how_to_try_it_and_runs_code() {
    require!(UserNamespaces);
    let server = serve(
        "providers: {code_interpreter: {settings: {execution_timeout: 30.5}}}",
        &["--demo"],
        &[],
    );
    let line = server.line();
    let body = line.split('\'').nth(3).unwrap();
    assert!(
        line.starts_with(&format!("try: curl http://{}/v1/responses ", server.address)),
        "{line}"
    );
    let mut request: Value = serde_json::from_str(body).unwrap();
    request["input"] = json!("```python\n6 * 7\n```");
    let (status, answer) = server.respond(&request);
    assert_eq!(status, 200, "{answer}");
    assert!(said(&answer).contains("42"), "{answer}");
    assert_eq!(names(&server.get("/v1/models").1), [("demo", "cellblock")]);
    assert_eq!(server.end(Signal::INT), Some(0));
}

#[test]
fn a_script_answers_with_calls_and_their_results() {
    require!(UserNamespaces);
    let folder = tempfile::tempdir().unwrap();
    let script = "conversations:
  - when: sum
    answers:
      - {reasoning: hm, calls: [{name: code_interpreter, arguments: {code: 'print(40 + 2)'}}]}
      - {text: 'It gave {{result}}.'}
answers:
  - {fail: {status: 400}}
";
    std::fs::write(folder.path().join("script.yaml"), script).unwrap();
    let config = "providers: {s: {type: scripted, script: script.yaml, models: [s]}}";
    std::fs::write(folder.path().join("cellblock.yaml"), config).unwrap();
    let server = serve_in(folder, &[], &[]);
    let tools = json!([{"type": "code_interpreter", "container": {"type": "auto"}}]);
    let (status, answer) = server.respond(&json!({"model": "s", "input": "The sum?", "tools": tools}));
    assert_eq!(status, 200);
    assert!(said(&answer).contains("42"), "{answer}");
    let (_, answer) = server.respond(&json!({"model": "s", "input": "else"}));
    assert!(answer.to_string().contains("so the script wants it"), "{answer}");
}

#[test]
fn a_disabled_tool_is_rejected() {
    require!(UserNamespaces);
    let server = serve(
        "providers: {code_interpreter: {enabled: false}}",
        &["--demo"],
        &[],
    );
    let tools = json!([{"type": "code_interpreter", "container": {"type": "auto"}}]);
    let (status, error) = server.respond(&json!({"model": "demo", "input": "x", "tools": tools}));
    assert_eq!(status, 400);
    assert_eq!(error["error"]["param"], "tools[0].type");
    let (status, _) = server.respond(&json!({"model": "demo", "input": "x"}));
    assert_eq!(status, 200);
}

#[test]
fn a_provider_elsewhere_is_asked_through_the_proxy_of_the_environment() {
    require!(UserNamespaces);
    let proxy = Upstream::saying("through a proxy");
    let url = format!("http://{}", proxy.address);
    let config = "providers: {far: {type: chat, base_url: 'http://models.invalid/v1', models: [m]}}";
    let environment = [("HTTP_PROXY", url.as_str()), ("http_proxy", url.as_str())];
    let server = serve(config, &[], &environment);
    let (_, answer) = server.respond(&json!({"model": "m", "input": "hi"}));
    assert_eq!(said(&answer), "through a proxy");
    let (head, _) = proxy.asked().remove(0);
    assert!(
        head.starts_with("post http://models.invalid/v1/chat/completions "),
        "{head}"
    );
}

#[test]
fn a_dialect_is_served_without_a_model() {
    require!(UserNamespaces);
    for dialect in ["e2b", "jupyter", "librechat", "open_terminal", "opensandbox"] {
        let server = serve(&format!("dialects: {{{dialect}: {{}}}}"), &[], &[]);
        let (status, models) = server.get("/v1/models");
        assert_eq!((status, &models["data"]), (200, &json!([])), "{dialect}");
    }
}

#[test]
fn without_a_model_it_serves_sandboxes_and_says_that_it_has_none() {
    require!(UserNamespaces);
    let server = serve(
        "providers: {m: {type: chat, base_url: 'http://127.0.0.1:1/v1', models: [m]}}",
        &["--no-model"],
        &[],
    );
    let (status, models) = server.get("/v1/models");
    assert_eq!((status, &models["data"]), (200, &json!([])));
    let (status, error) = server.respond(&json!({"model": "m", "input": "hi"}));
    assert_eq!(status, 404);
    assert_eq!(
        error["error"]["message"],
        "there is no model `m`: this server has none, it gives sandboxes only"
    );
    let (status, session) = server.post("/v1/sessions", &json!({}));
    assert_eq!(status, 201, "{session}");
    let cell = format!("/v1/sessions/{}/cells", session["id"].as_str().unwrap());
    let (status, ran) = server.post(&cell, &json!({"code": "6 * 7"}));
    assert_eq!((status, &ran["outputs"][0]["value"]), (200, &json!(42)), "{ran}");
}

#[test]
fn what_another_process_builds_is_listed_until_it_is_built() {
    require!(UserNamespaces);
    let server = serve("", &["--no-model"], &[]);
    let spec = server.folder.path().join("listed.toml");
    std::fs::write(&spec, "name = \"listed\"\npackages = []\n").unwrap();
    let stage = || {
        let (_, server) = server.get("/v1/server");
        let builds = server["builds"].as_array().unwrap();
        let ours = builds.iter().find(|build| build["what"] == "image listed")?;
        ours["stage"].as_str().map(str::to_owned)
    };
    let building = Cli::new(["image".as_ref(), "build".as_ref(), spec.as_os_str()])
        .limit(PATIENCE)
        .start()
        .unwrap();
    let last = || stage().as_deref() == Some("compiling and trying the image");
    let ended = building.until("in its last stage", last).unwrap().finish();
    assert_eq!(ended.unwrap().code(), 0);
    assert_eq!(stage(), None);
    let removed = Cli::new(["image", "remove", "listed"]).run().unwrap();
    assert_eq!(removed.code(), 0, "{}", removed.stderr);
}
