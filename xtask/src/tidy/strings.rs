//! The tree names neither a developer's machine nor a package registry, but where it must.

use super::Violation;
use super::tree::File;

/// Places of a particular machine. `/home/` counts where a user's name follows, unless it is
/// `user`, which every sandbox of E2B has.
const MACHINE_PATHS: [&str; 3] = ["/root/", "/home/", "/work/"];

const REGISTRY_HOSTS: [&str; 5] = [
    "pypi.org",
    "crates.io",
    "files.pythonhosted.org",
    "registry.npmjs.org",
    "deb.debian.org",
];

/// A file that may name something, and why.
struct StringException {
    path: &'static str,
    string: &'static str,
    #[expect(
        dead_code,
        reason = "the reason is for the reader; requiring the field requires the reason"
    )]
    reason: &'static str,
}

/// Keep it short. An entry that nothing needs is refused as well.
const ALLOWED: &[StringException] = &[
    StringException {
        path: "crates/image/src/uv/mod.rs",
        string: "/home/",
        reason: "Homebrew on Linux always installs below `/home/linuxbrew`; uv is looked for there",
    },
    StringException {
        path: "crates/image/src/uv/fetch.rs",
        string: "pypi.org",
        reason: "the documented default index of the image builder, which a variable replaces",
    },
    StringException {
        path: "crates/guest/python/cellblock_kernel/library/pip.py",
        string: "pypi.org",
        reason: "the default index of pip, which a variable or an option replaces",
    },
    StringException {
        path: "crates/image/src/scrub.rs",
        string: "/home/",
        reason: "its tests show that a builder's paths do not stay in an image",
    },
];

/// Refuses machine paths and registry hosts outside the list.
pub(super) fn check(file: &File) -> Vec<Violation> {
    if file.path == "xtask/src/tidy/strings.rs" {
        return Vec::new();
    }
    let allowed = |string: &str| {
        ALLOWED
            .iter()
            .any(|entry| entry.path == file.path && entry.string == string)
    };
    let mut found = Vec::new();
    for (number, line) in file.lines() {
        for string in named(line).filter(|string| !allowed(string)) {
            let message = format!(
                "`{string}` belongs to one machine or one registry; configure or document it elsewhere"
            );
            found.push(Violation::new(file, number, message));
        }
    }
    found
}

/// Refuses entries of the list that no file needs.
pub(super) fn unused(files: &[File]) -> Vec<Violation> {
    let needed = |entry: &StringException| {
        files
            .iter()
            .any(|file| file.path == entry.path && file.lines().any(|(_, line)| names(line, entry.string)))
    };
    let unused = ALLOWED.iter().filter(|entry| !needed(entry));
    unused
        .map(|entry| Violation {
            path: entry.path.to_owned(),
            line: 1,
            message: format!(
                "no longer names `{}`; remove it from xtask/src/tidy/strings.rs",
                entry.string
            ),
        })
        .collect()
}

fn named(line: &str) -> impl Iterator<Item = &'static str> {
    MACHINE_PATHS
        .into_iter()
        .chain(REGISTRY_HOSTS)
        .filter(move |string| names(line, string))
}

fn names(line: &str, string: &str) -> bool {
    line.match_indices(string).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + string.len()..].chars().next();
        let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_');
        if string.starts_with('/') {
            // A path starts here only when nothing precedes it that could be its beginning.
            let inside_a_path = in_word(before) || matches!(before, Some('.' | '}' | '~' | '$' | '*'));
            let rest = &line[start + string.len()..];
            let of_sandbox = rest
                .strip_prefix("user")
                .is_some_and(|rest| !in_word(rest.chars().next()));
            !inside_a_path && (string != "/home/" || in_word(after) && !of_sandbox)
        } else {
            !in_word(before) && !in_word(after)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_path_is_rejected() {
        let found = check(&File::of("a.rs", "x\nopen(\"/work/main\")\n"));
        let expected =
            "a.rs:2: `/work/` belongs to one machine or one registry; configure or document it elsewhere";
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [expected]
        );
        assert_eq!(check(&File::of("a.md", "cd /home/ann\n")).len(), 1);
        assert_eq!(check(&File::of("a.md", "cd /home/user2\n")).len(), 1);
        assert_eq!(check(&File::of("a.py", "'/root/.ssh'\n")).len(), 1);
    }

    #[test]
    fn a_path_that_only_contains_such_a_part_is_fine() {
        for line in [
            "/workspace/a",
            "target/work/a",
            "{dir}/root/x",
            "/home/",
            "/home/user/a.txt",
            "`/home/`, `/root`",
            "/sys/root/",
        ] {
            assert_eq!(check(&File::of("a.rs", line)), [], "{line}");
        }
    }

    #[test]
    fn a_registry_host_on_its_own_is_rejected() {
        assert_eq!(
            check(&File::of("a.toml", "index = \"https://pypi.org/simple\"")).len(),
            1
        );
        assert_eq!(check(&File::of("a.md", "from crates.io.")).len(), 1);
        assert_eq!(
            check(&File::of(
                "Cargo.lock",
                "registry+https://github.com/rust-lang/crates.io-index"
            )),
            []
        );
    }

    #[test]
    fn an_entry_that_no_file_needs_is_rejected() {
        assert_eq!(unused(&[]).len(), ALLOWED.len());
    }
}
