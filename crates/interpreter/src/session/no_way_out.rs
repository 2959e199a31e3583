//! Stubs of the egress in a library that was built without the feature `egress`.

use std::collections::BTreeMap;
use std::future::{Ready, ready};

use cellblock_sandbox::limits::NetworkPolicy;

use super::journal::Journal;
use super::runtime::Runtime;
use crate::error::{Error, Result};

/// There is none.
#[derive(Debug, Default)]
pub(super) struct WayOut;

/// No variables.
static NONE: BTreeMap<String, String> = BTreeMap::new();

impl WayOut {
    pub(super) const fn close(&self) {}
}

impl Runtime {
    pub(super) fn open_way_out(&self, journal: &Journal) -> Ready<Result<()>> {
        ready(match self.limits.network {
            NetworkPolicy::Egress => Err(Error::Argument {
                name: "network",
                missing: false,
                reason: "`egress` needs a build with the feature `egress`".to_owned(),
            }),
            _ => Ok(()),
        })
    }

    pub(super) fn show_way_out(&self, journal: &Journal) -> Ready<Result<bool>> {
        ready(Ok(true))
    }

    pub(super) const fn way_out_env(&self) -> &BTreeMap<String, String> {
        &NONE
    }
}
