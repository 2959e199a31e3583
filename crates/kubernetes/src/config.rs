//! The configuration of the cluster: a kubeconfig, or the service account of the pod.

use std::env;
use std::fmt::Display;
use std::path::PathBuf;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::KubernetesOptions;
use crate::error::{ClaimError, innermost};

/// Kubeconfig files, and the setting that names them.
struct Files {
    paths: Vec<PathBuf>,
    setting: &'static str,
}

/// Reads the configuration of the cluster. Errors name the file, the setting that chose it, and the fix.
pub(crate) async fn read(options: &KubernetesOptions) -> Result<Config, ClaimError> {
    let Some(files) = Files::find(options) else {
        return service_account();
    };
    let mut merged = Kubeconfig::default();
    for path in &files.paths {
        let read = Kubeconfig::read_from(path).and_then(|file| merged.merge(file));
        merged = read.map_err(|error| files.unreadable(path, &error))?;
    }
    let chosen = KubeConfigOptions {
        context: options.context.clone(),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(merged.clone(), &chosen).await;
    config.map_err(|error| files.unusable(&merged, &error))
}

fn service_account() -> Result<Config, ClaimError> {
    Config::incluster().map_err(|error| {
        ClaimError::Config(format!(
            "find the configuration of the cluster: `kubernetes.kubeconfig` and `KUBECONFIG` are not set, \
             there is no `~/.kube/config`, and this is not a pod with a service account ({}); set \
             `kubernetes.kubeconfig`",
            innermost(&error)
        ))
    })
}

impl Files {
    /// Returns the files that are used, or nothing where the pod's service account is.
    fn find(options: &KubernetesOptions) -> Option<Self> {
        if let Some(path) = &options.kubeconfig {
            let setting = "`kubernetes.kubeconfig`";
            return Some(Self {
                paths: vec![path.clone()],
                setting,
            });
        }
        let listed = env::var_os("KUBECONFIG").unwrap_or_default();
        let paths: Vec<_> = env::split_paths(&listed)
            .filter(|path| !path.as_os_str().is_empty())
            .collect();
        if !paths.is_empty() {
            return Some(Self {
                paths,
                setting: "`KUBECONFIG`",
            });
        }
        let usual = env::home_dir()?.join(".kube/config");
        // A context can only be one of a kubeconfig.
        (options.context.is_some() || usual.exists()).then(|| Self {
            paths: vec![usual],
            setting: "the default, since neither `kubernetes.kubeconfig` nor `KUBECONFIG` is set",
        })
    }

    fn unreadable(&self, path: &std::path::Path, error: &KubeconfigError) -> ClaimError {
        let fix = match error {
            KubeconfigError::ReadConfig(error, _) if error.kind() == std::io::ErrorKind::NotFound => {
                "correct the path, or remove the setting to use the pod's service account"
            }
            KubeconfigError::ReadConfig(..) => "it must be a file that the user of this process can read",
            KubeconfigError::Parse(_) => "it is not valid YAML of a kubeconfig: correct it",
            _ => "correct the file",
        };
        let path = path.display();
        let reason = innermost(error);
        ClaimError::Config(format!(
            "read the kubeconfig `{path}` ({}): {reason}; {fix}",
            self.setting
        ))
    }

    fn unusable(&self, merged: &Kubeconfig, error: &KubeconfigError) -> ClaimError {
        let known = listed(merged.contexts.iter().map(|context| &context.name));
        let why = match error {
            KubeconfigError::LoadContext(name) => format!(
                "it has no context `{name}`, only {known}; correct `kubernetes.context` or its \
                 `current-context`"
            ),
            KubeconfigError::CurrentContextNotSet => {
                format!("it has no `current-context`; set `kubernetes.context` to one of {known}")
            }
            KubeconfigError::LoadClusterOfContext(name) => format!(
                "its context names the cluster `{name}`, and it has only {}; correct the context",
                listed(merged.clusters.iter().map(|cluster| &cluster.name))
            ),
            error => format!("{}; correct the file", innermost(error)),
        };
        let paths = listed(self.paths.iter().map(|path| path.display()));
        ClaimError::Config(format!("use the kubeconfig {paths} ({}): {why}", self.setting))
    }
}

fn listed(names: impl Iterator<Item = impl Display>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "apiVersion: v1\nkind: Config\ncurrent-context: gone\n\
                         clusters: [{name: c, cluster: {server: 'https://10.0.0.1'}}]\n\
                         contexts: \
                         [{name: here, context: {cluster: c}}, {name: lost, context: {cluster: d}}]\n";

    async fn refused(options: KubernetesOptions) -> String {
        read(&options).await.err().unwrap().to_string()
    }

    #[tokio::test]
    async fn a_kubeconfig_that_cannot_be_used_is_named_with_its_path_the_reason_and_the_fix() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let missing = folder.path().join("missing");
        let invalid = write("invalid", "apiVersion: [v1\nkind: {");
        let valid = write("valid", VALID);
        let aimless = write("aimless", &VALID.replace("current-context: gone\n", ""));
        for (path, context, expected) in [
            (&missing, None, &["No such file", "correct the path"][..]),
            (
                &folder.path().to_owned(),
                None,
                &["Is a directory", "a file that the user of this process can read"],
            ),
            (&invalid, None, &["not valid YAML"]),
            (
                &valid,
                None,
                &["no context `gone`, only `here`, `lost`", "`kubernetes.context`"],
            ),
            (
                &valid,
                Some("other"),
                &["no context `other`, only `here`, `lost`"],
            ),
            (
                &valid,
                Some("lost"),
                &["names the cluster `d`, and it has only `c`"],
            ),
            (
                &aimless,
                None,
                &["no `current-context`; set `kubernetes.context` to one of `here`, `lost`"],
            ),
        ] {
            let options = KubernetesOptions {
                kubeconfig: Some(path.clone()),
                context: context.map(str::to_owned),
                ..KubernetesOptions::default()
            };
            let error = refused(options).await;
            let named = format!("the kubeconfig `{}`", path.display());
            assert!(
                error.contains(&named) && error.contains("(`kubernetes.kubeconfig`)"),
                "{error}"
            );
            for part in expected {
                assert!(error.contains(part), "{error}");
            }
        }
    }
}
