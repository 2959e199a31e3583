//! The AppArmor profile that permits a program user namespaces, where the host restricts them.

use std::path::Path;

use crate::error::{Error, Result};

/// The profile for programs in the usual places; a link in `deploy/apparmor` leads here, because
/// crates are packaged one by one.
const PROFILE: &str = include_str!("cellblock.apparmor");
/// Those places.
const USUAL: &str = "/usr/{,local/}bin/cellblock";

/// Returns the profile for the program that is running.
pub(super) fn own() -> Result<String> {
    let program = std::env::current_exe().map_err(Error::process("find the own program"))?;
    Ok(for_program(&program))
}

fn for_program(program: &Path) -> String {
    let usual = ["/usr/bin/cellblock", "/usr/local/bin/cellblock"];
    let path = program.to_string_lossy();
    let profile = PROFILE.trim_end();
    if usual.contains(&path.as_ref()) {
        return profile.to_owned();
    }
    profile.replace(USUAL, &quoted(&path))
}

/// A path that matches only itself: AppArmor expands patterns in quotes, too.
fn quoted(path: &str) -> String {
    let special = |c: char| "\\\"*?[]{}^@".contains(c);
    let escaped = path
        .chars()
        .flat_map(|c| special(c).then_some('\\').into_iter().chain([c]));
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_names_the_path_of_the_program() {
        assert_eq!(for_program(Path::new("/usr/bin/cellblock")), PROFILE.trim_end());
        let own = for_program(Path::new("/srv/a [b]/bin/cellblock"));
        assert!(
            own.contains(r#"profile cellblock "/srv/a \[b\]/bin/cellblock" flags=(unconfined) {"#),
            "{own}"
        );
        assert!(!own.contains(USUAL), "{own}");
    }
}
