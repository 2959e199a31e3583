//! Cells of other languages, and their arguments, in every form of the process backend.

use anyhow::Result;
use cellblock_testkit::{Cli, ORDINARY_UID, require};

use crate::support::{BUILD_LIMIT, small_image};

/// Starts Node.js with what needs OpenSSL and interfaces, as a cell and as a program of bash.
const JAVASCRIPT: &str = "const hash = \
                          require('crypto').createHash('sha256').update('a').digest('hex').slice(0, 4);\n\
                          console.log(hash, typeof require('os').networkInterfaces(), process.argv[1])";
const BASH: &str = "node -e 'console.log(6 * 7)'; echo $1";

fn run_in_each(form: impl Fn(Cli) -> Cli) -> Result<()> {
    for (language, code, printed) in [
        ("javascript", JAVASCRIPT, "ca97 object -c\n"),
        ("bash", BASH, "42\nx\n"),
    ] {
        let run = [
            "run",
            "--image",
            small_image()?,
            "--without-namespaces",
            "--language",
            language,
        ];
        let cli = Cli::new(run.iter().chain(&["-c", code, "x"])).env("CELLBLOCK_WARM", "off");
        let finished = form(cli).limit(BUILD_LIMIT).run()?;
        assert_eq!(
            (finished.code(), finished.stdout.as_str()),
            (0, printed),
            "{language}: {}",
            finished.stderr
        );
    }
    Ok(())
}

#[test]
fn every_language_runs_with_namespaces() -> Result<()> {
    run_in_each(|cli| cli)
}

#[test]
fn every_language_runs_for_an_ordinary_user() -> Result<()> {
    require!(OrdinaryUser);
    run_in_each(Cli::ordinary_user)
}

#[test]
fn every_language_runs_without_namespaces() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    run_in_each(|cli| cli.without_user_namespaces(0))?;
    run_in_each(|cli| cli.without_user_namespaces(ORDINARY_UID))
}
