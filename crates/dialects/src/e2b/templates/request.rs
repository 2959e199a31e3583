//! Bodies of requests about builds. A field that is accepted is enforced; others are refused by name.

use serde::Deserialize;
use serde_json::Value;

use super::super::error::{Answer, Problem};
use super::super::state::E2b;
use super::base::BuildBase;
use super::builds::TemplateBuild;
use crate::bounded::{BoundedDescription, BoundedName};

/// Maximum number of steps of a build.
const MAX_STEPS: usize = 500;
const MIB: u64 = 1 << 20;

/// A build to make.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewBuild {
    name: Option<BoundedName>,
    /// Its name in old clients.
    alias: Option<BoundedName>,
    pub(super) tags: Option<BoundedDescription<Vec<String>>>,
    #[serde(rename = "teamID")]
    team: Option<Value>,
    cpu_count: Option<u64>,
    #[serde(rename = "memoryMB")]
    memory: Option<u64>,
    min_free_disk_mb: Option<u64>,
}

/// The steps of a build to start.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BuildStart {
    from_image: Option<BoundedName>,
    from_template: Option<BoundedName>,
    from_image_registry: Option<Value>,
    /// Builds take nothing from a cache, so each is as if this was set.
    #[serde(rename = "force")]
    _force: Option<bool>,
    pub(super) steps: Vec<StepRequest>,
    pub(super) start_cmd: Option<BoundedDescription<String>>,
    pub(super) ready_cmd: Option<BoundedDescription<String>>,
}

/// A step.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StepRequest {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) args: BoundedDescription<Vec<String>>,
    pub(super) files_hash: Option<BoundedName>,
    #[serde(rename = "force")]
    _force: Option<bool>,
    #[serde(rename = "forceUpload")]
    _force_upload: Option<bool>,
}

impl NewBuild {
    /// Returns the name of the template, which may have a tag.
    pub(super) fn name(&self) -> Answer<&str> {
        let name = self.name.as_ref().or(self.alias.as_ref());
        name.map(|it| it.as_str())
            .ok_or_else(|| Problem::invalid("`name` is missing; name the template, such as \"app:v1\""))
    }

    /// Rejects what the sandboxes of this server would not have.
    pub(super) fn check(&self, e2b: &E2b) -> Answer<()> {
        if let Some(team) = self.team.as_ref().filter(|it| !it.is_null()) {
            return Err(Problem::unenforced(
                "teamID",
                team,
                "keys have no teams; leave it out",
            ));
        }
        let limits = e2b.host.interpreter.limits();
        let cores = limits.cpu_millis.map(|it| it.div_ceil(1000));
        let memory = Some(limits.memory_bytes / MIB);
        let disk = Some(limits.disk_bytes / MIB);
        for (field, wanted, most, setting) in [
            ("cpuCount", self.cpu_count, cores, "cpus"),
            ("memoryMB", self.memory, memory, "memory"),
            ("minFreeDiskMb", self.min_free_disk_mb, disk, "disk"),
        ] {
            if let (Some(wanted), Some(most)) = (wanted, most)
                && wanted > most
            {
                let why = format!(
                    "sandboxes of this server have {most}; use at most that, or let the operator raise \
                     `limits: {{{setting}: …}}`"
                );
                return Err(Problem::unenforced(field, &wanted, &why));
            }
        }
        Ok(())
    }
}

impl BuildStart {
    /// Returns the base, and rejects what would fail later.
    pub(super) fn check(&self, e2b: &E2b, build: &TemplateBuild) -> Answer<BuildBase> {
        // Its value is a secret.
        if self.from_image_registry.as_ref().is_some_and(|it| !it.is_null()) {
            let why = "this server pulls no images for clients; use its own image, for example with \
                       `from_python_image`";
            return Err(Problem::unenforced("fromImageRegistry", &"…", why));
        }
        if self.steps.len() > MAX_STEPS {
            return Err(Problem::invalid(format!(
                "`steps`: there are {}, the limit is {MAX_STEPS}; join commands with `&&`",
                self.steps.len()
            )));
        }
        for (index, step) in self.steps.iter().enumerate() {
            if let Some(hash) = &step.files_hash
                && !build.has(hash)
            {
                return Err(Problem::invalid(format!(
                    "`steps[{index}].filesHash`: the files {hash:?} were not uploaded; upload them to the \
                     address of `GET /templates/{{id}}/files/{{hash}}`",
                    hash = hash.as_str()
                )));
            }
        }
        let image = self.from_image.as_ref().map(|it| it.as_str());
        let template = self.from_template.as_ref().map(|it| it.as_str());
        BuildBase::read(image, template, &e2b.python(), &e2b.options)
    }
}
