//! Reasons that there is no pod, and what to do about them.

use std::time::Duration;

use cellblock_sandbox::Error;
use cellblock_sandbox::error::{Blame, Effect, Retry};
use kube::Error as KubeError;

use crate::access::{ApiCall, Permission};
use crate::condition::shown;
use crate::resources::{GROUP, VERSION};

/// An error of a claim, or of the cluster that it is made in.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The kubeconfig or the service account cannot be used.
    #[error("{0}")]
    Config(String),
    /// The thread that claims could not start, or has ended.
    #[error("claim pods: {0}")]
    Internal(String),
    /// The API server cannot be reached, or broke off.
    #[error(
        "{action}: the API server cannot be reached: {reason}; check its address in the kubeconfig, and \
         the network"
    )]
    Unreachable {
        /// Action that was tried.
        action: &'static str,
        /// Reason of the failure.
        reason: String,
    },
    /// The API server answered 429 or 5xx until the time was over.
    #[error(
        "{action}: the API server answered {status} for {waited:.1?}: {message}; it is overloaded or \
         failing, try again later"
    )]
    Overloaded {
        /// Action that was tried.
        action: &'static str,
        /// The last HTTP status.
        status: u16,
        /// The server's message.
        message: String,
        /// Time for which it was tried.
        waited: Duration,
    },
    /// The credentials are not accepted: 401.
    #[error(
        "{action}: the API server does not know these credentials (401 Unauthorized: {message}); renew \
         the token or kubeconfig"
    )]
    Unauthorized {
        /// Action that was tried.
        action: &'static str,
        /// The server's message.
        message: String,
    },
    /// RBAC denies it: 403.
    #[error(
        "{action}: RBAC denies {permission} (403 Forbidden: {message}); add this verb to the Role of this \
         account, as `deploy/helm/cellblock` does, and check with `cellblock doctor --kubernetes`"
    )]
    Forbidden {
        /// Action that was tried.
        action: &'static str,
        /// The permission that is missing.
        permission: Permission,
        /// The server's message.
        message: String,
    },
    /// The API server rejected the request: 400, 409, 422 and the like.
    #[error("{action}: the API server rejected it ({status}: {message})")]
    Rejected {
        /// Action that was tried.
        action: &'static str,
        /// The HTTP status.
        status: u16,
        /// The server's message.
        message: String,
    },
    /// agent-sandbox is not installed, or too old.
    #[error("the cluster does not serve `{GROUP}/{VERSION}`, {}; install agent-sandbox 1.0 or newer with \
             its extensions",
        served_instead(.served))]
    Version {
        /// The versions that it serves.
        served: Vec<String>,
    },
    /// No pod became ready in time.
    #[error(
        "no pod of {pool} became ready within {waited:.1?}{}; the pool is exhausted: raise its \
         `replicas`, or `kubernetes.claim_timeout` if pods start slowly",
        last_said(.reason, .message)
    )]
    PoolExhausted {
        /// The pool.
        pool: String,
        /// Time for which it was waited for.
        waited: Duration,
        /// Last reason of the condition `Ready`, if there was one.
        reason: String,
        /// Its message.
        message: String,
    },
    /// The controller gave the claim up.
    #[error("the claim failed: {reason}: {message}; {hint}")]
    Condition {
        /// Reason of the condition `Ready`.
        reason: String,
        /// Its message.
        message: String,
        /// Hint for repairing it.
        hint: &'static str,
        /// Party that has to act.
        blame: Blame,
    },
    /// Somebody else deleted the claim.
    #[error(
        "the claim `{claim}` was deleted before its pod was ready; find out who deletes claims \
         in this namespace"
    )]
    Deleted {
        /// The claim.
        claim: String,
    },
    /// The sandbox has an address that no pod has.
    #[error(
        "the sandbox `{sandbox}` has the address `{address}`, which is not that of a pod; no key is sent \
         there. Check the controller of agent-sandbox"
    )]
    Address {
        /// The sandbox.
        sandbox: String,
        /// Its address.
        address: String,
    },
}

/// Reasons that do not pass, who has to act, and how.
const LASTING: &[(&str, Blame, &str)] = &[
    (
        "ClaimExpired",
        Blame::Backend,
        "its shutdown time passed: check the clocks of gateway and controller, or raise \
         `kubernetes.shutdown_after`",
    ),
    (
        "SandboxExpired",
        Blame::Backend,
        "the template has a shutdown time that has passed: remove it from the SandboxTemplate",
    ),
    (
        "InvalidConfiguration",
        Blame::Policy,
        "correct the SandboxTemplate of the pool",
    ),
    (
        "InvalidMetadata",
        Blame::Policy,
        "correct the metadata of the SandboxTemplate",
    ),
    (
        "EnvVarsInjectionRejected",
        Blame::Policy,
        "an admission webhook adds variables to claims: exempt this namespace from it",
    ),
    (
        "VolumeClaimTemplatesError",
        Blame::Policy,
        "correct the volumes of the SandboxTemplate",
    ),
    (
        "TemplateNotFound",
        Blame::Policy,
        "create the SandboxTemplate that the pool names, in the same namespace",
    ),
    (
        "WarmPoolNotFound",
        Blame::Policy,
        "create the SandboxWarmPool, or correct `kubernetes.warm_pool` and `kubernetes.namespace`",
    ),
    (
        "PodFailed",
        Blame::Backend,
        "look at the pod's events and log (`kubectl describe pod`): image, memory limit, node",
    ),
    (
        "PodSucceeded",
        Blame::Backend,
        "the server in the pod ended by itself: its command must be one that keeps serving",
    ),
];

impl ClaimError {
    /// Returns the error of a condition's reason, if it does not pass.
    pub(crate) fn of_reason(reason: &str, message: &str) -> Option<Self> {
        let (_, blame, hint) = LASTING.iter().find(|(known, ..)| *known == reason)?;
        Some(Self::Condition {
            reason: reason.to_owned(),
            message: message.to_owned(),
            hint,
            blame: *blame,
        })
    }

    /// Returns the error of an answer of the API server, or of its absence, after `waited`.
    #[expect(clippy::needless_pass_by_value, reason = "it is the last use of an error")]
    pub(crate) fn of_api(call: ApiCall, waited: Duration, error: KubeError) -> Self {
        let ApiCall { action, permission } = call;
        let KubeError::Api(status) = &error else {
            let reason = innermost(&error);
            return Self::Unreachable { action, reason };
        };
        let (code, message) = (status.code, shown(&status.message));
        match code {
            401 => Self::Unauthorized { action, message },
            403 => Self::Forbidden {
                action,
                permission,
                message,
            },
            429 | 500.. => Self::Overloaded {
                action,
                status: code,
                message,
                waited,
            },
            status => Self::Rejected {
                action,
                status,
                message,
            },
        }
    }

    /// Returns the error without what the cluster says, for people who may see no more than that
    /// code cannot run.
    pub fn summary(&self) -> String {
        match self {
            Self::Config(_) => "the configuration of the cluster cannot be used".to_owned(),
            Self::Internal(_) => "pods cannot be claimed".to_owned(),
            Self::Unreachable { action, .. } => format!("{action}: the API server cannot be reached"),
            Self::Overloaded { action, status, .. } => format!("{action}: the API server answers {status}"),
            Self::Unauthorized { action, .. } => {
                format!("{action}: the API server does not know the credentials (401)")
            }
            Self::Forbidden {
                action, permission, ..
            } => {
                format!("{action}: RBAC denies {permission} (403)")
            }
            Self::Rejected { action, status, .. } => {
                format!("{action}: the API server rejects it ({status})")
            }
            Self::Version { .. } => format!("the cluster does not serve `{GROUP}/{VERSION}`"),
            Self::PoolExhausted { waited, .. } => {
                format!("no pod became ready within {waited:.1?}: the pool is exhausted")
            }
            Self::Condition { reason, .. } => format!("the claim failed: {reason}"),
            Self::Deleted { .. } => "the claim was deleted before its pod was ready".to_owned(),
            Self::Address { .. } => "the sandbox has an address that is not that of a pod".to_owned(),
        }
    }

    /// Returns whether it can pass while a gateway waits: not if its own configuration is wrong.
    pub const fn may_pass(&self) -> bool {
        !matches!(self, Self::Config(_) | Self::Internal(_))
    }

    /// Returns the error's name in metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Config(_) => "config",
            Self::Internal(_) => "internal",
            Self::Unreachable { .. } => "unreachable",
            Self::Overloaded { .. } => "overloaded",
            Self::Unauthorized { .. } => "unauthorized",
            Self::Forbidden { .. } => "forbidden",
            Self::Rejected { .. } => "rejected",
            Self::Version { .. } => "version",
            Self::PoolExhausted { .. } => "pool_exhausted",
            Self::Condition { .. } => "condition",
            Self::Deleted { .. } => "deleted",
            Self::Address { .. } => "address",
        }
    }

    fn blame(&self) -> Blame {
        match self {
            Self::Config(_) | Self::Unauthorized { .. } | Self::Forbidden { .. } | Self::Version { .. } => {
                Blame::Policy
            }
            Self::Internal(_) => Blame::Internal,
            Self::PoolExhausted { .. } | Self::Overloaded { .. } => Blame::Capacity,
            Self::Condition { blame, .. } => *blame,
            Self::Unreachable { .. }
            | Self::Rejected { .. }
            | Self::Deleted { .. }
            | Self::Address { .. } => Blame::Backend,
        }
    }

    fn retry(&self) -> Retry {
        match self.blame() {
            Blame::Capacity => Retry::After(Duration::from_secs(1)),
            Blame::Backend => match self {
                Self::Unreachable { .. } => Retry::After(Duration::from_secs(1)),
                Self::Rejected { .. } | Self::Address { .. } => Retry::Never,
                _ => Retry::Fresh,
            },
            Blame::Caller | Blame::Policy | Blame::Internal => Retry::Never,
        }
    }
}

impl From<ClaimError> for Error {
    fn from(error: ClaimError) -> Self {
        Self::of_backend(error.blame(), error.retry(), Effect::None, error)
    }
}

fn served_instead(served: &[String]) -> String {
    if served.is_empty() {
        "nor any other version".to_owned()
    } else {
        format!("but `{}`", served.join("`, `"))
    }
}

fn last_said(reason: &str, message: &str) -> String {
    if reason.is_empty() {
        " (the controller has not answered)".to_owned()
    } else {
        format!(" ({reason}: {message})")
    }
}

/// Returns the first cause of an error; the errors around it repeat it.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    shown(&cause.to_string())
}
