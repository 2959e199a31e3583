//! Paths that the tools accept.

/// Message for every other path, as the seed has it.
pub(crate) const INVALID: &str = "Invalid path: must be /tmp/* or /workspace/*";
/// Message for paths of datasets.
pub(crate) const READ_ONLY: &str = "Invalid path: /tmp/data/* is read-only";
/// Bytes of a path, the last one for the NUL that the kernel wants.
const MAX_PATH: usize = 4095;
/// Bytes of one name in it.
const MAX_NAME: usize = 255;

/// Takes a path apart by its text alone, and puts it together without `.`, `..` and empty parts.
///
/// What climbs out of its root is refused, even if it comes back. That no link leads out of it is
/// the guest's to see to, which opens it.
pub(crate) fn normalise(path: &str) -> Result<String, &'static str> {
    if path.len() > MAX_PATH || path.chars().any(cellblock_protocol::text::acts) {
        return Err(INVALID);
    }
    let absolute = path.strip_prefix('/').ok_or(INVALID)?;
    let mut parts: Vec<&str> = Vec::new();
    for part in absolute.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.len() > 1 => drop(parts.pop()),
            ".." => return Err(INVALID),
            name if name.len() > MAX_NAME => return Err(INVALID),
            name => parts.push(name),
        }
    }
    match parts[..] {
        ["tmp", "data", ..] => Err(READ_ONLY),
        // A name that ends in `/` is one of a folder.
        ["tmp" | "workspace", _, ..] if !path.ends_with('/') => Ok(format!("/{}", parts.join("/"))),
        _ => Err(INVALID),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_below_the_two_roots_are_taken() {
        for (path, normal) in [
            ("/tmp/a.py", "/tmp/a.py"),
            ("/workspace/a/b", "/workspace/a/b"),
            ("//tmp//./a.py", "/tmp/a.py"),
            ("/tmp/x/../a.py", "/tmp/a.py"),
            ("/tmp/output/x y.csv", "/tmp/output/x y.csv"),
            ("/tmp/database", "/tmp/database"),
            ("/tmp/é", "/tmp/é"),
        ] {
            assert_eq!(normalise(path).as_deref(), Ok(normal), "{path}");
        }
    }

    #[test]
    fn other_paths_are_rejected() {
        let (long, longer) = (format!("/tmp/{}", "x".repeat(256)), "/tmp/x".repeat(1000));
        for path in [
            "",
            "/",
            "tmp/a",
            "/tmp",
            "/tmp/",
            "/tmp/.",
            "/tmp/x/",
            "/workspace",
            concat!("/home", "/bad.py"),
            "/tmpx/a",
            "/etc/passwd",
            "/tmp/../etc/passwd",
            "/tmp/../tmp/a",
            "/workspace/../tmp/a",
            "/tmp/x/../../etc/passwd",
            "/proc/self/root/tmp/a",
            "/tmp/a\0b",
            "/tmp/a\nb",
            &long,
            &longer,
        ] {
            assert_eq!(normalise(path), Err(INVALID), "{path:?}");
        }
    }

    #[test]
    fn datasets_have_a_message_of_their_own() {
        for path in [
            "/tmp/data",
            "/tmp/data/a.csv",
            "/tmp/x/../data/a.csv",
            "/tmp//data/./b",
        ] {
            assert_eq!(normalise(path), Err(READ_ONLY), "{path}");
        }
    }

    proptest! {
        #[test]
        fn accepted_paths_are_normalized_and_below_a_root(
            parts in prop::collection::vec(
                prop_oneof![Just(".."), Just("."), Just(""), Just("tmp"), Just("workspace"),
                    Just("data"), Just("a"), Just("proc")],
                0..7,
            ),
            rooted in any::<bool>(),
        ) {
            let path = format!("{}{}", if rooted { "/" } else { "" }, parts.join("/"));
            if let Ok(normal) = normalise(&path) {
                let normal_parts: Vec<_> = Path::new(&normal).components().collect();
                prop_assert_eq!(normal_parts[0], Component::RootDir);
                prop_assert!(normal_parts[1..].iter().all(|part| matches!(part, Component::Normal(_))));
                prop_assert!(normal.starts_with("/tmp/") || normal.starts_with("/workspace/"));
                prop_assert!(!Path::new(&normal).starts_with("/tmp/data"));
                prop_assert_eq!(normalise(&normal), Ok(normal.clone()));
                // The model: what the parts lead to one after the other.
                let mut model: Vec<&str> = Vec::new();
                for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
                    if part == ".." { model.pop(); } else { model.push(part); }
                }
                prop_assert_eq!(normal, format!("/{}", model.join("/")));
            }
        }
    }
}
