//! Notebooks that a person opens and runs.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Chat, server};
use crate::support::{RequestExt, block_on};

/// Writes a notebook of these cells of code, and opens it.
async fn open(chat: &Chat, path: &str, cells: &[&str]) -> String {
    let cells: Vec<_> = cells
        .iter()
        .map(|source| {
            json!({"cell_type": "code", "source": source, "metadata": {}, "outputs": [],
            "execution_count": null})
        })
        .collect();
    let file = json!({"cells": cells, "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4,
        "nbformat_minor": 5});
    chat.done("/files/write", json!({"path": path, "content": file.to_string()}))
        .await;
    let opened = chat.done("/notebooks", json!({ "path": path })).await;
    assert_eq!(
        (&opened["kernel"], &opened["status"]),
        (&json!("python3"), &json!("ready"))
    );
    opened["id"].as_str().unwrap().to_owned()
}

async fn run(chat: &Chat, id: &str, cell: i64) -> Value {
    chat.done(&format!("/notebooks/{id}/execute"), json!({"cell_index": cell}))
        .await
}

#[test]
fn cells_keep_state_and_their_outputs_are_saved_in_the_file() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let path = "/workspace/notes/a.ipynb";
        let id = open(&chat, path, &["x = 41", "print('hi')\nx + 1", "1 / 0"]).await;
        assert_eq!(
            run(&chat, &id, 0).await,
            json!({"status": "ok", "execution_count": 1, "outputs": []})
        );
        let second = run(&chat, &id, 1).await;
        let stream = json!({"output_type": "stream", "name": "stdout", "text": "hi\n"});
        let result = json!({"output_type": "execute_result", "data": {"text/plain": "42"},
            "metadata": {}, "execution_count": 2});
        assert_eq!(second["outputs"], json!([stream, result]));
        let failed = run(&chat, &id, 2).await;
        assert_eq!(
            (&failed["status"], &failed["outputs"][0]["ename"]),
            (&json!("error"), &json!("ZeroDivisionError"))
        );
        let replaced = json!({"cell_index": 2, "source": "import os; os.getcwd()"});
        let again = chat.done(&format!("/notebooks/{id}/execute"), replaced).await;
        assert_eq!(
            again["outputs"][0]["data"]["text/plain"], "'/workspace/notes'",
            "{again}"
        );
        let read = chat.read(&format!("/files/read?path={path}")).await;
        let saved: Value = serde_json::from_str(read["content"].as_str().unwrap()).unwrap();
        assert_eq!(saved["cells"][1]["outputs"], second["outputs"]);
        assert_eq!(saved["cells"][2]["source"], "import os; os.getcwd()");
        let about = chat.read(&format!("/notebooks/{id}")).await;
        assert_eq!(
            (&about["path"], &about["status"]),
            (&json!(path), &json!("ready"))
        );
    });
}

#[test]
fn notebooks_and_run_python_have_variables_of_their_own() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        chat.done("/python", json!({"code": "x = 'model'"})).await;
        let [a, b] = [
            open(&chat, "a.ipynb", &["x = 'a'", "x"]).await,
            open(&chat, "b.ipynb", &["'x' in globals()"]).await,
        ];
        run(&chat, &a, 0).await;
        let other = run(&chat, &b, 0).await;
        assert_eq!(other["outputs"][0]["data"]["text/plain"], "False", "{other}");
        let models = chat.done("/python", json!({"code": "x"})).await;
        assert!(models["output"].as_str().unwrap().contains("model"), "{models}");
        let kept = run(&chat, &a, 1).await;
        assert_eq!(kept["outputs"][0]["data"]["text/plain"], "'a'", "{kept}");
        // Opened again, it begins anew.
        let path = format!("/notebooks/{a}");
        assert_eq!(chat.delete(&path).await.1, json!({"status": "stopped"}));
        assert_eq!(chat.get(&path).await.0, 404);
        let opened = chat.done("/notebooks", json!({"path": "a.ipynb"})).await;
        let gone = run(&chat, opened["id"].as_str().unwrap(), 1).await;
        assert_eq!(gone["outputs"][0]["ename"], "NameError", "{gone}");
    });
}

#[test]
fn a_notebook_that_cannot_run_says_why() {
    block_on(async {
        let server = server().await;
        let chat = Chat::new(&server);
        let id = open(&chat, "a.ipynb", &["1"]).await;
        let path = format!("/notebooks/{id}/execute");
        for cell in [-1, 1] {
            let (status, wrong) = chat.post(&path, json!({"cell_index": cell})).await;
            assert_eq!(status, 400, "{wrong}");
            let detail = wrong["detail"].as_str().unwrap();
            assert!(detail.contains("which has 1 cells"), "{detail}");
        }
        let other = Chat {
            user: "user-2",
            ..chat.clone()
        };
        assert_eq!(other.post(&path, json!({"cell_index": 0})).await.0, 404);
        assert_eq!(
            chat.post("/notebooks", json!({"path": "none.ipynb"})).await.0,
            404
        );
        for (content, word) in [
            (json!("{"), "format 4"),
            (json!("{\"worksheets\": []}"), "format 4"),
            (
                json!(
                    "{\"cells\": [], \"metadata\": {\"kernelspec\": {\"name\": \"ir\", \"language\": \"R\"}}}"
                ),
                "run Python",
            ),
        ] {
            chat.done("/files/write", json!({"path": "b.ipynb", "content": content}))
                .await;
            let (status, wrong) = chat.post("/notebooks", json!({"path": "b.ipynb"})).await;
            assert_eq!(status, 400, "{wrong}");
            assert!(wrong["detail"].as_str().unwrap().contains(word), "{wrong}");
        }
        let config = chat.request(Method::GET, "/api/config").sent().await;
        let config: Value = config.json().await.unwrap();
        assert_eq!(config["features"]["notebooks"], true);
    });
}
