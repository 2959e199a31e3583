//! Inputs that cannot be bound: what is wrong, where, how to repair it, and a session that goes on.

use cellblock_interpreter::Input;
use cellblock_interpreter::cell::MAX_CODE;
use cellblock_interpreter::error::Blame;
use cellblock_interpreter::input::InputFormat;

use crate::limited::limited;
use crate::support::{block_on, goes_on, run, session, value};

/// Binds what cannot be bound in a session that has an input already, and gives the message.
async fn refusal(input: Input) -> String {
    let session = session().await;
    run(&session, "kept = 1").await;
    session
        .bind(Input::bytes("good", InputFormat::Csv, "a\n1\n"))
        .await
        .unwrap();
    let error = session.bind(input).await.unwrap_err();
    assert_eq!(error.blame(), Blame::Caller);
    assert!(goes_on(&session, "kept").await);
    // What was refused is not tried again in the next kernel.
    run(&session, "import os\nos._exit(1)").await;
    assert_eq!(value(&session, "list(inputs) == ['good']").await, true);
    error.to_string()
}

#[test]
fn a_missing_file_is_named() {
    let message = block_on(refusal(Input::file("sales", "/nowhere/sales.csv")));
    assert_eq!(
        message,
        "bind input `sales`: could not open `/nowhere/sales.csv`: No such file or directory (os error 2)"
    );
}

#[test]
fn a_directory_is_not_an_input() {
    let message = block_on(refusal(Input::file("sales", "/tmp")));
    assert_eq!(message, "bind input `sales`: `/tmp` is not a regular file");
}

#[test]
fn an_empty_file_is_rejected() {
    let message = block_on(refusal(Input::bytes("sales", InputFormat::Csv, "")));
    assert_eq!(
        message,
        "bind input `sales`: the csv input is empty; give a file with content"
    );
}

#[test]
fn malformed_csv_is_reported_with_its_line() {
    let message = block_on(refusal(Input::bytes(
        "sales",
        InputFormat::Csv,
        "a,b\n1,2\n3,4,5\n6,7\n",
    )));
    assert_eq!(
        message,
        "bind input `sales`: input 'sales' (csv): malformed: Error tokenizing data. C error: Expected 2 \
         fields in line 3, saw 3; check the quoting and the number of fields of that line, or bind it as \
         bytes and parse it in the code"
    );
}

#[test]
fn malformed_json_is_reported_with_its_line_and_column() {
    let message = block_on(refusal(Input::bytes(
        "sales",
        InputFormat::Json,
        "[\n  {\"a\": 1},\n  {\"a\" 2}\n]",
    )));
    assert_eq!(
        message,
        "bind input `sales`: input 'sales' (json): malformed at line 3, column 8: Expecting ':' delimiter; \
         repair the JSON there, or bind it as bytes and parse it in the code"
    );
}

#[test]
fn malformed_ndjson_is_reported_with_the_line_of_the_file() {
    let message = block_on(refusal(Input::bytes(
        "sales",
        InputFormat::Ndjson,
        "{\"a\": 1}\n\n{\"a\": }\n",
    )));
    assert!(
        message.starts_with("bind input `sales`: input 'sales' (ndjson): malformed at line 3, column 7: "),
        "{message}"
    );
}

#[test]
fn bytes_that_are_not_utf_8_are_reported_with_their_offset() {
    let mut bytes = "name,city\nAda,Zürich\nBob,Z".as_bytes().to_vec();
    bytes.extend(b"\xffrich\n");
    let message = block_on(refusal(Input::bytes("people", InputFormat::Csv, bytes)));
    assert_eq!(
        message,
        "bind input `people`: input 'people' (csv): not UTF-8: byte 0xff at offset 27; re-encode the file \
         as UTF-8 (for example `iconv -f WINDOWS-1252 -t UTF-8`), or bind it as bytes and decode it in \
         the code"
    );
}

#[test]
fn damaged_parquet_is_reported() {
    let message = block_on(refusal(Input::bytes(
        "t",
        InputFormat::Parquet,
        "PAR1 and then nothing PAR1",
    )));
    assert!(
        message.starts_with("bind input `t`: input 't' (parquet): damaged or not parquet at all: "),
        "{message}"
    );
    assert!(
        message.ends_with("write the file again; it may have been cut off while it was copied"),
        "{message}"
    );
}

#[test]
fn damaged_workbooks_and_arrow_files_are_reported() {
    for (format, name) in [(InputFormat::Xlsx, "xlsx"), (InputFormat::Arrow, "arrow")] {
        let message = block_on(refusal(Input::bytes("t", format, "no such thing")));
        let expected = format!("bind input `t`: input 't' ({name}): damaged or not {name} at all: ");
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn a_name_that_python_could_not_use_is_rejected() {
    for name in ["1st", "two words", "../up", "", "class", "print", "display"] {
        let message = block_on(refusal(Input::bytes(name, InputFormat::Csv, "a\n1\n")));
        assert!(
            message.starts_with(&format!("bind input `{name}`: ")),
            "{message}"
        );
    }
}

#[test]
fn a_rejected_replacement_keeps_the_previous_input() {
    block_on(async {
        let session = limited(|limits| limits.data_bytes = 4 << 20).await;
        let csv = |text: &str| Input::bytes("t", InputFormat::Csv, text);
        session.bind(csv("a\n41\n")).await.unwrap();
        assert!(session.bind(csv("a,b\n1,2\n3,4,5\n")).await.is_err());
        assert_eq!(value(&session, "int(t['a'].sum()) + 1").await, 42);
        session.reset().await.unwrap();
        assert_eq!(value(&session, "int(t['a'].sum()) + 1").await, 42);
        assert!(session.bind(csv("a,b\n1,2\n3,4,5\n")).await.is_err());
        run(&session, "import os\nos._exit(1)").await;
        assert_eq!(value(&session, "int(t['a'].sum()) + 1").await, 42);
    });
}

#[test]
fn an_input_beyond_the_limit_is_reported_with_both_numbers() {
    block_on(async {
        let session = limited(|limits| limits.data_bytes = 1 << 20).await;
        let input = Input::bytes("big", InputFormat::Bytes, vec![0; (1 << 20) + 1]);
        let error = session.bind(input).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "bind input `big`: it has 1048577 bytes, the limit for inputs is 1048576; \
             give a smaller file or raise `data_bytes`"
        );
        assert_eq!(value(&session, "6 * 7").await, 42);
    });
}

#[test]
fn inputs_that_exceed_the_limit_together_are_rejected_with_a_repair() {
    block_on(async {
        let session = limited(|limits| limits.data_bytes = 2 << 20).await;
        let part = |name| Input::bytes(name, InputFormat::Bytes, vec![7; 3 << 19]);
        session.bind(part("first")).await.unwrap();
        let error = session.bind(part("second")).await.unwrap_err();
        assert_eq!(error.blame(), Blame::Caller);
        assert!(error.to_string().contains("/tmp/data/second.bin"), "{error}");
        assert_eq!(value(&session, "len(first)").await, 3 << 19);
        assert_eq!(value(&session, "list(inputs) == ['first']").await, true);
    });
}

#[test]
fn code_that_is_too_large_is_refused_and_the_session_stays_as_it_is() {
    block_on(async {
        let session = session().await;
        run(&session, "kept = 1").await;
        let code = format!("kept = {:?}", "x".repeat(MAX_CODE));
        let error = session.execute(code).await.unwrap_err();
        assert_eq!(error.blame(), Blame::Caller);
        assert!(error.to_string().starts_with("`code`: it has 31457"), "{error}");
        assert_eq!(value(&session, "kept").await, 1);
    });
}
