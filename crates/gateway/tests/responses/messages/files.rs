//! Files in Anthropic's form: uploads, files that code made, and files for code.

use serde_json::{Value, json};

use super::{ask, blocks, tool};
use crate::market::{read, says};
use crate::support::{HttpAnswer, Server, block_on, runs, scripted};

async fn files(server: &Server, method: &str, path: &str) -> HttpAnswer {
    let request = server.request(method, path);
    server
        .send(request.header("anthropic-version", "2023-06-01"))
        .await
}

async fn upload(server: &Server, name: &str, content: &str) -> Value {
    let head = format!("content-disposition: form-data; name=\"file\"; filename=\"{name}\"");
    let form = format!("--cut\r\n{head}\r\n\r\n{content}\r\n--cut--\r\n");
    let request = server
        .request("POST", "files")
        .header("anthropic-beta", "files-api-2025-04-14")
        .header("content-type", "multipart/form-data; boundary=cut");
    server.send(request.body(form)).await.ok()
}

#[test]
fn an_upload_is_described_listed_and_deleted() {
    block_on(async {
        let (server, _) = scripted([]).await;
        let first = upload(&server, "a.csv", "x\n1\n").await;
        assert_eq!(
            (
                &first["type"],
                &first["filename"],
                &first["mime_type"],
                &first["size_bytes"]
            ),
            (&json!("file"), &json!("a.csv"), &json!("text/csv"), &json!(4))
        );
        assert_eq!(first["downloadable"], true);
        assert!(first["created_at"].as_str().unwrap().ends_with('Z'), "{first}");
        let second = upload(&server, "b.txt", "b").await;
        let id = |file: &Value| file["id"].as_str().unwrap().to_owned();
        let listed = files(&server, "GET", "files?limit=1").await.ok();
        assert_eq!(
            (&listed["data"][0], &listed["has_more"], &listed["last_id"]),
            (&second, &json!(true), &second["id"])
        );
        for next in [
            format!("files?after_id={}", id(&second)),
            format!("files?page={}", listed["next_page"].as_str().unwrap()),
        ] {
            let rest = files(&server, "GET", &next).await.ok();
            assert_eq!(rest["data"], json!([first]));
            assert_eq!(
                (&rest["has_more"], &rest["next_page"]),
                (&json!(false), &Value::Null)
            );
        }
        let path = format!("files/{}", id(&first));
        assert_eq!(files(&server, "GET", &path).await.ok(), first);
        // The same file for a client of OpenAI's API.
        assert_eq!(server.get(&path).await.ok()["object"], "file");
        let deleted = files(&server, "DELETE", &path).await.ok();
        assert_eq!(deleted, json!({"id": first["id"], "type": "file_deleted"}));
        let gone = files(&server, "GET", &path).await;
        assert_eq!(
            (gone.status, &gone.body["error"]["type"]),
            (404, &json!("not_found_error"))
        );
        assert_eq!(
            files(&server.of("eve"), "GET", &format!("files/{}", id(&second)))
                .await
                .status,
            404
        );
    });
}

#[test]
fn code_reads_an_uploaded_file_and_its_own_file_is_downloaded() {
    block_on(async {
        let code = "text = open('/mnt/data/in.csv').read()\nopen('out.txt', 'w').write(text.upper())\nNone";
        let (server, provider) = scripted([runs("c1", code), says("Done."), says("Read.")]).await;
        let file = upload(&server, "in.csv", "abc").await;
        let upload = json!({"type": "container_upload", "file_id": file["id"]});
        let messages = json!([{"role": "user", "content": [{"type": "text", "text": "go"}, upload]}]);
        let message = ask(
            &server,
            json!({"tools": [tool("20250522")], "messages": messages}),
        )
        .await;
        let result = &blocks(&message, "code_execution_tool_result")[0]["content"];
        assert_eq!(result["return_code"], 0, "{message}");
        assert_eq!(result["content"][0]["type"], "code_execution_output");
        let id = result["content"][0]["file_id"].as_str().unwrap();
        let made = files(&server, "GET", &format!("files/{id}")).await.ok();
        assert_eq!(
            (&made["filename"], &made["size_bytes"]),
            (&json!("out.txt"), &json!(3))
        );
        let content = server.request("GET", &format!("files/{id}/content"));
        let content = content
            .header("anthropic-version", "2023-06-01")
            .send()
            .await
            .unwrap();
        assert_eq!(content.text().await.unwrap(), "ABC");
        assert_eq!(
            files(&server.of("eve"), "GET", &format!("files/{id}/content"))
                .await
                .status,
            404
        );

        // A text document is read by the model itself.
        let source = json!({"type": "text", "media_type": "text/plain", "data": "secret"});
        let document = json!({"type": "document", "title": "T", "source": source});
        let messages = json!([{"role": "user", "content": [document]}]);
        ask(&server, json!({ "messages": messages })).await;
        let items = json!(provider.asked()[2].items);
        assert!(items.to_string().contains("secret"), "{items}");
        assert!(read(&provider, 1)[0].contains("out.txt"));
        files(&server, "DELETE", &format!("files/{id}")).await.ok();
        assert_eq!(files(&server, "GET", &format!("files/{id}")).await.status, 404);
    });
}
