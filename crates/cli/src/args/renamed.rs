//! Flags that were renamed: the old ones are accepted too, each with a warning.

use std::ffi::OsString;
use std::io::Write as _;

use cellblock_settings::renamed::{FLAGS, Renamed};
use clap::CommandFactory as _;
use clap::error::{Error, ErrorKind};

use super::CliArgs;
use crate::render::{NOTE, styled};

/// Warns of old flags on stderr. An old one beside its new one is an error.
pub(crate) fn check(arguments: &[OsString]) -> Result<(), Error> {
    for renamed in used(arguments) {
        let Renamed { old, new, .. } = renamed;
        if has(arguments, new) {
            let message = format!("the argument '{old}' is the old name of '{new}', which is set too");
            return Err(CliArgs::command().error(ErrorKind::ArgumentConflict, message));
        }
        let warning = styled(NOTE, "warning");
        // Nobody is left to tell when stderr is gone.
        let _ = writeln!(anstream::stderr(), "{warning}: `{old}`: {}", renamed.warning());
    }
    Ok(())
}

fn used(arguments: &[OsString]) -> impl Iterator<Item = Renamed> {
    let named = |renamed: &Renamed| {
        let mut words = arguments.iter().skip(1);
        renamed
            .within
            .split(' ')
            .all(|word| words.next().is_some_and(|it| it == word))
    };
    FLAGS
        .iter()
        .copied()
        .filter(move |it| named(it) && has(arguments, it.old))
}

/// Whether a flag is there, with its value beside or in it.
fn has(arguments: &[OsString], flag: &str) -> bool {
    let mut flags = arguments
        .iter()
        .take_while(|it| *it != "--")
        .filter_map(|it| it.to_str());
    flags.any(|it| {
        it.strip_prefix(flag)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn every_old_flag_is_accepted_with_a_warning_but_not_beside_its_new_one() {
        for renamed in FLAGS {
            let command = |flags: &[&str]| -> Vec<OsString> {
                let words = ["cellblock"].into_iter().chain(renamed.within.split(' '));
                words.chain(flags.iter().copied()).map(OsString::from).collect()
            };
            for old in [vec![renamed.old, "7"], vec![&*format!("{}=7", renamed.old)]] {
                let old = command(&old);
                assert_eq!(used(&old).collect::<Vec<_>>(), [*renamed]);
                check(&old).unwrap();
                CliArgs::try_parse_from(old).unwrap();
            }
            let new = command(&[renamed.new, "7"]);
            assert_eq!(used(&new).count(), 0);
            CliArgs::try_parse_from(new).unwrap();
            let both = check(&command(&[renamed.old, "7", renamed.new, "8"])).unwrap_err();
            let message = both.to_string();
            assert!(
                message.contains(renamed.old) && message.contains(renamed.new),
                "{message}"
            );
        }
    }
}
