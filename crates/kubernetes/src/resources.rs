//! The resources of agent-sandbox that are used, as far as they are used.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// The API group of claims.
pub(crate) const GROUP: &str = "extensions.agents.x-k8s.io";
/// Its only version that is supported.
pub(crate) const VERSION: &str = "v1beta1";

/// A request for a sandbox of a pool.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "extensions.agents.x-k8s.io",
    version = "v1beta1",
    kind = "SandboxClaim",
    namespaced,
    schema = "disabled",
    status = "SandboxClaimStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct SandboxClaimSpec {
    /// The pool.
    pub warm_pool_ref: NameRef,
    /// Time at which the cluster deletes the claim by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<ClaimLifecycle>,
}

/// A resource of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameRef {
    /// Its name.
    pub name: String,
}

/// Time at which a claim ends by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimLifecycle {
    /// The time.
    pub shutdown_time: Time,
    /// `Delete`: the claim is deleted then, and not kept without its pod.
    pub shutdown_policy: String,
}

/// Status that the controller gives to a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SandboxClaimStatus {
    /// Conditions; `Ready` is the one that counts.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// The sandbox, once there is one.
    #[serde(default)]
    pub sandbox: Option<ClaimedSandbox>,
}

/// The sandbox of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedSandbox {
    /// Its name, which is the pool's and not the claim's.
    #[serde(default)]
    pub name: String,
    /// Addresses of its pod.
    #[serde(default, rename = "podIPs")]
    pub pod_ips: Vec<String>,
}

/// Sandboxes kept ready.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "extensions.agents.x-k8s.io",
    version = "v1beta1",
    kind = "SandboxWarmPool",
    namespaced,
    schema = "disabled",
    status = "SandboxWarmPoolStatus"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SandboxWarmPoolSpec {
    /// Number of sandboxes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Template that they are made from.
    pub sandbox_template_ref: NameRef,
}

/// State of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SandboxWarmPoolStatus {
    /// Number of sandboxes.
    #[serde(default)]
    pub replicas: u32,
    /// Number of sandboxes whose pod is ready.
    #[serde(default)]
    pub ready_replicas: u32,
}

/// Template that sandboxes are made from. Only its existence and the pod's runtime class are looked at.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "extensions.agents.x-k8s.io",
    version = "v1beta1",
    kind = "SandboxTemplate",
    namespaced,
    schema = "disabled"
)]
pub(crate) struct SandboxTemplateSpec {
    /// Everything, as it is written.
    #[serde(flatten)]
    pub all: BTreeMap<String, serde_json::Value>,
}
