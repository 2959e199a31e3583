//! The system call filter for containers that run Cellblock: a container engine's default, and the
//! calls with which sandboxes are made.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

/// The filter's place in the repository.
const PROFILE: &str = "deploy/seccomp.json";

/// The calls that default profiles refuse and sandboxes need. User code cannot make them: the
/// sandbox's own filter refuses them.
const CALLS: [&str; 10] = [
    "clone",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "pivot_root",
    "sethostname",
    "setns",
    "umount2",
    "unshare",
];

/// Writes the filter, from the default of an installed engine.
pub fn write(root: &Path, default: &Path) -> Result<bool> {
    let text = fs::read_to_string(default).with_context(|| format!("read `{}`", default.display()))?;
    let default = serde_json::from_str(&text).with_context(|| format!("parse `{}`", default.display()))?;
    let path = root.join(PROFILE);
    fs::create_dir_all(path.parent().unwrap_or(root)).context("create `deploy`")?;
    let text = serde_json::to_string_pretty(&extended(default)?)? + "\n";
    fs::write(&path, text).with_context(|| format!("write `{}`", path.display()))?;
    Ok(true)
}

/// Moves the calls to a rule of their own, which permits them without a condition.
fn extended(mut profile: Value) -> Result<Value> {
    let Some(rules) = profile["syscalls"].as_array_mut() else {
        bail!("the profile has no list `syscalls`");
    };
    for rule in &mut *rules {
        let Some(names) = rule["names"].as_array_mut() else {
            bail!("a rule has no list `names`");
        };
        names.retain(|name| !CALLS.iter().any(|call| name == call));
    }
    rules.retain(|rule| rule["names"] != json!([]));
    rules.push(json!({
        "names": CALLS,
        "action": "SCMP_ACT_ALLOW",
        "comment": "Cellblock makes its sandboxes with these; code in a sandbox cannot call them",
    }));
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> Value {
        let text = fs::read_to_string(crate::workspace_root().join(PROFILE)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn rules_with(profile: &Value, call: &str) -> Vec<Value> {
        let rules = profile["syscalls"].as_array().unwrap().iter();
        let has = |rule: &&Value| rule["names"].as_array().unwrap().iter().any(|name| name == call);
        rules.filter(has).cloned().collect()
    }

    #[test]
    fn the_shipped_profile_allows_the_calls_without_a_condition() {
        let profile = shipped();
        assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
        for call in CALLS {
            let rules = rules_with(&profile, call);
            assert_eq!(rules.len(), 1, "{call}");
            assert_eq!(rules[0]["action"], "SCMP_ACT_ALLOW", "{call}");
            let conditions = ["args", "includes", "excludes"].map(|it| rules[0][it].clone());
            assert_eq!(conditions, [Value::Null, Value::Null, Value::Null], "{call}");
        }
    }

    #[test]
    fn the_shipped_profile_has_the_form_that_engines_read() {
        let profile = shipped();
        assert!(
            profile["archMap"]
                .as_array()
                .unwrap()
                .iter()
                .all(|it| it["architecture"].is_string())
        );
        for rule in profile["syscalls"].as_array().unwrap() {
            assert!(
                rule["names"].as_array().unwrap().iter().all(Value::is_string),
                "{rule}"
            );
            assert!(
                ["SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"]
                    .iter()
                    .any(|it| rule["action"] == *it),
                "{rule}"
            );
        }
        // What every default refuses stays refused.
        for call in [
            "bpf",
            "init_module",
            "kexec_load",
            "open_by_handle_at",
            "userfaultfd",
        ] {
            let allowed = rules_with(&profile, call)
                .into_iter()
                .filter(|rule| rule["action"] == "SCMP_ACT_ALLOW");
            assert!(
                allowed
                    .into_iter()
                    .all(|rule| !rule["includes"]["caps"].is_null()),
                "{call}"
            );
        }
    }

    #[test]
    fn calls_lose_their_conditions_and_others_keep_theirs() {
        let default = json!({"syscalls": [
            {"names": ["read", "mount"], "action": "SCMP_ACT_ALLOW"},
            {"names": ["setns"], "action": "SCMP_ACT_ERRNO", "excludes": {"caps": ["CAP_SYS_ADMIN"]}},
        ]});
        let rules = extended(default).unwrap()["syscalls"].clone();
        assert_eq!(rules[0], json!({"names": ["read"], "action": "SCMP_ACT_ALLOW"}));
        assert_eq!(rules[1]["names"], json!(CALLS));
        assert_eq!(rules.as_array().unwrap().len(), 2);
    }
}
