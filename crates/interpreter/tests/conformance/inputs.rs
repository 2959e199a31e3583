//! Inputs of every format are bound as equal objects, and stay bound.

use cellblock_interpreter::input::InputFormat;
use cellblock_interpreter::{Input, Session};
use serde_json::json;

use crate::stored::content;
use crate::support::{block_on, run, session, value};

/// Bytes of a file that a cell of another session writes with a library of its own.
async fn written(code: &str) -> Vec<u8> {
    let author = session().await;
    let made = run(&author, code).await;
    let [file] = &made.files[..] else {
        panic!("not one file: {made:#?}")
    };
    content(&file.sha256).await
}

/// The same table for every format.
const TABLE: &str = "expected = pd.DataFrame({'n': [1, 2], 'x': [0.5, -1.5], 's': ['a', 'b c']})";

async fn is_bound_as_the_table(session: &Session) {
    let compared = run(
        session,
        &format!("{TABLE}\npd.testing.assert_frame_equal(t, expected)\n'equal'"),
    )
    .await;
    assert_eq!(crate::support::scalar(&compared), "equal");
}

async fn stays_bound(session: &Session) {
    is_bound_as_the_table(session).await;
    run(session, "other = 1\ndel t").await;
    session.reset().await.unwrap();
    assert_eq!(value(session, "'other' in globals()").await, false);
    is_bound_as_the_table(session).await;
    let ended = run(session, "import os\nos._exit(1)").await;
    assert_eq!(ended.outcome.name(), "kernel_lost");
    is_bound_as_the_table(session).await;
}

async fn check(input: Input) {
    let session = session().await;
    session.bind(input).await.unwrap();
    stays_bound(&session).await;
}

#[test]
fn a_csv_file_is_bound_as_a_table() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        std::fs::write(&path, "n,x,s\n1,0.5,a\n2,-1.5,b c\n").unwrap();
        check(Input::file("t", path)).await;
    });
}

#[test]
fn tsv_is_bound_as_a_table() {
    block_on(check(Input::bytes(
        "t",
        InputFormat::Tsv,
        "n\tx\ts\n1\t0.5\ta\n2\t-1.5\tb c\n",
    )));
}

#[test]
fn json_records_are_bound_as_a_table() {
    let rows = r#"[{"n": 1, "x": 0.5, "s": "a"}, {"n": 2, "x": -1.5, "s": "b c"}]"#;
    block_on(check(Input::bytes("t", InputFormat::Json, rows)));
}

#[test]
fn ndjson_is_bound_as_a_table() {
    let rows = "{\"n\":1,\"x\":0.5,\"s\":\"a\"}\n{\"n\":2,\"x\":-1.5,\"s\":\"b c\"}\n";
    block_on(check(Input::bytes("t", InputFormat::Ndjson, rows)));
}

#[test]
fn parquet_is_bound_as_a_table() {
    block_on(async {
        let bytes = written(&format!("{TABLE}\nexpected.to_parquet('/tmp/output/t.parquet')")).await;
        check(Input::bytes("t", InputFormat::Parquet, bytes)).await;
    });
}

#[test]
fn an_arrow_file_is_bound_as_a_table() {
    block_on(async {
        let bytes = written(&format!("{TABLE}\nexpected.to_feather('/tmp/output/t.arrow')")).await;
        check(Input::bytes("t", InputFormat::Arrow, bytes)).await;
    });
}

#[test]
fn an_arrow_stream_is_bound_as_a_table() {
    block_on(async {
        let code = "import pyarrow as pa\nrows = pa.Table.from_pandas(expected)\n\
                    with pa.ipc.new_stream('/tmp/output/t.arrows', rows.schema) as writer: \
                    writer.write_table(rows)";
        let bytes = written(&format!("{TABLE}\n{code}")).await;
        check(Input::bytes("t", InputFormat::Arrow, bytes)).await;
    });
}

#[test]
fn a_workbook_is_bound_as_a_table() {
    block_on(async {
        let bytes = written(&format!(
            "{TABLE}\nexpected.to_excel('/tmp/output/t.xlsx', index=False)"
        ))
        .await;
        check(Input::bytes("t", InputFormat::Xlsx, bytes)).await;
    });
}

#[test]
fn the_layout_of_a_file_is_detected_and_told_to_the_caller_and_with_the_next_cell() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        let rows = b"sep=;\r\nn;x;s\r\n1;0,5;a\r\n2;-1,5;b c\r\n";
        std::fs::write(&path, rows).unwrap();
        let session = session().await;
        let detected = session.bind(Input::file("t", &path)).await.unwrap();
        assert_eq!(
            detected,
            [
                "separator: semicolon (`;`), from the line `sep=;`, which was left out",
                "decimal mark: comma"
            ]
        );
        let first = run(&session, "1").await;
        let note = format!("input `t`: {}", detected.join("; "));
        assert_eq!(first.note.as_deref(), Some(note.as_str()));
        assert_eq!(run(&session, "1").await.note, None);
        stays_bound(&session).await;

        let plain = Input::bytes("t", InputFormat::Csv, "n,x,s\n1,0.5,a\n2,-1.5,b c\n");
        assert_eq!(session.bind(plain).await.unwrap(), [""; 0]);
        is_bound_as_the_table(&session).await;
    });
}

#[test]
fn a_file_without_a_known_extension_is_bound_as_its_bytes() {
    block_on(async {
        let bytes: Vec<u8> = (0..=255).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("raw.dat");
        std::fs::write(&path, &bytes).unwrap();
        let session = session().await;
        session.bind(Input::file("raw", path)).await.unwrap();
        let code = "type(raw) is bytes and raw == bytes(range(256))";
        assert_eq!(value(&session, code).await, true);
        run(&session, "import os\nos._exit(1)").await;
        assert_eq!(value(&session, code).await, true);
    });
}

#[test]
fn a_value_is_bound_as_the_equal_python_object() {
    block_on(async {
        let session = session().await;
        let given = json!({"name": "Ada \"Lovelace\" é\u{0}", "list": [1, 2.5, null, true],
            "deep": {"er": []}, "big": 9_007_199_254_740_993_i64});
        session.bind(Input::value("v", &given)).await.unwrap();
        let code = "v == {'name': 'Ada \"Lovelace\" é\\0', 'list': [1, 2.5, None, True], \
                    'deep': {'er': []}, 'big': 2**53 + 1}";
        assert_eq!(value(&session, code).await, true);
        run(&session, "v['list'].clear()").await;
        session.reset().await.unwrap();
        assert_eq!(value(&session, code).await, true);
    });
}

#[test]
fn inputs_lists_bindings_and_a_second_one_replaces_the_first() {
    block_on(async {
        let session = session().await;
        session.bind(Input::value("a", &json!(1))).await.unwrap();
        session.bind(Input::value("b", &json!(2))).await.unwrap();
        session.bind(Input::value("a", &json!(3))).await.unwrap();
        assert_eq!(value(&session, "str(dict(inputs))").await, "{'a': 3, 'b': 2}");
        run(&session, "import os\nos._exit(1)").await;
        assert_eq!(
            value(&session, "str(dict(sorted(inputs.items())))").await,
            "{'a': 3, 'b': 2}"
        );
    });
}

#[test]
fn an_input_of_many_parts_arrives_whole_and_cannot_be_changed_by_a_cell() {
    block_on(async {
        let session = session().await;
        // More than one frame's part, and not a multiple of it.
        let bytes: Vec<u8> = (0..(3_u32 << 20) + 17).map(|n| (n % 251) as u8).collect();
        session
            .bind(Input::bytes("raw", InputFormat::Bytes, bytes))
            .await
            .unwrap();
        let code = "raw == bytes(n % 251 for n in range((3 << 20) + 17))";
        assert_eq!(value(&session, code).await, true);
        let code = "import os\n\
                    try:\n    os.open('/tmp/data/raw.bin', os.O_WRONLY)\n    refused = 'no'\n\
                    except OSError as error:\n    refused = type(error).__name__\nrefused";
        let refused = value(&session, code).await;
        assert!(refused == "PermissionError" || refused == "OSError", "{refused}");
    });
}

#[test]
fn an_input_whose_file_is_gone_is_given_up_with_a_note_when_the_sandbox_is_lost() {
    block_on(async {
        let session = session().await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, "a\n1\n").unwrap();
        session.bind(Input::file("t", &path)).await.unwrap();
        std::fs::remove_file(&path).unwrap();
        let broken = session.execute("import os\nos.write(3, b'\\xff' * 64)").await;
        assert!(
            broken.is_err(),
            "a broken frame destroys the sandbox: {broken:#?}"
        );
        let next = run(&session, "'t' in globals()").await;
        assert_eq!(
            next.note.as_deref(),
            Some(
                "the sandbox was lost and replaced; all variables and files are gone. Run what defines \
                 your variables and writes your files again. input `t` could not be copied into a new \
                 sandbox and is no longer bound"
            )
        );
        assert_eq!(crate::support::scalar(&next), false);
        assert_eq!(run(&session, "1").await.note, None);
    });
}
