//! Uploaded files, and files of containers.

use cellblock_gateway::records::Records;
use serde_json::{Value, json};

use crate::support::{bench, block_on, logs, paths, start};

#[test]
fn a_file_is_uploaded_told_and_deleted_in_the_form_that_clients_know() {
    block_on(async {
        let bench = bench().await.of("fred");
        let fields = [
            ("purpose", "user_data"),
            ("expires_after[anchor]", "created_at"),
            ("expires_after[seconds]", "3600"),
        ];
        let made = bench.upload("files", "größe.csv", b"a,b\n", &fields).await.ok();
        let id = made["id"].as_str().unwrap();
        assert!(id.starts_with("file-"));
        let created = made["created_at"].as_u64().unwrap();
        let expected = json!({
            "id": id, "object": "file", "bytes": 4, "created_at": created, "expires_at": created + 3600,
            "filename": "größe.csv", "purpose": "user_data", "status": "processed", "status_details": null,
        });
        assert_eq!(made, expected);
        assert_eq!(bench.get(&format!("files/{id}")).await.ok(), expected);
        let answer = bench
            .request("GET", &format!("files/{id}/content"))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.headers()["content-type"], "text/csv");
        assert_eq!(
            answer.headers()["content-disposition"],
            "attachment; filename*=UTF-8''gr%C3%B6%C3%9Fe.csv"
        );
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        assert_eq!(answer.bytes().await.unwrap(), &b"a,b\n"[..]);

        let other = bench
            .upload("files", "x.png", b"png", &[("purpose", "vision")])
            .await
            .ok();
        assert_eq!(other["expires_at"], Value::Null);
        let list = bench.get("files?purpose=vision").await.ok();
        assert_eq!(
            (list["data"].as_array().unwrap().len(), &list["data"][0]),
            (1, &other)
        );
        let list = bench.get("files?limit=1&order=asc").await.ok();
        assert_eq!(
            (&list["data"][0]["id"], &list["has_more"]),
            (&json!(id), &json!(true))
        );

        let gone = bench.delete(&format!("files/{id}")).await.ok();
        assert_eq!(gone, json!({"id": id, "object": "file", "deleted": true}));
        assert_eq!(
            bench.get(&format!("files/{id}")).await.error(),
            (404, "file_not_found")
        );
        assert_eq!(
            bench.delete(&format!("files/{id}")).await.error(),
            (404, "file_not_found")
        );
    });
}

#[test]
fn an_upload_that_cannot_be_kept_is_refused_by_name() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.files.max_upload = 1000;
        })
        .await;
        let purpose = ("purpose", "user_data");
        let anchor = ("expires_after[anchor]", "created_at");
        for (name, bytes, fields, code) in [
            ("a", &[0; 1001][..], &[purpose][..], "too_large"),
            ("a", b"a", &[], "missing_required_parameter"),
            ("a", b"a", &[("purpose", "fun")], "invalid_value"),
            (
                "a",
                b"a",
                &[purpose, anchor, ("expires_after[seconds]", "60")],
                "invalid_value",
            ),
            ("a", b"a", &[purpose, anchor], "invalid_value"),
            ("..", b"a", &[purpose], "invalid_value"),
        ] {
            let refused = bench.upload("files", name, bytes, fields).await;
            let status = if code == "too_large" { 413 } else { 400 };
            assert_eq!(refused.error(), (status, code), "{fields:?}");
        }
        assert_eq!(
            bench.upload("files", "a", &[0; 1000], &[purpose]).await.status,
            200
        );
        let plain = bench.post("files", &json!({"file": "a"})).await;
        assert_eq!(plain.error(), (400, "invalid_form"));
        let cut = bench
            .request("POST", "files")
            .header("content-type", "multipart/form-data; boundary=cut");
        let cut =
            cut.body("--cut\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nabc");
        assert_eq!(cut.send().await.unwrap().status(), 400);
        let none = bench
            .request("POST", "files")
            .header("content-type", "multipart/form-data; boundary=cut");
        let none = none.body(
            "--cut\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n--cut--\r\n",
        );
        assert_eq!(none.send().await.unwrap().status(), 400);
        assert_eq!(bench.get("files").await.ok()["data"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn files_of_a_container_come_from_clients_and_from_code_and_go() {
    block_on(async {
        let bench = bench().await;
        let container = bench.container().await;
        let path = format!("containers/{container}/files");
        let form = bench.upload(&path, "form.txt", b"form", &[]).await.ok();
        let upload = bench.file("upload.txt", b"upload").await;
        let by_id = bench.post(&path, &json!({"file_id": upload})).await.ok();
        assert_eq!(
            (&by_id["path"], &by_id["bytes"]),
            (&json!("/mnt/data/upload.txt"), &json!(6))
        );
        let read = "print(open('/mnt/data/form.txt').read(), open('upload.txt').read())\n\
                    open('made.txt', 'w').write('made');";
        let call = bench.run(&container, read).await;
        assert!(logs(&call).starts_with("form upload"), "{call}");
        // Files of the user are not told as news.
        assert!(
            logs(&call).contains("made.txt (4 bytes)") && !logs(&call).contains("form.txt"),
            "{call}"
        );
        let listed = bench.get(&format!("{path}?order=asc")).await.ok();
        assert_eq!(
            paths(&listed),
            [
                ("/mnt/data/form.txt", "user"),
                ("/mnt/data/upload.txt", "user"),
                ("/mnt/data/made.txt", "assistant"),
            ]
        );
        // One that comes while the sandbox lives is there, too; one that goes is gone from it.
        bench.upload(&path, "late.txt", b"late", &[]).await.ok();
        let form = form["id"].as_str().unwrap();
        let gone = bench.delete(&format!("{path}/{form}")).await.ok();
        assert_eq!(
            gone,
            json!({"id": form, "object": "container.file.deleted", "deleted": true})
        );
        let call = bench
            .run(&container, "import os; print(sorted(os.listdir('/mnt/data')))")
            .await;
        assert_eq!(logs(&call).trim(), "['late.txt', 'made.txt', 'upload.txt']");
        assert_eq!(
            bench.get(&format!("{path}/{form}")).await.error(),
            (404, "container_file_not_found")
        );
        let keepers = bench
            .gateway
            .interpreter()
            .unwrap()
            .store()
            .owners()
            .await
            .unwrap();
        let kept = |id: &str| {
            keepers
                .iter()
                .any(|keeper| keeper.name == id && keeper.pins.len() == 1)
        };
        assert!(kept(&upload) && kept(by_id["id"].as_str().unwrap()) && !kept(form));
        // The upload may go; the container has its own.
        bench.delete(&format!("files/{upload}")).await.ok();
        let id = by_id["id"].as_str().unwrap();
        assert_eq!(bench.content(&format!("{path}/{id}/content")).await, b"upload");
        for (body, status) in [
            (json!({"file_id": "file-none"}), 404),
            (json!({}), 400),
            (json!([]), 400),
        ] {
            assert_eq!(bench.post(&path, &body).await.status, status, "{body}");
        }
    });
}
