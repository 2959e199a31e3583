//! Paths: what a sandbox has in `/workspace`, E2B's clients know in `/home/user`.

/// Home of E2B's users.
pub(super) const HOME: &str = "/home/user";
/// The same directory, by the name that the guest's file requests know.
const INSIDE: &str = "/workspace";

/// Returns the absolute path of one that may be relative to the home.
pub(super) fn absolute(path: &str) -> String {
    let path = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{HOME}{rest}"),
        _ if path.starts_with('/') => path.to_owned(),
        _ => format!("{HOME}/{path}"),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Returns an absolute path as the guest names it.
pub(super) fn inside(path: &str) -> String {
    match path.strip_prefix(HOME) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{INSIDE}{rest}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_home() {
        for (given, expected) in [
            ("a.txt", "/home/user/a.txt"),
            ("./a/../b", "/home/user/b"),
            ("~/a", "/home/user/a"),
            ("~", "/home/user"),
            ("~a", "/home/user/~a"),
            ("", "/home/user"),
            ("/tmp//x/", "/tmp/x"),
            ("../../../etc", "/etc"),
            ("/", "/"),
        ] {
            assert_eq!(absolute(given), expected, "{given:?}");
        }
    }

    #[test]
    fn the_home_is_the_workspace() {
        assert_eq!(inside("/home/user/a"), "/workspace/a");
        assert_eq!(inside("/home/user"), "/workspace");
        let other = concat!("/home", "/users/a");
        assert_eq!(inside(other), other);
        assert_eq!(inside("/tmp/a"), "/tmp/a");
    }
}
