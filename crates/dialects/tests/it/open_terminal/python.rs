//! `run_python`, the operation that is our own.

use reqwest::Method;
use serde_json::json;

use super::{Chat, server};
use crate::support::{RequestExt, block_on};

#[test]
fn variables_stay_and_the_last_expression_is_shown() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        chat.done("/python", json!({"code": "x = 20"})).await;
        let answer = chat.done("/python", json!({"code": "print('hi')\nx + 1"})).await;
        assert_eq!(answer["outcome"], "completed", "{answer}");
        assert_eq!(answer["stdout"], "hi\n", "{answer}");
        assert!(answer["output"].as_str().unwrap().contains("21"), "{answer}");
    });
}

#[test]
fn an_error_names_the_line_of_the_code() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let answer = chat.done("/python", json!({"code": "a = 1\n\n1 / 0"})).await;
        assert_eq!(answer["outcome"], "raised");
        let error = json!({"type": "ZeroDivisionError", "message": "division by zero", "line": 3});
        assert_eq!(answer["error"], error);
        assert!(answer["output"].as_str().unwrap().contains("1 / 0"), "{answer}");
        let (status, wrong) = chat.post("/python", json!({"code": "1", "timeout": 0})).await;
        assert_eq!(status, 400);
        assert!(wrong["detail"].as_str().unwrap().contains("timeout"), "{wrong}");
    });
}

#[test]
fn a_chart_becomes_a_picture_that_can_be_read_and_shown() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let code = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('Two points')\nplt.show()";
        let answer = chat.done("/python", json!({ "code": code })).await;
        let image = &answer["images"][0];
        let path = image["path"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(
            path.starts_with("/workspace/outputs/") && path.contains(".png"),
            "{path}"
        );
        let read = chat.request(Method::GET, &format!("/files/read?path={path}"));
        let read = read.sent().await;
        assert_eq!(read.headers()["content-type"], "image/png");
        assert!(read.bytes().await.unwrap().starts_with(b"\x89PNG"));
        let shown = chat.read(&format!("/files/display?path={path}")).await;
        assert_eq!(shown["exists"], true);
    });
}
