//! The example of the crate, which is built beside the tests.

use std::process::{Command, Stdio};

#[test]
fn the_example_of_embedding_prints_its_result() {
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
    assert!(stdout.starts_with("completed: "), "{stdout}");
    assert!(stdout.contains("28.27433388230813"), "{stdout}");
}
