//! Starts programs as a user without privileges.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The uid and gid of the ordinary user that tests switch to when they run as root: `nobody`.
pub const ORDINARY_UID: u32 = 65534;

/// Builds a command that runs without privileges: as [`ORDINARY_UID`] under root, else as the current user.
///
/// Leaving uid 0 drops every capability, and the standard library drops supplementary groups with it.
pub fn as_ordinary_user(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    if rustix::process::geteuid().is_root() {
        command.uid(ORDINARY_UID).gid(ORDINARY_UID).current_dir("/");
    }
    command
}

/// Shows the user's program other files of subordinate ids than the machine's, in a mount namespace
/// of its own. The ids are above those that sandboxes of root have.
const WITH_IDS: &str = r#"
ids=$(mktemp) && echo nobody:1879048192:65536 > "$ids" && chmod 644 "$ids" || exit
mount --bind "$ids" /etc/subuid && mount --bind "$ids" /etc/subgid || exit
rm "$ids"
exec setpriv --reuid "$0" --regid "$0" --clear-groups --inh-caps=-all -- "$@"
"#;

/// Builds a command that runs without privileges, like [`as_ordinary_user`], as a user who has a
/// range of subordinate ids: under root one for this purpose, else whatever the current user has.
pub fn with_subordinate_ids(program: impl AsRef<OsStr>) -> Command {
    if !rustix::process::geteuid().is_root() {
        return as_ordinary_user(program);
    }
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--", "sh", "-c", WITH_IDS, &ORDINARY_UID.to_string()])
        .arg(program.as_ref())
        .current_dir("/");
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::require;

    #[test]
    fn an_ordinary_user_has_no_capabilities_and_no_groups_of_root() {
        require!(OrdinaryUser);
        let output = as_ordinary_user("cat").arg("/proc/self/status").output().unwrap();
        let status = String::from_utf8(output.stdout).unwrap();
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_once(':')
                .unwrap()
                .1
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(field("CapEff"), ["0000000000000000"]);
        assert!(!field("Uid").contains(&"0".to_owned()));
        if rustix::process::geteuid().is_root() {
            assert_eq!(field("Uid"), ["65534"; 4]);
            assert_eq!(field("Gid"), ["65534"; 4]);
            assert_eq!(field("Groups"), [""; 0]);
        }
    }
}
