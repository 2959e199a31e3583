//! Objects, and the log of their changes, as in etcd.

use std::collections::BTreeMap;
use std::time::SystemTime;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::schema;
use super::status::{Resource, failure, too_old};

/// A change.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) version: u64,
    pub(super) plural: &'static str,
    pub(super) kind: &'static str,
    pub(super) object: Value,
}

type Key = (&'static str, String);

#[derive(Debug, Default)]
struct StoreInner {
    objects: BTreeMap<Key, Value>,
    log: Vec<Event>,
    /// Version of the last change, and of the last one that is forgotten.
    version: u64,
    compacted: u64,
    made: u64,
}

/// All objects of a cluster.
#[derive(Debug)]
pub(super) struct Store {
    inner: Mutex<StoreInner>,
    changed: watch::Sender<u64>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            inner: Mutex::default(),
            changed: watch::channel(0).0,
        }
    }
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, StoreInner> {
        self.inner.lock()
    }

    /// Receives the version of each change.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(super) fn version(&self) -> u64 {
        self.lock().version
    }

    pub(super) fn list(&self, plural: &str) -> Vec<Value> {
        let inner = self.lock();
        let found = inner.objects.iter().filter(|((of, _), _)| *of == plural);
        found.map(|(_, object)| object.clone()).collect()
    }

    pub(super) fn get(&self, plural: &str, name: &str) -> Result<Value, Value> {
        let resource = known(plural)?;
        let found = self
            .lock()
            .objects
            .get(&(resource.plural, name.to_owned()))
            .cloned();
        found.ok_or_else(|| resource.not_found(name))
    }

    /// Returns the events after a version whose objects are wanted, and the last version; or the
    /// failure that they are forgotten.
    pub(super) fn since(
        &self,
        plural: &str,
        version: u64,
        wanted: &dyn Fn(&Value) -> bool,
    ) -> Result<(Vec<Event>, u64), Value> {
        let inner = self.lock();
        if version < inner.compacted {
            return Err(too_old(version, inner.compacted));
        }
        let from = inner.log.partition_point(|event| event.version <= version);
        let later = inner.log[from..].iter();
        let later = later.filter(|event| event.plural == plural && wanted(&event.object));
        Ok((later.cloned().collect(), inner.version))
    }

    pub(super) fn compact(&self) {
        let mut inner = self.lock();
        inner.log.clear();
        // Something must have happened since, or nobody's version would be too old.
        inner.version += 1;
        inner.compacted = inner.version;
    }

    pub(super) fn create(&self, plural: &str, namespace: &str, mut object: Value) -> Result<Value, Value> {
        let resource = known(plural)?;
        let mut inner = self.lock();
        inner.made += 1;
        let made = inner.made;
        let name = match (&object["metadata"]["name"], &object["metadata"]["generateName"]) {
            (Value::String(name), _) => name.clone(),
            (_, Value::String(beginning)) => format!("{beginning}{made:05x}"),
            _ => return Err(failure(422, "Invalid", "name or generateName is required")),
        };
        validate(resource, &name, &object)?;
        let key = (resource.plural, name.clone());
        if inner.objects.contains_key(&key) {
            return Err(resource.already_exists(&name));
        }
        object["apiVersion"] = json!(resource.api_version());
        object["kind"] = json!(resource.kind);
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["uid"] = json!(format!("00000000-0000-4000-8000-{made:012x}"));
        object["metadata"]["creationTimestamp"] = json!(timestamp());
        let object = inner.record(resource, "ADDED", object);
        inner.objects.insert(key, object.clone());
        self.changed.send_replace(inner.version);
        Ok(object)
    }

    /// Changes an object; nothing happens if `change` leaves it as it is.
    pub(super) fn update(
        &self,
        plural: &str,
        _namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Value, Value> {
        let resource = known(plural)?;
        let mut inner = self.lock();
        let key = (resource.plural, name.to_owned());
        let Some(old) = inner.objects.get(&key) else {
            return Err(resource.not_found(name));
        };
        let mut object = old.clone();
        change(&mut object);
        if object["metadata"]["uid"] != old["metadata"]["uid"] {
            let uid = |it: &Value| it["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            return Err(resource.precondition(name, &uid(&object), &uid(old)));
        }
        if object == *old {
            return Ok(object);
        }
        validate(resource, name, &object)?;
        let object = inner.record(resource, "MODIFIED", object);
        inner.objects.insert(key, object.clone());
        self.changed.send_replace(inner.version);
        Ok(object)
    }

    pub(super) fn remove(&self, plural: &str, _namespace: &str, name: &str) -> Result<Value, Value> {
        let resource = known(plural)?;
        let mut inner = self.lock();
        let removed = inner.objects.remove(&(resource.plural, name.to_owned()));
        let object = removed.ok_or_else(|| resource.not_found(name))?;
        let object = inner.record(resource, "DELETED", object);
        self.changed.send_replace(inner.version);
        Ok(object)
    }
}

impl StoreInner {
    fn record(&mut self, resource: &Resource, kind: &'static str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.log.push(Event {
            version: self.version,
            plural: Resource::of(resource.plural).map_or("", |it| it.plural),
            kind,
            object: object.clone(),
        });
        object
    }
}

fn known(plural: &str) -> Result<&'static Resource, Value> {
    let missing = || {
        failure(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
    };
    Resource::of(plural).ok_or_else(missing)
}

/// Checks the requirements of agent-sandbox's schemas.
fn validate(resource: &Resource, name: &str, object: &Value) -> Result<(), Value> {
    let required: &[&[&str]] = match resource.plural {
        "sandboxclaims" => &[&["spec", "warmPoolRef"], &["spec", "warmPoolRef", "name"]],
        "sandboxwarmpools" => &[&["spec", "sandboxTemplateRef", "name"]],
        "sandboxes" | "sandboxtemplates" => &[&["spec", "podTemplate"]],
        _ => &[],
    };
    for path in required {
        let found = path.iter().fold(object, |at, key| &at[*key]);
        if found.is_null() {
            return Err(resource.required(name, &path.join(".")));
        }
    }
    schema::check(resource, name, object)
}

/// Applies a merge patch.
pub(super) fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, change) in changes {
        if change.is_null() {
            if let Some(fields) = object.as_object_mut() {
                fields.remove(key);
            }
        } else {
            merge(&mut object[key], change);
        }
    }
}

/// Returns the time in RFC 3339, in whole seconds.
pub(super) fn timestamp() -> String {
    let now = k8s_openapi::jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    let whole = k8s_openapi::jiff::Timestamp::from_second(now.as_second()).unwrap_or_default();
    whole.to_string()
}
