//! Failures as the API server writes them.

use serde_json::{Value, json};

/// A resource that the cluster knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resource {
    pub(super) plural: &'static str,
    pub(super) kind: &'static str,
    pub(super) group: &'static str,
}

const CLAIMS: &str = "extensions.agents.x-k8s.io";

pub(super) const RESOURCES: [Resource; 6] = [
    resource("sandboxclaims", "SandboxClaim", CLAIMS),
    resource("sandboxwarmpools", "SandboxWarmPool", CLAIMS),
    resource("sandboxtemplates", "SandboxTemplate", CLAIMS),
    resource("sandboxes", "Sandbox", "agents.x-k8s.io"),
    resource("leases", "Lease", "coordination.k8s.io"),
    resource("pods", "Pod", ""),
];

const fn resource(plural: &'static str, kind: &'static str, group: &'static str) -> Resource {
    Resource { plural, kind, group }
}

impl Resource {
    pub(super) fn of(plural: &str) -> Option<&'static Self> {
        RESOURCES.iter().find(|it| it.plural == plural)
    }

    /// `sandboxclaims.extensions.agents.x-k8s.io`.
    fn qualified(&self) -> String {
        match self.group {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }

    pub(super) fn api_version(&self) -> String {
        match self.group {
            "" => "v1".to_owned(),
            "coordination.k8s.io" => "coordination.k8s.io/v1".to_owned(),
            group => format!("{group}/v1beta1"),
        }
    }

    pub(super) fn not_found(&self, name: &str) -> Value {
        failure(
            404,
            "NotFound",
            &format!("{} \"{name}\" not found", self.qualified()),
        )
    }

    pub(super) fn already_exists(&self, name: &str) -> Value {
        let message = format!("{} \"{name}\" already exists", self.qualified());
        failure(409, "AlreadyExists", &message)
    }

    pub(super) fn precondition(&self, name: &str, wanted: &str, has: &str) -> Value {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": Precondition failed: UID in precondition: \
             {wanted}, UID in object meta: {has}",
            self.qualified()
        );
        failure(409, "Conflict", &message)
    }

    pub(super) fn required(&self, name: &str, field: &str) -> Value {
        let message = format!(
            "{}.{} \"{name}\" is invalid: {field}: Required value",
            self.kind, self.group
        );
        failure(422, "Invalid", &message)
    }

    pub(super) fn forbidden(&self, verb: &str, name: Option<&str>, namespace: &str, user: &str) -> Value {
        let named = name.map_or_else(String::new, |name| format!(" \"{name}\""));
        let message = format!(
            "{}{named} is forbidden: User \"{user}\" cannot {verb} resource \"{}\" in API group \"{}\" in \
             the namespace \"{namespace}\"",
            self.qualified(),
            self.plural,
            self.group
        );
        failure(403, "Forbidden", &message)
    }
}

pub(super) fn failure(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    })
}

pub(super) fn too_old(version: u64, oldest: u64) -> Value {
    let message = format!("too old resource version: {version} ({oldest})");
    failure(410, "Expired", &message)
}
