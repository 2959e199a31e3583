//! Starts programs where no user namespace can be made, as in most containers.

use std::ffi::OsStr;
use std::process::Command;

/// Makes a user namespace that maps every id and allows no further ones, and runs a command there
/// as a user. Needs root.
///
/// The inner shell is executed once more after its ids were mapped: that gives it the namespace's rights.
const SCRIPT: &str = r#"
user=$1; shift
[ "$user" = 0 ] || set -- setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all --bounding-set=-all "$@"
unshare --user sh -c '
    while [ -z "$(cat /proc/self/uid_map)" ]; do sleep 0.01; done
    exec sh -c "echo 0 > /proc/sys/user/max_user_namespaces; exec \"\$@\"" denied "$@"
' denied "$@" <&0 &
child=$!
while [ "$(readlink /proc/$child/ns/user)" = "$(readlink /proc/self/ns/user)" ]; do sleep 0.01; done
echo 0 0 4294967295 > /proc/$child/gid_map
echo 0 0 4294967295 > /proc/$child/uid_map
wait $child
"#;

/// Builds a command that runs as a user whom the kernel refuses every further user namespace; only root can.
pub fn without_user_namespaces(uid: u32, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", SCRIPT, "denied", &uid.to_string()])
        .arg(program.as_ref())
        .current_dir("/");
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::require;

    #[test]
    fn no_user_namespace_can_be_made_there() {
        require!(Root);
        require!(UserNamespaces);
        for uid in [0, crate::ORDINARY_UID] {
            let seen = without_user_namespaces(uid, "sh")
                .args(["-c", "id -u; unshare --user true || echo refused"])
                .output()
                .unwrap();
            let text = String::from_utf8(seen.stdout).unwrap();
            assert_eq!(text, format!("{uid}\nrefused\n"));
        }
    }
}
