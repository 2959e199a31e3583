//! The help that users see first.

use anyhow::Result;
use cellblock_testkit::Cli;

#[test]
fn the_short_help_fits_a_screen() -> Result<()> {
    let finished = Cli::new(["-h"]).run()?;
    assert_eq!(finished.code(), 0);
    insta::assert_snapshot!(finished.stdout, @"");
    Ok(())
}

#[test]
fn the_help_of_run_lists_its_options() -> Result<()> {
    let finished = Cli::new(["run", "-h"]).run()?;
    assert_eq!(finished.code(), 0);
    insta::assert_snapshot!(finished.stdout, @"");
    Ok(())
}

#[test]
fn the_version_is_that_of_the_package() -> Result<()> {
    let finished = Cli::new(["--version"]).run()?;
    assert_eq!(
        finished.stdout,
        format!("cellblock {}\n", env!("CARGO_PKG_VERSION"))
    );
    Ok(())
}

#[test]
fn no_command_is_a_mistake_and_is_answered_with_the_help() -> Result<()> {
    let finished = Cli::new([""; 0]).run()?;
    assert_eq!((finished.code(), finished.stdout.as_str()), (2, ""));
    assert!(
        finished.stderr.contains("Usage: cellblock <COMMAND>"),
        "{}",
        finished.stderr
    );
    Ok(())
}
