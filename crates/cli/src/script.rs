//! Reads what is to be run: files, stdin, or code from the command line.

use std::io::Read;
use std::path::{Path, PathBuf};

use cellblock_interpreter::Cell;

mod source;

use self::source::ScriptSource;
use crate::args::RunArgs;
use crate::cells;
use crate::error::{Error, Result};

/// A cell, and what a person calls it.
#[derive(Clone, Debug)]
pub(crate) struct NamedCell {
    /// The cell.
    pub(crate) cell: Cell,
    /// The file and line that it comes from, or its number.
    pub(crate) name: String,
}

/// Reads all code before anything is started, so that a wrong path costs nothing.
pub(crate) fn read(args: &RunArgs) -> Result<Vec<NamedCell>> {
    let source = ScriptSource::of(args)?;
    if !args.code.is_empty() {
        let numbered = args.code.iter().zip(1..);
        return Ok(numbered
            .map(|(code, number)| NamedCell {
                cell: Cell::new(code)
                    .in_language(args.language)
                    .with_argv(source.argv("-c")),
                name: format!("<cell {number}>"),
            })
            .collect());
    }
    let mut found = Vec::new();
    for path in &source.files {
        let script = load(path)?;
        source.refuse_options(&script)?;
        // The sandbox learns the file's name, not where it is on this machine.
        let name = if is_stdin(path) {
            "<stdin>".into()
        } else {
            path.file_name().unwrap_or_default().to_string_lossy()
        };
        let passed = source.argv(if is_stdin(path) { "-" } else { &name });
        let whole = args.toolset.toolset.is_some_and(|kind| kind.on_results);
        if whole || !args.language.is_python() {
            // A call is one piece of code, whatever it is made of; the marks of cells are Python's.
            found.push(NamedCell {
                cell: Cell::new(script).in_language(args.language).with_argv(passed),
                name: name.into_owned(),
            });
            continue;
        }
        for part in cells::split(&script) {
            let cell = Cell::new(part.code).from_file(name.clone(), part.line);
            let mut cell = cell.with_argv(passed.clone());
            // Only JSON and datasets show the origins.
            if (args.json || args.toolset.project.is_some()) && !is_stdin(path) {
                cell = cell.produced_by(path.to_string_lossy());
            }
            found.push(NamedCell {
                cell,
                name: format!("{name}:{}", part.line),
            });
        }
    }
    Ok(found)
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn load(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let (read, path) = if is_stdin(path) {
        (
            std::io::stdin().lock().read_to_end(&mut bytes),
            PathBuf::from("<stdin>"),
        )
    } else {
        let opened = std::fs::File::open(path);
        (
            opened.and_then(|mut file| file.read_to_end(&mut bytes)),
            path.to_owned(),
        )
    };
    read.map_err(|source| Error::Code {
        path: path.clone(),
        source,
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let byte = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..byte];
        let line = before.split(|byte| *byte == b'\n').count();
        let start = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline| newline + 1);
        Error::Encoding {
            path,
            line,
            byte: byte - start + 1,
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{CliArgs, Command};

    fn args<'a>(arguments: impl IntoIterator<Item = &'a str>) -> RunArgs {
        match CliArgs::parse_from(["cellblock", "run"].into_iter().chain(arguments)).command {
            Command::Run(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_is_known_to_the_sandbox_by_its_name_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.py");
        std::fs::write(&path, "x = 1\n# %%\nx\n").unwrap();
        let cells = read(&args([path.to_str().unwrap()])).unwrap();
        let known: Vec<_> = cells
            .iter()
            .map(|it| (it.cell.name.as_deref(), it.cell.line, it.name.as_str()))
            .collect();
        assert_eq!(known, [(Some("a.py"), 1, "a.py:1"), (Some("a.py"), 2, "a.py:2")]);
    }

    #[test]
    fn every_c_is_a_cell() {
        let cells = read(&args(["-c", "x = 1", "-c", "-x"])).unwrap();
        let codes: Vec<_> = cells.iter().map(|it| it.cell.code.as_str()).collect();
        assert_eq!(codes, ["x = 1", "-x"]);
    }

    #[test]
    fn code_that_is_not_text_is_reported_with_its_position() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latin.py");
        std::fs::write(&path, b"x = 1\ny = '\xe9'\n").unwrap();
        let error = read(&args([path.to_str().unwrap()])).unwrap_err();
        let message = format!(
            "`{}` is not UTF-8: byte 6 in line 2 is not part of a character",
            path.display()
        );
        assert_eq!(
            (error.to_string(), error.hints()),
            (message, vec!["save the file as UTF-8".to_owned()])
        );
    }
}
