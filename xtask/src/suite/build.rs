//! Building the programs of tests with cargo.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::TestProgram;

/// Arguments for the tests of the whole workspace, with everything that a build may lack.
pub(super) const WHAT: [&str; 3] = ["--workspace", "--features", "cellblock/full"];

/// Returns the arguments for one package. The program has every feature, as that of a release.
pub(crate) fn of_package(package: &str) -> Vec<&str> {
    let mut arguments = vec!["--package", package];
    if package == "cellblock" {
        arguments.extend(["--features", "full"]);
    }
    arguments
}

/// The compiler of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// Cargo's own.
    Plain,
    /// Clippy's, which also compiles: a check of everything that is compiled anyway would take
    /// several minutes more.
    Linting,
}

/// Programs of tests that cargo has built.
#[derive(Debug, Default)]
pub(crate) struct BuiltPrograms {
    pub(crate) programs: Vec<TestProgram>,
    /// Warnings of this workspace's code, as the compiler prints them.
    pub(crate) warnings: Vec<String>,
}

/// Runs a command of cargo that builds programs of tests, and prints the diagnostics of the compiler.
pub(crate) fn compile(cargo: &mut Command) -> Result<BuiltPrograms> {
    let mut building = cargo
        .arg("--message-format=json")
        .stdout(Stdio::piped())
        .spawn()
        .context("start cargo")?;
    let mut told = String::new();
    let mut output = building.stdout.take().context("no output of cargo")?;
    output.read_to_string(&mut told)?;
    let status = building.wait()?;
    let (compiled, errors) = compiled(&told)?;
    for diagnostic in compiled.warnings.iter().chain(&errors) {
        eprint!("{diagnostic}");
    }
    if !status.success() {
        bail!("the tests do not compile: cargo ended with {status}");
    }
    Ok(compiled)
}

/// Returns a command of cargo in the workspace that uses a compiler.
pub(super) fn cargo(root: &Path, compiler: Compiler) -> Result<Command> {
    let mut cargo = crate::cargo(root);
    if compiler == Compiler::Linting {
        // As `cargo clippy` does it, which only checks.
        let told = Command::new("rustc").args(["--print", "sysroot"]).output();
        let told = String::from_utf8(told.context("start rustc")?.stdout).context("read rustc's folder")?;
        cargo.env(
            "RUSTC_WORKSPACE_WRAPPER",
            Path::new(told.trim()).join("bin/clippy-driver"),
        );
    }
    Ok(cargo)
}

/// Reads what cargo says that it has built, and the errors of the compiler.
fn compiled(told: &str) -> Result<(BuiltPrograms, Vec<String>)> {
    let (mut found, mut errors) = (BuiltPrograms::default(), Vec::new());
    for line in told.lines() {
        let line: Value = serde_json::from_str(line).context("read what cargo tells")?;
        let text = |value: &Value| value.as_str().map(str::to_owned).context("not a text");
        match line["reason"].as_str() {
            Some("compiler-message") => {
                let rendered = text(&line["message"]["rendered"])?;
                match line["message"]["level"].as_str() {
                    Some("warning") => found.warnings.push(rendered),
                    _ => errors.push(rendered),
                }
            }
            Some("compiler-artifact")
                if line["profile"]["test"] == true
                    && !matches!(line["target"]["kind"][0].as_str(), Some("bench" | "example")) =>
            {
                let Some(executable) = line["executable"].as_str() else {
                    continue;
                };
                let manifest = PathBuf::from(text(&line["manifest_path"])?);
                let folder = manifest.parent().context("a manifest without a directory")?;
                found.programs.push(TestProgram {
                    package: package(&text(&line["package_id"])?).to_owned(),
                    target: text(&line["target"]["name"])?,
                    executable: executable.into(),
                    arguments: Vec::new(),
                    folder: folder.to_owned(),
                    is_unit: line["target"]["kind"][0] != "test",
                    variant: None,
                    is_whole: false,
                    filter: None,
                });
            }
            _ => {}
        }
    }
    Ok((found, errors))
}

/// The name in a package's id: `path+file:///here/crates/mcp#cellblock-mcp@0.1.0`, or
/// `path+file:///here/xtask#0.1.0` where the directory has the same.
fn package(id: &str) -> &str {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit('/').next().unwrap_or(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_tests_and_warnings_are_found_among_what_cargo_says() {
        let line = |id: &str, kind: &str, test: bool, executable: Option<&str>| {
            serde_json::json!({
                "reason": "compiler-artifact",
                "package_id": id,
                "manifest_path": "/here/crates/mcp/Cargo.toml",
                "target": {"name": "it", "kind": [kind]},
                "profile": {"test": test},
                "executable": executable,
            })
        };
        let message = |level: &str| {
            serde_json::json!({
                "reason": "compiler-message",
                "message": {"level": level, "rendered": format!("{level}: a\n")},
            })
        };
        let (mcp, xtask) = (
            "path+file:///here/crates/mcp#cellblock-mcp@0.1.0",
            "path+file:///here/xtask#0.1.0",
        );
        let told = [
            line(mcp, "test", true, Some("/here/it-1")),
            line(mcp, "bench", true, Some("/here/bench-1")),
            message("warning"),
            line(xtask, "test", true, Some("/here/it-2")),
            line(xtask, "bin", false, Some("/here/xtask")),
            message("error"),
            line("registry+https://index#serde@1.0.0", "lib", false, None),
            serde_json::json!({"reason": "build-finished", "success": true}),
        ];
        let told: Vec<_> = told.iter().map(Value::to_string).collect();
        let (found, errors) = compiled(&told.join("\n")).unwrap();
        let names: Vec<_> = found.programs.iter().map(TestProgram::name).collect();
        assert_eq!(names, ["cellblock-mcp it", "xtask it"]);
        assert_eq!(found.programs[0].executable, Path::new("/here/it-1"));
        assert_eq!(found.programs[0].folder, Path::new("/here/crates/mcp"));
        assert_eq!(
            (&*found.warnings, &*errors),
            (&["warning: a\n".to_owned()][..], &["error: a\n".to_owned()][..])
        );
    }
}
