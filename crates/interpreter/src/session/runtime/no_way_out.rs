//! Stubs of the egress in a library that was built without the feature `egress`.

use std::collections::BTreeMap;
use std::future::{Ready, ready};

use cellblock_sandbox::limits::NetworkPolicy;

use crate::error::{Error, Result};
use crate::session::journal::Journal;
use crate::session::options::SessionOptions;
use crate::session::runtime::Runtime;

/// There is none.
#[derive(Debug, Default)]
pub(in crate::session) struct WayOut;

/// No variables.
static NONE: BTreeMap<String, String> = BTreeMap::new();

impl WayOut {
    pub(in crate::session) const fn of(_: &SessionOptions) -> Self {
        Self
    }

    pub(in crate::session) const fn close(&self) {}
}

impl Runtime {
    pub(in crate::session) fn open_way_out(&self, _: &Journal) -> Ready<Result<()>> {
        ready(match self.limits.network {
            NetworkPolicy::Egress => Err(Error::Argument {
                name: "network",
                missing: false,
                reason: "`egress` needs a build with the feature `egress`".to_owned(),
            }),
            _ => Ok(()),
        })
    }

    pub(in crate::session) const fn branch_way_out(&self, _: &Self, _: &str) {}

    pub(in crate::session) fn show_way_out(&self, _: &Journal) -> Ready<Result<bool>> {
        ready(Ok(true))
    }

    pub(in crate::session) const fn way_out_env(&self) -> &BTreeMap<String, String> {
        &NONE
    }
}
