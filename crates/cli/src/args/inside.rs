//! The arguments of `inside`, which only this program itself writes.

use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::walls::inside::HostAddress;
use cellblock_sandbox::jail::protection::Demands;
use clap::Args;

use crate::error::{Error, Result};
use crate::policy::PolicyArgs;

/// Preparation of a machine, and the address of its host.
#[derive(Args, Clone, Debug)]
pub(crate) struct InsideArgs {
    /// ID of the image
    #[arg(long)]
    pub(crate) image: String,
    /// Address of the host after the restore
    #[arg(long)]
    pub(crate) host: HostAddress,
    /// Maximum limits of the sandbox, as JSON
    #[arg(long)]
    limits: String,
    /// Number of kernels that are ready before the snapshot
    #[arg(long, default_value_t = 0)]
    pub(crate) ready: usize,
    /// Rely on the wall of gVisor for the protections that its kernel lacks
    #[arg(long)]
    pub(crate) walled: bool,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

impl InsideArgs {
    pub(crate) fn demands(&self) -> Demands {
        if self.walled {
            Demands::walled()
        } else {
            self.policy.demands()
        }
    }

    pub(crate) fn limits(&self) -> Result<Limits> {
        serde_json::from_str(&self.limits)
            .map_err(|error| Error::Refused(format!("invalid `--limits` `{}`: {error}", self.limits)))
    }
}

/// The arguments of `inside`, for the first process of a virtual machine.
#[derive(Args, Clone, Debug)]
pub(crate) struct BootMachineArgs {
    #[arg(last = true, hide = true)]
    pub(crate) words: Vec<String>,
}
