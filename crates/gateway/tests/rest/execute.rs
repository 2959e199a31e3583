//! The sandbox server of one call.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Api, block_on};

async fn execute(request: &Value) -> Value {
    let (status, answer) = Api::of("execute").await.post("/execute", request).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

#[test]
fn a_program_ends_with_its_own_code() {
    block_on(async {
        let answer = execute(&json!({"code": "print(6 * 7)"})).await;
        let mut fields: Vec<_> = answer.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(
            fields,
            ["execution_time_ms", "exit_code", "status", "stderr", "stdout"]
        );
        assert_eq!(answer["status"], "success");
        assert_eq!(
            (&answer["stdout"], &answer["stderr"]),
            (&json!("42\n"), &json!(""))
        );
        assert_eq!(answer["exit_code"], 0);
        assert!(answer["execution_time_ms"].is_u64());

        let raised = execute(&json!({"code": "raise ValueError('no')"})).await;
        assert_eq!(
            (&raised["status"], &raised["exit_code"]),
            (&json!("error"), &json!(1))
        );
        assert!(
            raised["stderr"].as_str().unwrap().ends_with("ValueError: no\n"),
            "{raised}"
        );
        let left = execute(&json!({"code": "import sys\nsys.exit(3)"})).await;
        assert_eq!(
            (&left["status"], &left["exit_code"]),
            (&json!("error"), &json!(3))
        );
        let main = execute(&json!({"code": "print(__name__, __file__)"})).await;
        assert_eq!(main["stdout"], "__main__ /workspace/script.py\n");
    });
}

#[test]
fn a_timeout_keeps_output_and_ends_all_processes() {
    block_on(async {
        let code = "import subprocess, sys, time\n\
                    subprocess.Popen(['sleep', '1000'])\n\
                    print('partial', flush=True)\ntime.sleep(1000)";
        let answer = execute(&json!({"code": code, "timeout_seconds": 0.8})).await;
        assert_eq!(
            (&answer["status"], &answer["exit_code"]),
            (&json!("error"), &json!(-1))
        );
        assert_eq!(answer["stdout"], "partial\n");
        assert_eq!(answer["stderr"], "execution timed out after 0.8 seconds");
    });
}

#[test]
fn files_go_in_and_come_out_with_their_folders() {
    block_on(async {
        let code = "import os\ntext = open('in.csv').read()\nout = os.environ['OUTPUT_DIR']\n\
                    os.makedirs(out + '/sub')\nopen(out + '/sub/a.txt', 'w').write(text.upper())\n\
                    open('output/b.bin', 'wb').write(bytes(range(256)))\n\
                    open('/tmp/output/c.txt', 'w').write('c')\nopen('not_delivered', 'w').write('x')";
        let answer =
            execute(&json!({"code": code, "files": {"some/where/in.csv": STANDARD.encode("x,y")}})).await;
        assert_eq!(answer["status"], "success", "{answer}");
        let produced = answer["files_produced"].as_object().unwrap();
        let names: Vec<_> = produced.keys().map(String::as_str).collect();
        assert_eq!(names, ["b.bin", "c.txt", "sub/a.txt"]);
        let bytes = |name: &str| STANDARD.decode(produced[name].as_str().unwrap()).unwrap();
        assert_eq!(bytes("sub/a.txt"), b"X,Y");
        assert_eq!(bytes("b.bin"), (0..=255).collect::<Vec<u8>>());
        assert_eq!(answer["files_skipped"], Value::Null);
    });
}

#[test]
fn a_file_that_is_too_large_is_named_and_not_delivered() {
    block_on(async {
        let code = "open('output/large', 'wb').write(bytes(11 << 20))\nopen('output/small', 'w').write('x')";
        let answer = execute(&json!({"code": code})).await;
        assert_eq!(answer["files_produced"], json!({"small": "eA=="}));
        let skipped = json!([{"path": "/workspace/output/large",
            "reason": "it has 11534336 bytes, 10485760 can be delivered"}]);
        assert_eq!(answer["files_skipped"], skipped);
    });
}

#[test]
fn a_flood_is_cut_in_the_middle() {
    block_on(async {
        let code = "import sys\nsys.stdout.write('a' * 8_000_000 + 'b' * 8_000_000)";
        let answer = execute(&json!({"code": code})).await;
        let stdout = answer["stdout"].as_str().unwrap();
        assert!(stdout.len() <= 10_000_000 && stdout.starts_with("aaa") && stdout.ends_with("bbb"));
        assert!(stdout.contains(" of 16000000 bytes left out …]"), "it is told");
    });
}

#[test]
fn a_program_sees_nothing_of_the_server() {
    block_on(async {
        let code = "import os\nprint(sorted(k for k in os.environ if 'CELLBLOCK' in k or 'CARGO' in k))\n\
                    print(os.getcwd())";
        let answer = execute(&json!({"code": code})).await;
        assert_eq!(answer["stdout"], "[]\n/workspace\n", "{answer}");
        // Nothing is left of one for the next.
        execute(&json!({"code": "open('/tmp/left', 'w').write('x')"})).await;
        let next = execute(&json!({"code": "import os\nprint(os.path.exists('/tmp/left'))"})).await;
        assert_eq!(next["stdout"], "False\n");
    });
}

#[test]
fn packages_are_installed_and_a_failure_is_an_answer() {
    block_on(async {
        let answer = execute(
            &json!({"code": "import emoji\nprint(emoji.__name__)", "requirements": ["emoji==2.14.0"]}),
        )
        .await;
        assert_eq!(answer["stdout"], "emoji\n", "{answer}");
        let failed =
            execute(&json!({"code": "print(1)", "requirements": ["no-such-package-of-cellblock"]})).await;
        assert_eq!(
            (&failed["status"], &failed["exit_code"]),
            (&json!("error"), &json!(-1))
        );
        assert!(
            failed["stderr"]
                .as_str()
                .unwrap()
                .starts_with("package installation failed: "),
            "{failed}"
        );
        assert_eq!(failed["stdout"], "", "the code is not run");
    });
}

#[test]
fn invalid_requests_are_reported_in_the_original_form() {
    block_on(async {
        let api = Api::of("execute").await;
        for (body, message) in [
            ("{", "invalid JSON: "),
            ("{}", "code is required"),
            (
                r#"{"code": "1", "files": {"a": "*"}}"#,
                "files: \"a\" is not valid base64: ",
            ),
            (r#"{"code": "1", "timeout_seconds": "soon"}"#, "invalid JSON: "),
        ] {
            let response = api
                .request(Method::POST, "/execute")
                .body(body)
                .send()
                .await
                .unwrap();
            assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{body}");
            let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert!(answer["error"].as_str().unwrap().starts_with(message), "{answer}");
        }
        let large = json!({"code": "#".repeat(11 << 20)});
        let (status, _) = api.post("/execute", &large).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    });
}

#[test]
fn health_has_the_fields_of_the_original() {
    block_on(async {
        let (status, health) = Api::of("execute").await.get("/health").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            (&health["status"], &health["mode"]),
            (&json!("healthy"), &json!("python"))
        );
        assert!(
            health["runtime_version"]
                .as_str()
                .unwrap()
                .starts_with("Python 3.")
        );
        assert_eq!(health["capacity"], 16);
        assert!(health["current_load"].is_u64() && health["uptime_seconds"].is_u64());
        assert_eq!(health.as_object().unwrap().len(), 6);
    });
}
