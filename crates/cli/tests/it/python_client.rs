//! The Python package, tested with the interpreter of the default image, and started with every
//! other one of this machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::{binary, fenced, home, workspace_root};

use crate::support::{default_image, small_image, warm_setting};

/// Runs a Python program with the package, and returns what it wrote to stderr.
fn python(program: &Path, arguments: &[&str]) -> Result<String> {
    let folder = workspace_root().join("python");
    let ran = Command::new(program)
        .args(["-B", "-W", "error"])
        .args(arguments)
        .current_dir(&folder)
        .env("PYTHONPATH", folder.join("src"))
        .env("CELLBLOCK_EXECUTABLE", binary()?)
        .env("CELLBLOCK_HOME", home()?)
        .env("CELLBLOCK_TEST_IMAGE", small_image()?)
        .env("CELLBLOCK_WARM", warm_setting())
        .output()
        .with_context(|| format!("start `{}`", program.display()))?;
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    ensure!(ran.status.success(), "{}: {stderr}", program.display());
    Ok(stderr)
}

fn unittest(program: &Path, tests: &str) -> Result<()> {
    let report = python(program, &["-m", "unittest", tests])?;
    ensure!(!report.contains("skipped"), "{}: {report}", program.display());
    Ok(())
}

/// Returns the default image's own interpreter, which has pandas and pyarrow.
fn image_interpreter() -> Result<PathBuf> {
    let image = default_image()?;
    let field = |name: &str| image[name].as_str().context("the manifest lacks a field");
    Ok(home()?
        .join("images")
        .join(field("id")?)
        .join("python")
        .join(field("interpreter")?))
}

#[test]
fn the_python_package_runs_sessions_of_this_binary() -> Result<()> {
    unittest(&image_interpreter()?, "tests.test_session")
}

#[test]
fn the_python_package_runs_commands_and_uses_files_of_sandboxes() -> Result<()> {
    unittest(&image_interpreter()?, "tests.test_shell")
}

#[test]
fn the_python_package_has_everything_that_a_server_has() -> Result<()> {
    unittest(&image_interpreter()?, "tests.test_api")
}

#[test]
fn the_python_package_explains_errors_of_connections() -> Result<()> {
    unittest(&image_interpreter()?, "tests.test_client")
}

#[test]
fn the_examples_for_python_in_the_readmes_run() -> Result<()> {
    for page in ["README.md", "python/README.md"] {
        let text = fs::read_to_string(workspace_root().join(page))?;
        let example = fenced(&text, "python")
            .into_iter()
            .find(|block| block.contains("import cellblock"))
            .with_context(|| format!("{page} has no example"))?;
        let checked = format!("{example}\nassert total == 7.5 and len(table) == 2, (total, table)");
        python(&image_interpreter()?, &["-c", &checked]).with_context(|| page.to_owned())?;
    }
    Ok(())
}

#[test]
fn the_python_package_works_with_every_supported_interpreter_of_this_machine() -> Result<()> {
    let mut tried = Vec::new();
    for python in interpreters() {
        let supported = Command::new(&python)
            .args([
                "-c",
                "import sys; print(*sys.version_info[:2]); sys.exit(sys.version_info < (3, 10))",
            ])
            .output();
        let version = match supported {
            Ok(ran) if ran.status.success() => String::from_utf8_lossy(&ran.stdout).trim().to_owned(),
            _ => continue,
        };
        if tried.contains(&version) {
            continue;
        }
        unittest(&python, "tests.test_session.Processes.test_no_state_is_left")?;
        tried.push(version);
    }
    ensure!(!tried.is_empty(), "this machine has no Python 3.10 or newer");
    eprintln!("tried with Python {}", tried.join(", "));
    Ok(())
}

/// Programs on PATH and in the version folders of pyenv.
fn interpreters() -> Vec<PathBuf> {
    let on_path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&on_path).collect();
    let pyenv = env::home_dir().unwrap_or_default().join(".pyenv/versions");
    folders.extend(
        pyenv
            .read_dir()
            .into_iter()
            .flatten()
            .flatten()
            .map(|version| version.path().join("bin")),
    );
    let names = [
        "python3",
        "python3.10",
        "python3.11",
        "python3.12",
        "python3.13",
        "python3.14",
    ];
    let programs = folders
        .iter()
        .flat_map(|folder| names.map(|name| folder.join(name)));
    programs.filter(|program| program.is_file()).collect()
}
