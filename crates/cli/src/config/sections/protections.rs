//! Demands for each protection around a sandbox.

use std::collections::BTreeMap;

use cellblock_sandbox::jail::protection::{Demand, Demands, Protection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::env_vars;

/// Policy for the protections around a sandbox.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Protections {
    /// Allow running without namespaces if the machine does not permit them, as in most containers.
    /// `CELLBLOCK_WITHOUT_NAMESPACES=1` changes the default to `true`.
    pub(crate) without_namespaces: bool,
    /// Demand for each protection, by the name that `cellblock doctor` shows: `strict`,
    /// `degradable` or `disabled`.
    #[schemars(with = "BTreeMap<String, String>")]
    pub(crate) demands: BTreeMap<Protection, Demand>,
}

impl Default for Protections {
    fn default() -> Self {
        Self {
            without_namespaces: env_vars::WITHOUT_NAMESPACES.is_on(),
            demands: BTreeMap::new(),
        }
    }
}

impl Protections {
    /// The demands; what is named overrides the set.
    pub(crate) fn demands(&self) -> Demands {
        let mut demands = if self.without_namespaces {
            Demands::without_namespaces()
        } else {
            Demands::default()
        };
        demands.0.extend(&self.demands);
        demands
    }
}
