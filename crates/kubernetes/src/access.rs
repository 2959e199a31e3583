//! Every request to the API server, with the permission that it needs. Roles and errors are made
//! from this list.

use std::fmt;

use crate::KubernetesOptions;
use crate::resources::GROUP;

/// API group of Leases.
const COORDINATION: &str = "coordination.k8s.io";
const CLAIMS: &str = "sandboxclaims";
const POOLS: &str = "sandboxwarmpools";
const TEMPLATES: &str = "sandboxtemplates";
const LEASES: &str = "leases";

/// A permission of RBAC in the namespace of claims. It is shown as `` `watch` on
/// `sandboxclaims.extensions.agents.x-k8s.io` ``.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// API group.
    pub group: &'static str,
    /// Resource, in the plural.
    pub resource: &'static str,
    /// Verb.
    pub verb: &'static str,
}

/// A request to the API server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiCall {
    /// Its purpose, for errors.
    pub(crate) action: &'static str,
    pub(crate) permission: Permission,
}

impl fmt::Display for Permission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` on `{}.{}`", self.verb, self.resource, self.group)
    }
}

const fn call(
    action: &'static str,
    group: &'static str,
    resource: &'static str,
    verb: &'static str,
) -> ApiCall {
    ApiCall {
        action,
        permission: Permission {
            group,
            resource,
            verb,
        },
    }
}

pub(crate) const CREATE_CLAIM: ApiCall = call("create a claim", GROUP, CLAIMS, "create");
pub(crate) const GET_CLAIM: ApiCall = call("look at a claim", GROUP, CLAIMS, "get");
pub(crate) const WATCH_CLAIM: ApiCall = call("watch a claim", GROUP, CLAIMS, "watch");
pub(crate) const GET_POOL: ApiCall = call("look at the warm pool", GROUP, POOLS, "get");
pub(crate) const CREATE_POOL: ApiCall = call("create a warm pool without pods", GROUP, POOLS, "create");
pub(crate) const GET_TEMPLATE: ApiCall = call("look at the template", GROUP, TEMPLATES, "get");
pub(crate) const CREATE_LEASE: ApiCall =
    call("create the Lease of this process", COORDINATION, LEASES, "create");
/// Requests that everybody may make with the default roles of a cluster.
pub(crate) const DISCOVER: ApiCall = call(
    "ask which versions of claims the cluster serves",
    GROUP,
    "",
    "get",
);
pub(crate) const REVIEW: ApiCall = call(
    "review permissions",
    "authorization.k8s.io",
    "selfsubjectaccessreviews",
    "create",
);

/// Calls of both modes, with a warm pool or a template.
const ALWAYS: &[ApiCall] = &[
    CREATE_CLAIM,
    call("delete a claim", GROUP, CLAIMS, "delete"),
    GET_CLAIM,
    call("list claims", GROUP, CLAIMS, "list"),
    call("renew a claim", GROUP, CLAIMS, "patch"),
    WATCH_CLAIM,
    GET_POOL,
    GET_TEMPLATE,
    CREATE_LEASE,
    call("delete a Lease", COORDINATION, LEASES, "delete"),
    call("list Leases", COORDINATION, LEASES, "list"),
    call("renew a Lease", COORDINATION, LEASES, "patch"),
];
/// Calls that only the mode with a template adds.
const WITH_TEMPLATE: &[ApiCall] = &[CREATE_POOL];

/// Returns the permissions that a gateway with these options needs, and no others. The chart's Role
/// has exactly these.
pub fn permissions(options: &KubernetesOptions) -> Vec<Permission> {
    let template = if options.template.is_some() {
        WITH_TEMPLATE
    } else {
        &[]
    };
    let calls = ALWAYS.iter().chain(template);
    calls.map(|call| call.permission).collect()
}
