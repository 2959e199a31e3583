//! Files and pictures in messages.

use cellblock_agent::provider::scripted::ScriptedAnswer;
use cellblock_gateway::records::Records;
use serde_json::{Value, json};

use crate::support::{Bench, HttpAnswer, bench, block_on, logs, runs, start};

/// The smallest picture there is.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and more";

async fn plain(bench: &Bench, model: &str, part: &Value) -> HttpAnswer {
    let input = json!([{"role": "user", "content": [{"type": "input_text", "text": "See:"}, part]}]);
    bench
        .post("responses", &json!({"model": model, "input": input}))
        .await
}

#[test]
fn a_file_of_a_message_is_in_the_container_and_the_model_is_told_where() {
    block_on(async {
        let bench = bench().await;
        let table = bench.file("table.csv", b"a\n1\n").await;
        let answers = [
            runs("c", "print(open('table.csv').read(), open('table-2.csv').read())"),
            ScriptedAnswer::new().text("ok"),
        ];
        let script = bench.script("attach", answers);
        let input = json!([{"role": "user", "content": [
            {"type": "input_file", "file_id": table},
            {"type": "input_file", "filename": "table.csv", "file_data": "data:text/csv;base64,Yg=="},
            {"type": "input_text", "text": "Compare."},
        ]}]);
        let response = bench
            .respond("attach", &input, &json!({"type": "auto"}))
            .await
            .ok();
        assert!(logs(&response["output"][0]).starts_with("a\n1\n b"), "{response}");
        let asked = json!(script.asked()[0].items);
        assert_eq!(
            asked[0]["content"][0]["text"],
            "(The user's file `table.csv` of 4 bytes is at `/mnt/data/table.csv`.)"
        );
        assert_eq!(
            asked[0]["content"][1]["text"],
            "(The user's file `table.csv` of 1 bytes is at `/mnt/data/table-2.csv`.)"
        );
        // What code makes of a file stays, though the conversation still has the file as it was.
        let container = response["output"][0]["container_id"].as_str().unwrap();
        bench
            .run(container, "open('table.csv', 'w').write('changed');")
            .await;
        bench.script(
            "attach",
            [
                runs("c", "print(open('table.csv').read())"),
                ScriptedAnswer::new().text("ok"),
            ],
        );
        let again = bench.respond("attach", &input, &json!(container)).await.ok();
        assert_eq!(logs(&again["output"][0]).trim(), "changed");
    });
}

#[test]
fn without_the_interpreter_text_is_read_to_the_model_and_pictures_are_shown() {
    block_on(async {
        let bench = start(Records::in_memory().unwrap(), |options| {
            options.files.max_inline_text = 10;
            options.files.max_image = 100;
        })
        .await;
        let text = bench.file("note.txt", "größe".as_bytes()).await;
        let picture = bench.file("p.bin", PNG).await;
        let url = "data:image/png;base64,iVBORw0KGgogYW5kIG1vcmU=";
        for (part, read) in [
            (
                json!({"type": "input_file", "file_id": text}),
                json!({"type": "input_text", "text": "The user's file `note.txt`:\n\ngröße"}),
            ),
            (
                json!({"type": "input_image", "file_id": picture, "detail": "low"}),
                json!({"type": "input_image", "image_url": url, "file_id": null, "detail": "low"}),
            ),
            (
                json!({"type": "input_file", "file_id": picture}),
                json!({"type": "input_image", "image_url": url, "file_id": null, "detail": "auto"}),
            ),
        ] {
            let script = bench.script("plain", [ScriptedAnswer::new().text("ok")]);
            plain(&bench, "plain", &part).await.ok();
            assert_eq!(json!(script.asked()[0].items)[0]["content"][1], read);
        }
        let long = bench.file("long.txt", b"more than ten").await;
        let binary = bench.file("a.bin", b"\0\x01").await;
        let large = bench.file("large.png", &[PNG, &[0; 100]].concat()).await;
        bench.script("plain", []);
        for (part, status, why) in [
            (
                json!({"type": "input_file", "file_id": long}),
                400,
                "more than 10 bytes of text",
            ),
            (
                json!({"type": "input_file", "file_id": binary}),
                400,
                "offer the tool `code_interpreter`",
            ),
            (
                json!({"type": "input_file", "file_id": "file-none"}),
                404,
                "no file `file-none`",
            ),
            (json!({"type": "input_file", "file_data": "%%%"}), 400, "base64"),
            (
                json!({"type": "input_file", "file_url": "http://a.example/b"}),
                400,
                "upload it to `/v1/files`",
            ),
            (
                json!({"type": "input_image", "file_id": text}),
                400,
                "not a picture",
            ),
            (
                json!({"type": "input_image", "file_id": large}),
                400,
                "at most 100",
            ),
        ] {
            let refused = plain(&bench, "plain", &part).await;
            assert_eq!(refused.status, status, "{part}: {}", refused.body);
            assert!(refused.message().contains(why), "{part}: {}", refused.body);
        }
    });
}
