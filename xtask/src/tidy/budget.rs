//! Lists of violations that were there before a check: each may shrink, none may grow.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use anyhow::{Context as _, Result, bail};

const FOLDER: &str = "xtask/tidy";

/// What was found or is allowed: how many, by name.
pub(super) type Counts = BTreeMap<String, usize>;

/// A list in a file below `xtask/tidy`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub(super) file: &'static str,
    /// What the file says about itself.
    pub(super) title: &'static str,
}

impl Budget {
    /// Path of the list below the root.
    pub(super) fn path(&self) -> String {
        format!("{FOLDER}/{}", self.file)
    }

    /// Reads the list; a missing file is an empty list.
    pub(super) fn read(&self, root: &Path) -> Result<Counts> {
        let path = root.join(self.path());
        match fs::read_to_string(&path) {
            Ok(text) => parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Counts::new()),
            Err(error) => Err(error.into()),
        }
        .with_context(|| format!("read `{}`", path.display()))
    }

    /// Writes what was found as the list. Fails if the total would grow.
    pub(super) fn write(&self, root: &Path, found: &Counts) -> Result<()> {
        let path = root.join(self.path());
        let total = |counts: &Counts| counts.values().sum::<usize>();
        let (before, after) = (total(&self.read(root)?), total(found));
        if after > before && path.exists() {
            bail!(
                "`{}` may only shrink: it allows {before}, and there are {after} now; see `cargo xtask tidy`",
                self.path()
            );
        }
        fs::create_dir_all(root.join(FOLDER)).context("create the folder of lists")?;
        fs::write(&path, self.render(found)).with_context(|| format!("write `{}`", path.display()))
    }

    fn render(&self, found: &Counts) -> String {
        let mut text = format!(
            "# {}\n# May only shrink. `cargo xtask tidy --update` writes it; a number follows a name that counts more than once.\n",
            self.title
        );
        for (name, count) in found {
            let _ = match count {
                1 => writeln!(text, "{name}"),
                _ => writeln!(text, "{name} = {count}"),
            };
        }
        text
    }
}

fn parse(text: &str) -> Result<Counts> {
    let entries = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let entry = |line: &str| -> Result<_> {
        match line.rsplit_once(" = ") {
            Some((name, count)) => Ok((name.to_owned(), count.parse()?)),
            None => Ok((line.to_owned(), 1)),
        }
    };
    entries
        .map(|line| entry(line).with_context(|| format!("read the line `{line}`")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget {
        file: "list.txt",
        title: "A list.",
    };

    fn counts(entries: &[(&str, usize)]) -> Counts {
        entries
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    }

    #[test]
    fn a_list_round_trips() {
        let root = tempfile::tempdir().unwrap();
        let list = counts(&[("a: b -> c", 1), ("d", 12)]);
        assert_eq!(BUDGET.read(root.path()).unwrap(), Counts::new());
        BUDGET.write(root.path(), &list).unwrap();
        assert_eq!(BUDGET.read(root.path()).unwrap(), list);
        let text = fs::read_to_string(root.path().join("xtask/tidy/list.txt")).unwrap();
        assert!(text.ends_with("\na: b -> c\nd = 12\n"), "{text}");
    }

    #[test]
    fn a_list_shrinks_and_moves_but_does_not_grow() {
        let root = tempfile::tempdir().unwrap();
        BUDGET.write(root.path(), &counts(&[("a", 3)])).unwrap();
        BUDGET.write(root.path(), &counts(&[("b", 2)])).unwrap();
        let refused = BUDGET.write(root.path(), &counts(&[("b", 2), ("c", 1)]));
        assert_eq!(
            refused.unwrap_err().to_string(),
            "`xtask/tidy/list.txt` may only shrink: it allows 2, and there are 3 now; see `cargo xtask tidy`"
        );
    }
}
