//! The controllers of agent-sandbox, and the garbage collector: pools are filled, claims adopt a
//! sandbox of their pool or get a new one, what expired is deleted, and what has no owner anymore
//! is, too.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::NAMESPACE;
use super::store::{Store, merge, timestamp};

/// Interval between two searches for expired claims.
const TICK: Duration = Duration::from_millis(100);
/// Time for which a new claim waits for sandboxes of its pool that have no address yet, before it gets a
/// separate one.
const GRACE: Duration = Duration::from_secs(2);

/// Reconciles after each change, forever.
pub(super) async fn run(store: Arc<Store>) {
    let mut changes = store.changes();
    loop {
        reconcile(&store);
        let _ = tokio::time::timeout(TICK, changes.changed()).await;
    }
}

fn reconcile(store: &Store) {
    expire(store);
    collect(store);
    for sandbox in store.list("sandboxes") {
        run_sandbox(store, &sandbox);
    }
    for claim in store.list("sandboxclaims") {
        serve(store, &claim);
    }
    for pool in store.list("sandboxwarmpools") {
        fill(store, &pool);
    }
}

fn expire(store: &Store) {
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    for claim in store.list("sandboxclaims") {
        let lifecycle = &claim["spec"]["lifecycle"];
        let ends = lifecycle["shutdownTime"]
            .as_str()
            .and_then(|it| it.parse::<Timestamp>().ok());
        if ends.is_none_or(|ends| ends > now) {
            continue;
        }
        if lifecycle["shutdownPolicy"] == "Delete" {
            let _ = store.remove("sandboxclaims", NAMESPACE, name(&claim));
        } else {
            set_ready(
                store,
                &claim,
                false,
                "ClaimExpired",
                "Claim expired. Sandbox cleanup initiated.",
                json!({}),
            );
        }
    }
}

/// Deletes sandboxes and pods whose owner is gone. Pods go when their kubelet has ended them.
fn collect(store: &Store) {
    for (plural, owners) in [
        ("sandboxes", ["sandboxclaims", "sandboxwarmpools"]),
        ("pods", ["sandboxes", "sandboxes"]),
    ] {
        let owners: HashSet<String> = owners
            .iter()
            .flat_map(|it| store.list(it))
            .map(|it| uid(&it))
            .collect();
        for object in store.list(plural) {
            let owner = object["metadata"]["ownerReferences"][0]["uid"].as_str();
            if owner.is_some_and(|owner| owners.contains(owner)) {
                continue;
            }
            if plural == "pods" && object["spec"]["nodeName"].is_string() {
                let _ = store.update(plural, NAMESPACE, name(&object), |pod| {
                    if pod["metadata"]["deletionTimestamp"].is_null() {
                        pod["metadata"]["deletionTimestamp"] = json!(timestamp());
                    }
                });
            } else {
                let _ = store.remove(plural, NAMESPACE, name(&object));
            }
        }
    }
}

/// Gives a sandbox its pod, and takes over the pod's state.
fn run_sandbox(store: &Store, sandbox: &Value) {
    let Ok(pod) = store.get("pods", name(sandbox)) else {
        let template = &sandbox["spec"]["podTemplate"];
        let pod = json!({
            "metadata": {
                "name": name(sandbox),
                "annotations": template["metadata"]["annotations"],
                "ownerReferences": [owner("Sandbox", sandbox)],
            },
            "spec": template["spec"],
        });
        let _ = store.create("pods", NAMESPACE, pod);
        return;
    };
    let phase = pod["status"]["phase"].as_str().unwrap_or("Pending");
    let conditions = pod["status"]["conditions"].as_array();
    let ready = conditions.is_some_and(|all| {
        all.iter()
            .any(|it| it["type"] == "Ready" && it["status"] == "True")
    });
    let (reason, message) = match (phase, ready) {
        ("Failed", _) => ("PodFailed", "Pod failed"),
        ("Running", true) => ("DependenciesReady", "Pod is Ready"),
        ("Running", false) => ("DependenciesNotReady", "Pod is Running but not Ready"),
        _ => ("DependenciesNotReady", "Pod exists with phase: Pending"),
    };
    let addresses: Vec<&Value> = pod["status"]["podIPs"]
        .as_array()
        .map(|all| all.iter().map(|it| &it["ip"]).collect())
        .unwrap_or_default();
    let more = json!({"podIPs": addresses});
    set_ready(store, sandbox, ready && phase == "Running", reason, message, more);
}

/// Gives a claim a sandbox, and takes over the sandbox's state.
fn serve(store: &Store, claim: &Value) {
    let not = |reason, message: &str| set_ready(store, claim, false, reason, message, json!({}));
    if let Some(adopted) = claim["status"]["sandbox"]["name"].as_str() {
        return match store.get("sandboxes", adopted) {
            Ok(sandbox) => mirror(store, claim, &sandbox),
            Err(_) => not("SandboxMissing", "Sandbox does not exist"),
        };
    }
    let pool = claim["spec"]["warmPoolRef"]["name"].as_str().unwrap_or_default();
    let Ok(pool) = store.get("sandboxwarmpools", pool) else {
        return not(
            "WarmPoolNotFound",
            &format!("SandboxWarmPool \"{pool}\" not found"),
        );
    };
    let template = pool["spec"]["sandboxTemplateRef"]["name"]
        .as_str()
        .unwrap_or_default();
    let Ok(template) = store.get("sandboxtemplates", template) else {
        return not(
            "TemplateNotFound",
            &format!("SandboxTemplate \"{template}\" not found"),
        );
    };
    let of_pool = uid(&pool);
    let mut waiting: Vec<Value> = store
        .list("sandboxes")
        .into_iter()
        .filter(|it| it["metadata"]["ownerReferences"][0]["uid"] == of_pool.as_str())
        .collect();
    // The ready ones are taken first, then those that at least have an address.
    waiting.sort_by_key(|it| !is_ready(it));
    let adopted = waiting.iter().find(|it| is_ready(it) || has_address(it));
    let sandbox = match adopted {
        Some(sandbox) => store.update("sandboxes", NAMESPACE, name(sandbox), |it| {
            it["metadata"]["ownerReferences"] = json!([owner("SandboxClaim", claim)]);
        }),
        None if !waiting.is_empty() && is_young(claim) => return,
        // An exhausted pool is no reason to wait: the sandbox is made for the claim, and has its name.
        None => store.create(
            "sandboxes",
            NAMESPACE,
            sandbox_of(&template, json!(name(claim)), owner("SandboxClaim", claim)),
        ),
    };
    if let Ok(sandbox) = sandbox {
        mirror(store, claim, &sandbox);
    }
}

fn mirror(store: &Store, claim: &Value, sandbox: &Value) {
    let conditions = sandbox["status"]["conditions"].as_array();
    let ready = conditions.and_then(|all| all.iter().find(|it| it["type"] == "Ready"));
    let text = |key: &str| ready.and_then(|it| it[key].as_str()).unwrap_or_default();
    let reason = match text("reason") {
        "" => "SandboxNotReady",
        reason => reason,
    };
    let more = json!({"sandbox": {"name": name(sandbox), "podIPs": sandbox["status"]["podIPs"]}});
    set_ready(store, claim, is_ready(sandbox), reason, text("message"), more);
}

fn fill(store: &Store, pool: &Value) {
    let of_pool = uid(pool);
    let own: Vec<Value> = store
        .list("sandboxes")
        .into_iter()
        .filter(|it| it["metadata"]["ownerReferences"][0]["uid"] == of_pool.as_str())
        .collect();
    let ready = own.iter().filter(|it| is_ready(it)).count();
    let wanted = pool["spec"]["replicas"].as_u64().unwrap_or(1);
    let template = pool["spec"]["sandboxTemplateRef"]["name"]
        .as_str()
        .unwrap_or_default();
    if let Ok(template) = store.get("sandboxtemplates", template) {
        for _ in own.len() as u64..wanted {
            let mut sandbox = sandbox_of(&template, Value::Null, owner("SandboxWarmPool", pool));
            sandbox["metadata"]["generateName"] = json!(format!("{}-", name(pool)));
            let _ = store.create("sandboxes", NAMESPACE, sandbox);
        }
    }
    let status = json!({"replicas": own.len(), "readyReplicas": ready});
    let _ = store.update("sandboxwarmpools", NAMESPACE, name(pool), |it| {
        merge(&mut it["status"], &status);
    });
}

#[expect(clippy::needless_pass_by_value, reason = "callers make the values for it")]
fn sandbox_of(template: &Value, name: Value, owner: Value) -> Value {
    json!({
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {"podTemplate": template["spec"]["podTemplate"]},
    })
}

/// Sets the condition `Ready` and more of a status, if that changes anything.
#[expect(clippy::needless_pass_by_value, reason = "callers make the values for it")]
fn set_ready(store: &Store, object: &Value, ready: bool, reason: &str, message: &str, more: Value) {
    let plural = if object["kind"] == "Sandbox" {
        "sandboxes"
    } else {
        "sandboxclaims"
    };
    let _ = store.update(plural, NAMESPACE, name(object), |it| {
        let status = if ready { "True" } else { "False" };
        let old = &it["status"]["conditions"][0];
        let same = old["status"] == status && old["reason"] == reason && old["message"] == message;
        let since = if same {
            old["lastTransitionTime"].clone()
        } else {
            json!(timestamp())
        };
        let condition = json!({
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since,
        });
        merge(&mut it["status"], &more);
        it["status"]["conditions"] = json!([condition]);
    });
}

fn has_address(sandbox: &Value) -> bool {
    let addresses = sandbox["status"]["podIPs"].as_array();
    addresses.is_some_and(|all| !all.is_empty())
}

fn is_young(claim: &Value) -> bool {
    let created = claim["metadata"]["creationTimestamp"].as_str();
    let created = created.and_then(|it| it.parse::<Timestamp>().ok());
    created.is_some_and(|created| SystemTime::from(created) + GRACE > SystemTime::now())
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter()
            .any(|it| it["type"] == "Ready" && it["status"] == "True")
    })
}

fn owner(kind: &str, object: &Value) -> Value {
    json!({"kind": kind, "name": name(object), "uid": uid(object), "controller": true})
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}
