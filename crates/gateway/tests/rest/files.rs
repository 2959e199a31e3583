//! Inputs, files and datasets.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Api, block_on};

#[test]
fn inputs_are_bound_as_values_bytes_and_artifacts() {
    block_on(async {
        let api = Api::of("inputs").await;
        let session = api
            .session(&json!({"inputs": {"given": {"value": {"a": [1, null]}}}}))
            .await;
        assert_eq!(
            api.run(&session, "given").await["outputs"][0]["value"],
            "{'a': [1, None]}"
        );

        let path = format!("{session}/inputs/sales");
        let (status, bound) = api.put(&path, "text/csv", b"a,b\n1,2\n3,4\n".to_vec()).await;
        assert_eq!(
            (status, &bound["format"], &bound["bytes"]),
            (StatusCode::OK, &json!("csv"), &json!(12))
        );
        assert_eq!(
            api.run(&session, "int(sales.b.sum())").await["outputs"][0]["value"],
            6
        );

        assert_eq!(bound["detected"], json!([]));
        let export = "name;amount\nM\u{fc}ller;1.234,50\n"
            .chars()
            .map(|it| u8::try_from(it).unwrap())
            .collect();
        let (_, bound) = api
            .put(&format!("{session}/inputs/export"), "text/csv", export)
            .await;
        assert_eq!(
            bound["detected"],
            json!([
                "encoding: Windows-1252, guessed from its bytes, as it is not UTF-8",
                "separator: semicolon (`;`)",
                "decimal mark: comma",
                "thousands mark in `amount`: point"
            ])
        );
        assert_eq!(
            api.run(&session, "float(export.amount[0])").await["outputs"][0]["value"],
            1234.5
        );

        let (status, _) = api
            .put(
                &format!("{session}/inputs/text?format=bytes"),
                "text/plain",
                b"abc".to_vec(),
            )
            .await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(api.run(&session, "text").await["outputs"][0]["value"], "b'abc'");

        // A number of any size arrives as it was sent.
        let large = br#"{"value": [123456789012345678901234567890, -9223372036854775809]}"#;
        let path = format!("{session}/inputs/large");
        let (status, _) = api.put(&path, "application/json", large.to_vec()).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            api.run(&session, "large == [123456789012345678901234567890, -2**63 - 1]")
                .await["outputs"][0]["value"],
            true
        );

        let table = api.run(&session, "sales").await;
        let sha256 = table["artifacts"][0]["sha256"].as_str().unwrap().to_owned();
        let body = json!({"artifact": sha256, "format": "parquet"}).to_string();
        let (status, _) = api
            .put(
                &format!("{session}/inputs/again"),
                "application/json",
                body.into(),
            )
            .await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            api.run(&session, "again.equals(sales)").await["outputs"][0]["value"],
            true
        );
        // They outlive the variables.
        api.post(&format!("{session}/reset"), &json!({})).await;
        assert_eq!(
            api.run(&session, "len(again) + len(text)").await["outputs"][0]["value"],
            5
        );
        api.end(&session).await;
    });
}

#[test]
fn files_go_up_and_come_down_as_they_are() {
    block_on(async {
        let api = Api::of("files").await;
        let session = api.session(&json!({})).await;
        let bytes: Vec<u8> = (0..=255_u8).cycle().take(700_000).collect();
        let path = format!("{session}/files/workspace/a%20b/c.bin");
        let (status, written) = api.put(&path, "application/octet-stream", bytes.clone()).await;
        assert_eq!(
            (status, &written["path"]),
            (StatusCode::OK, &json!("/workspace/a b/c.bin"))
        );
        let shown = api
            .run(
                &session,
                "import hashlib\nhashlib.sha256(open('a b/c.bin','rb').read()).hexdigest()[:8]\n\
                 open('/tmp/output/x.html','w').write('<b>')",
            )
            .await;
        assert_eq!(shown["outcome"], "completed");

        let (_, listed) = api.get(&format!("{session}/files")).await;
        let paths: Vec<_> = listed["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["path"].as_str().unwrap())
            .collect();
        assert_eq!(paths, ["/workspace/a b/c.bin", "/tmp/output/x.html"]);
        assert_eq!(listed["data"][0]["bytes"], 700_000);

        let response = api.raw(&path).await;
        assert_eq!(response.headers()["content-length"], "700000");
        let tag = response.headers()["etag"].clone();
        assert_eq!(response.bytes().await.unwrap(), bytes);
        let again = api.request(Method::GET, &path).header("if-none-match", &tag);
        assert_eq!(again.send().await.unwrap().status(), StatusCode::NOT_MODIFIED);
        let page = api.raw(&format!("{session}/files/tmp/output/x.html")).await;
        assert_eq!(page.headers()["content-disposition"], "attachment");
        assert_eq!(page.headers()["x-content-type-options"], "nosniff");

        assert_eq!(api.delete(&path).await.0, StatusCode::OK);
        let (status, gone) = api.get(&path).await;
        assert_eq!(
            (status, &gone["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!("file_not_found"))
        );
        api.run(&session, "import os\nos.symlink('/etc/passwd', 'link')")
            .await;
        let (status, refused) = api.get(&format!("{session}/files/workspace/link")).await;
        assert_eq!(
            (status, &refused["error"]["code"]),
            (StatusCode::BAD_REQUEST, &json!("file_symlink"))
        );
        let (status, large) = api
            .put(&path, "application/octet-stream", vec![0; (1 << 20) + 1])
            .await;
        assert_eq!(
            (status, &large["error"]["code"]),
            (StatusCode::PAYLOAD_TOO_LARGE, &json!("too_large"))
        );
        api.end(&session).await;
    });
}

#[test]
fn a_dataset_is_there_before_and_after_the_sandbox_is_made() {
    block_on(async {
        let api = Api::of("datasets").await;
        let session = api.session(&json!({"toolset": "workbench"})).await;
        let path = format!("{session}/datasets?name=sales.csv");
        let add = async |path: &str, text: &'static str| {
            let response = api.request(Method::POST, path).body(text).send().await.unwrap();
            let status = response.status();
            let mounted: serde_json::Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            (status, mounted)
        };
        let (status, mounted) = add(&path, "a,b\n1,2\n").await;
        assert_eq!(
            (status, &mounted["path"]),
            (StatusCode::CREATED, &json!("/tmp/data/sales.csv")),
            "{mounted}"
        );
        let read = "open('/tmp/data/sales.csv').read()";
        assert_eq!(api.run(&session, read).await["outputs"][0]["value"], "a,b\n1,2\n");
        let (_, second) = add(&path, "c\n").await;
        assert_eq!(second["path"], "/tmp/data/sales_2.csv");
        for (name, content) in [("sales", "a,b\n1,2\n"), ("sales_2", "c\n")] {
            let file = api.raw(&format!("{session}/files/tmp/data/{name}.csv")).await;
            assert_eq!(file.text().await.unwrap(), content);
        }
        assert_eq!(
            api.run(&session, "open('/tmp/data/sales_2.csv').read()").await["outputs"][0]["value"],
            "c\n"
        );
        let (_, listed) = api.get(&format!("{session}/datasets")).await;
        assert_eq!(listed["data"].as_array().unwrap().len(), 2);
        let (status, refused) = api
            .put(
                &format!("{session}/files/tmp/data/sales.csv"),
                "text/csv",
                b"x".to_vec(),
            )
            .await;
        assert_eq!(
            (status, &refused["error"]["param"]),
            (StatusCode::BAD_REQUEST, &json!("path"))
        );
        api.end(&session).await;
    });
}
