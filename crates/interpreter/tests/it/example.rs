//! The example of the crate, which is built beside the tests.

use std::process::{Command, Stdio};

#[test]
fn the_embedding_example_prints_a_table_a_chart_and_an_error() {
    let test = std::env::current_exe().unwrap();
    let example = test.parent().unwrap().parent().unwrap().join("examples/embed");
    assert!(
        example.is_file(),
        "run `cargo build -p cellblock-interpreter --examples`"
    );
    let output = Command::new(example)
        .env("CELLBLOCK_HOME", cellblock_testkit::home().unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let stdout = String::from_utf8_lossy(&output.stdout);
    let expected = [
        "cell 1: completed\n  index, month, units\n  2, \"2026-03\", 150\n",
        "cell 2: completed\n  Integer(270)\ncell 3: completed\n  {",
        r#""mark":{"type":"bar"}"#,
        "cell 4: raised\n  KeyError: 'price'\n",
    ];
    for part in expected {
        assert!(stdout.contains(part), "{part} is not in {stdout}");
    }
}
