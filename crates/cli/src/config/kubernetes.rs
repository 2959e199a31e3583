//! Pods of a cluster that run code.

use cellblock_agent::provider::ProviderKey;
use cellblock_sandbox::backend::{BackendChoice, BackendKind, KubernetesOptions};
use cellblock_settings::{MissingFeature, Time};

use super::check::Check;
use super::{ConfigError, ImageName, LoadedConfig, Settings};

/// Pods, and how they are spoken to.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "kubernetes"),
    expect(dead_code, reason = "nothing speaks to them")
)]
pub(crate) struct PodSite {
    pub(crate) options: KubernetesOptions,
    pub(crate) key: Option<ProviderKey>,
}

impl Settings {
    /// Whether code runs in pods.
    pub(crate) fn uses_kubernetes(&self) -> bool {
        self.backend == Some(BackendChoice::Kubernetes)
    }

    pub(super) fn check_kubernetes(&self, check: &mut Check<'_>) {
        if !self.uses_kubernetes() {
            if self.kubernetes != KubernetesOptions::default() {
                check.wrong(
                    &["kubernetes"],
                    "has an effect only with `backend: kubernetes`; set that key, or remove this section",
                );
            }
            return;
        }
        if !cfg!(feature = "kubernetes") {
            check.failed(&["backend"], &MissingFeature("kubernetes"));
        }
        if self.sandbox_url.is_some() {
            check.wrong(
                &["sandbox_url"],
                "cannot be combined with `backend: kubernetes`: code runs in one place; remove one \
                 of the two",
            );
        }
        if let Err((key, reason)) = self.kubernetes.check() {
            check.wrong(&["kubernetes", key], reason);
        }
        let (claim, acquire) = (self.kubernetes.claim_timeout, self.pool.acquire_timeout);
        if claim >= acquire {
            let message = format!(
                "must be less than `pool.acquire_timeout` ({}), so that its error names the reason; lower \
                 it, or raise that one",
                Time(acquire)
            );
            check.wrong(&["kubernetes", "claim_timeout"], message);
        }
        if !self.sandbox_allow_http {
            check.wrong(
                &["sandbox_allow_http"],
                "must be `true` with `backend: kubernetes`: code, data and the key travel to pods \
                 unencrypted; use it only in a cluster whose network nobody else can read",
            );
        }
        if self.minimum_backend.is_some_and(|it| it > BackendKind::Process) {
            check.wrong(
                &["minimum_backend"],
                "cannot be combined with `backend: kubernetes`: the wall around a pod is not known here; \
                 set the runtime class in the SandboxTemplate, and remove this key",
            );
        }
        if self.image != ImageName::default() {
            check.wrong(
                &["image"],
                "cannot be combined with `backend: kubernetes`, whose pods have their own image; remove \
                 this key",
            );
        }
        self.check_key(check);
    }

    /// Takes over the template that other gateways name at the tool.
    pub(super) fn unite_template(&mut self, check: &mut Check<'_>) {
        let tool = &self.providers.code_interpreter.settings;
        let (Some(template), None) = (&tool.sandbox_template, &tool.sandbox_url) else {
            return;
        };
        for (ours, theirs, key) in [
            (&mut self.kubernetes.template, Some(template), "sandbox_template"),
            (
                &mut self.kubernetes.namespace,
                tool.sandbox_namespace.as_ref(),
                "sandbox_namespace",
            ),
        ] {
            let Some(theirs) = theirs else { continue };
            if ours.replace(theirs.clone()).is_some_and(|other| other != *theirs) {
                check.wrong(
                    &["providers", "code_interpreter", "settings", key],
                    "the section `kubernetes` has another value; remove one of the two",
                );
            }
        }
        self.backend.get_or_insert(BackendChoice::Kubernetes);
    }
}

impl LoadedConfig {
    /// The pods that run code, if code runs in pods. Nothing is asked yet.
    pub(crate) fn pods(&self) -> Result<Option<PodSite>, ConfigError> {
        let settings = &self.settings;
        if !settings.uses_kubernetes() {
            return Ok(None);
        }
        let mut options = settings.kubernetes.clone();
        options.kubeconfig = options.kubeconfig.map(|path| self.path(&path));
        let key = self.sandbox_key()?;
        Ok(Some(PodSite { options, key }))
    }
}
