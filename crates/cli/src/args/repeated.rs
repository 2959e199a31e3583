//! Options that take names with values, such as `--input NAME=PATH`: a name that is given twice is
//! an error, as one of its values would be ignored.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::error::{Error, ErrorKind};
use clap::{Arg, ArgMatches, Command, CommandFactory as _, FromArgMatches as _};

use super::CliArgs;

/// Parses the command line.
pub(crate) fn parse(arguments: &[OsString]) -> Result<CliArgs, Error> {
    let mut command = CliArgs::command();
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    check(&mut command, &matches)?;
    CliArgs::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Fails if an option of the command, or of the subcommand that was given, has a name twice.
fn check(command: &mut Command, matches: &ArgMatches) -> Result<(), Error> {
    if let Some((name, matches)) = matches.subcommand()
        && let Some(subcommand) = command.find_subcommand_mut(name)
    {
        check(subcommand, matches)?;
    }
    let twice = command
        .get_arguments()
        .filter(|argument| takes_names(argument))
        .find_map(|argument| twice(argument, matches));
    match twice {
        Some(message) => Err(command.error(ErrorKind::ArgumentConflict, message)),
        None => Ok(()),
    }
}

/// Whether values are `NAME=VALUE`, `NAME=PATH` or the like.
fn takes_names(argument: &Arg) -> bool {
    let names = argument.get_value_names().unwrap_or_default();
    names.iter().any(|name| name.starts_with("NAME="))
}

/// Returns an error for the first name that is given twice.
fn twice(argument: &Arg, matches: &ArgMatches) -> Option<String> {
    let given = matches.try_get_raw(argument.get_id().as_str()).ok().flatten()?;
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for text in given {
        let text = text.to_string_lossy();
        let (name, value) = text.split_once('=')?;
        if let Some(first) = known.insert(name.to_owned(), value.to_owned()) {
            let option = match argument.get_long() {
                Some(long) => format!("--{long} {name}"),
                None => name.to_owned(),
            };
            return Some(format!(
                "`{option}` is given twice: `{first}` and `{value}`; give each name once"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<CliArgs, String> {
        let arguments: Vec<OsString> = ["cellblock"].iter().chain(words).map(OsString::from).collect();
        parse(&arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_that_is_given_twice_is_an_error_with_both_values() {
        let session = "0123456789abcdef0123";
        for (words, option) in [
            (
                &["run", "--input", "x=a", "--input", "x=b", "f.py"][..],
                "--input x",
            ),
            (
                &["session", "start", "--dataset", "x=a", "--input", "x=b"],
                "--dataset x",
            ),
            (
                &[
                    "session", "exec", "--env", "X=a", "-e", "X=b", session, "--", "true",
                ],
                "--env X",
            ),
            (&["mcp", "--dataset", "x=a", "--dataset", "x=b"], "--dataset x"),
            (&["connector", "call", "fred.series", "x=a", "x=b"], "x"),
        ] {
            let error = parsed(words).unwrap_err();
            let told = format!("error: `{option}` is given twice: `a` and `b`; give each name once\n");
            assert!(error.starts_with(&told), "{words:?}: {error}");
        }
        let protections = [
            "--protection",
            "seccomp=strict",
            "--protection",
            "seccomp=disabled",
        ];
        let error = parsed(&[&["run"][..], &protections, &["f.py"]].concat()).unwrap_err();
        assert!(
            error.contains("`--protection seccomp` is given twice: `strict` and `disabled`"),
            "{error}"
        );
        let quotas = [
            "key",
            "create",
            "k",
            "--quota",
            "sandboxes=1",
            "--quota",
            "sandboxes=2",
        ];
        let error = parsed(&quotas).unwrap_err();
        assert!(
            error.contains("`--quota sandboxes` is given twice: `1` and `2`"),
            "{error}"
        );
    }

    #[test]
    fn different_names_are_accepted() {
        let run = parsed(&["run", "--input", "x=a", "--input", "y=a", "f.py"]);
        assert!(run.is_ok(), "{run:?}");
    }
}
