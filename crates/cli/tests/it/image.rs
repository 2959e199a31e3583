//! `cellblock image`.

use anyhow::Result;
use cellblock_testkit::Cli;

use crate::support::{folder, small_image};

#[test]
fn a_built_image_is_listed_inspected_and_audited() -> Result<()> {
    small_image()?;
    let listed = Cli::new(["image", "list", "--json"]).run()?.json()?;
    let names: Vec<_> = listed["images"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|image| image["name"].clone())
        .collect();
    assert!(names.contains(&"cellblock-tests".into()), "{names:?}");
    let inspected = Cli::new(["image", "inspect", "cellblock-tests", "--json"])
        .run()?
        .json()?;
    assert_eq!(inspected["policy"]["forbid_network_clients"], true);
    let shown = Cli::new(["image", "inspect", "cellblock-tests"]).run()?;
    assert!(
        shown.stdout.contains("numpy 2.5.5, pandas 3.1.1, "),
        "{}",
        shown.stdout
    );
    let audited = Cli::new(["image", "audit", "cellblock-tests"]).run()?;
    assert_eq!(audited.code(), 0);
    assert!(audited.stdout.starts_with("passed: "), "{}", audited.stdout);
    Ok(())
}

#[test]
fn an_image_that_is_not_there_is_told_with_the_command_that_builds_one() -> Result<()> {
    let (_folder, path) = folder(&[])?;
    let empty = |arguments: &[&str]| {
        Cli::new(arguments.iter().copied())
            .env("CELLBLOCK_HOME", &path)
            .run()
    };
    let listed = empty(&["image", "list"])?;
    assert_eq!(
        listed.stdout,
        "no image is built yet; `cellblock image build` builds the default one\n"
    );
    let inspected = empty(&["image", "inspect"])?;
    assert_eq!((inspected.code(), inspected.stdout.as_str()), (2, ""));
    assert_eq!(
        inspected.stderr,
        "error: no image `default` is built here (there are: none); `cellblock image build` builds one\n"
    );
    assert_eq!(empty(&["image", "remove", "nothing"])?.code(), 2);
    Ok(())
}

#[test]
fn a_specification_that_is_wrong_is_told_with_its_file() -> Result<()> {
    let (_folder, path) = folder(&[("wrong.toml", b"name = \"x\"\npackages = [\"no spaces please\"]\n")])?;
    let built = Cli::new(["image", "build", "wrong.toml", "--json"])
        .folder(&path)
        .run()?;
    assert_eq!(built.code(), 2);
    let report = built.json()?;
    let message = report["error"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("wrong.toml") && message.contains("no spaces please"),
        "{message}"
    );
    Ok(())
}
