//! The code that a command line names, and the arguments of a script after it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;

use crate::args::{CliArgs, RunArgs};
use crate::error::{Error, Result};

/// Marks of code that reads its arguments, in any language.
const READERS: [&str; 12] = [
    "argv",
    "argparse",
    "parse_args",
    "optparse",
    "getopt",
    "click",
    "typer",
    "fire",
    "docopt",
    "absl",
    "main(",
    "$",
];

/// Files to run, or none if the code itself was given, and the arguments of the code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptSource {
    pub(super) files: Vec<PathBuf>,
    pub(super) arguments: Vec<String>,
    /// Whether the file and its arguments are one list, as for `python`.
    pub(super) is_short: bool,
}

impl ScriptSource {
    /// Returns what was given.
    pub(super) fn of(args: &RunArgs) -> Result<Self> {
        let is_short = args.code.is_empty() && args.files.is_empty();
        let (files, rest) = match args.script.split_first() {
            Some((file, rest)) if is_short => (vec![PathBuf::from(file)], rest),
            _ => (args.files.clone(), &args.script[..]),
        };
        if files.is_empty() && args.code.is_empty() {
            return Err(Error::Refused(
                "there is nothing to run; name a file, or give code with `-c`: `cellblock run -c '1 + 1'`"
                    .to_owned(),
            ));
        }
        let source = Self {
            files,
            arguments: rest.iter().map(text).collect::<Result<_>>()?,
            is_short,
        };
        match &source.files[..] {
            [file] if is_short => source.refuse_files(file)?,
            _ => {}
        }
        Ok(source)
    }

    /// Returns the arguments of the code as it finds them, after its own name.
    pub(super) fn argv(&self, name: &str) -> Vec<String> {
        let mut argv = vec![name.to_owned()];
        argv.extend(self.arguments.iter().cloned());
        argv
    }

    /// Fails for a list of scripts, which are not arguments of the first one.
    fn refuse_files(&self, file: &Path) -> Result<()> {
        let is_script = |argument: &String| {
            let path = Path::new(argument);
            path.extension().is_some() && path.extension() == file.extension() && path.is_file()
        };
        let (Some(first), true) = (self.arguments.first(), self.arguments.iter().all(is_script)) else {
            return Ok(());
        };
        let file = file.display();
        let all: Vec<_> = self.arguments.iter().map(|other| format!("-f {other}")).collect();
        Err(Error::Refused(format!(
            "`{first}` would be an argument of `{file}`, not a second script; to run one after the other, \
             write `cellblock run -f {file} {}`; to give it to the script, write `cellblock run -f {file} \
             -- {first}`",
            all.join(" ")
        )))
    }

    /// Fails if an option of `cellblock run` is after a script that reads no arguments.
    pub(super) fn refuse_options(&self, code: &str) -> Result<()> {
        if !self.is_short || self.arguments.is_empty() || READERS.iter().any(|mark| code.contains(mark)) {
            return Ok(());
        }
        let command = CliArgs::command();
        let options: Vec<_> = command
            .find_subcommand("run")
            .into_iter()
            .flat_map(|run| run.get_arguments().filter_map(|it| it.get_long()))
            .collect();
        let is_ours = |argument: &&String| {
            let name = argument
                .strip_prefix("--")
                .map(|rest| rest.split('=').next().unwrap_or(rest));
            name.is_some_and(|name| options.contains(&name))
        };
        let (Some(ours), Some(file)) = (self.arguments.iter().find(is_ours), self.files.first()) else {
            return Ok(());
        };
        let file = file.display();
        Err(Error::Refused(format!(
            "`{ours}` is after `{file}`, so it would be an argument of the script, which reads none; \
             options of `cellblock run` stand before the file: `cellblock run {ours} … {file}`"
        )))
    }
}

fn text(argument: &OsString) -> Result<String> {
    argument.clone().into_string().map_err(|argument| {
        Error::Refused(format!(
            "the argument `{}` is not UTF-8; arguments of a script have to be",
            argument.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Command;

    fn source(words: &[&str]) -> Result<ScriptSource> {
        match CliArgs::parse_from(["cellblock", "run"].iter().chain(words)).command {
            Command::Run(args) => ScriptSource::of(&args),
            other => panic!("{other:?}"),
        }
    }

    fn parts(words: &[&str]) -> (Vec<String>, Vec<String>) {
        let source = source(words).unwrap();
        let files = source.files.iter().map(|it| it.display().to_string()).collect();
        (files, source.arguments)
    }

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn everything_after_the_file_belongs_to_the_script() {
        for words in [
            &["--n", "5"][..],
            &["--json", "-c", "x", "--timeout=0"],
            &["--", "--n"],
            &["a", "--", "b", ""],
            &["-"],
            &["--help"],
        ] {
            let all = [&["--timeout", "2", "a.py"][..], words].concat();
            assert_eq!(parts(&all), (owned(&["a.py"]), owned(words)), "{words:?}");
        }
        assert_eq!(parts(&["-", "--n"]), (owned(&["-"]), owned(&["--n"])));
    }

    #[test]
    fn code_and_named_files_have_arguments_too() {
        assert_eq!(
            parts(&["-c", "1", "--json", "a", "--n"]),
            (vec![], owned(&["a", "--n"]))
        );
        assert_eq!(parts(&["-c", "1", "--", "--n"]), (vec![], owned(&["--n"])));
        assert_eq!(
            parts(&["-f", "a.py", "-f", "b.py", "--", "c.py", "5"]),
            (owned(&["a.py", "b.py"]), owned(&["c.py", "5"]))
        );
    }

    #[test]
    fn a_mistyped_option_before_the_file_is_rejected() {
        let parsed = CliArgs::try_parse_from(["cellblock", "run", "--jsn", "a.py"]);
        assert_eq!(
            parsed.unwrap_err().kind(),
            clap::error::ErrorKind::UnknownArgument
        );
        let both = CliArgs::try_parse_from(["cellblock", "run", "-f", "a.py", "-c", "1"]);
        assert_eq!(both.unwrap_err().kind(), clap::error::ErrorKind::ArgumentConflict);
        let message = source(&["--json"]).unwrap_err().to_string();
        assert!(message.starts_with("there is nothing to run"), "{message}");
    }

    #[test]
    fn scripts_in_a_row_are_refused_with_the_form_that_runs_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        for name in ["a.py", "b.py", "c.csv"] {
            std::fs::write(path(name), "").unwrap();
        }
        let (first, second, table) = (path("a.py"), path("b.py"), path("c.csv"));
        let message = source(&[&first, &second]).unwrap_err().to_string();
        assert!(
            message.contains(&format!("`cellblock run -f {first} -f {second}`")),
            "{message}"
        );
        for words in [
            &[&first[..], &second, "--n"][..],
            &[&first, &table],
            &[&first, "b.py"],
        ] {
            assert!(source(words).is_ok(), "{words:?}");
        }
        let named = ["-f", &first, "--", &second];
        assert_eq!(parts(&named), (vec![first.clone()], vec![second.clone()]));
    }

    #[test]
    fn an_option_of_ours_after_a_script_without_arguments_is_refused() {
        let given = source(&["a.py", "--input", "x=x.csv"]).unwrap();
        let message = given.refuse_options("x.sum()").unwrap_err().to_string();
        assert!(message.contains("`cellblock run --input … a.py`"), "{message}");
        for (words, code) in [
            (&["a.py", "--input", "x=x.csv"][..], "import sys; sys.argv"),
            (&["a.py", "--json"], "import argparse"),
            (&["a.py", "--n", "5"], "1"),
            (&["-f", "a.py", "--", "--json"], "1"),
        ] {
            assert!(source(words).unwrap().refuse_options(code).is_ok(), "{words:?}");
        }
    }
}
