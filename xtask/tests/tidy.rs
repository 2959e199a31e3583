//! Holds the whole workspace to the rules of `cargo xtask tidy`.

#[test]
fn the_workspace_is_tidy() {
    let report = xtask::tidy::check(&xtask::workspace_root()).unwrap();
    let violations: Vec<String> = report.violations.iter().map(ToString::to_string).collect();
    assert!(
        violations.is_empty(),
        "run `cargo xtask tidy`:\n{}",
        violations.join("\n")
    );
}
