//! Demands of the command line for each protection.

use cellblock_interpreter::egress::{AllowRule, EgressPolicy};
use cellblock_interpreter::walls::{WallOptions, choose};
use cellblock_sandbox::backend::{BackendChoice, BackendKind};
use cellblock_sandbox::jail::protection::{Demand, Demands, Protection};
use cellblock_sandbox::limits::NetworkPolicy;
use clap::Args;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};

use crate::env_vars;
use crate::error::{Error, Result};

/// The policy.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PolicyArgs {
    /// Require a protection (`strict`), allow it to be missing (`degradable`), or turn it off
    /// (`disabled`)
    #[arg(long = "protection", value_name = "NAME=DEMAND", value_parser = parse_protection)]
    pub(crate) protections: Vec<(Protection, Demand)>,
    /// Allow running without namespaces if the machine does not permit them, as in most containers:
    /// then only Landlock, seccomp and a user ID protect the host, and every result lists what is
    /// missing. Namespaces are still used if they are available
    #[arg(long)]
    pub(crate) without_namespaces: bool,
}

/// The network inside sandboxes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NetworkArgs {
    /// Choose the network inside the sandbox: `none`; `loopback`, where servers on 127.0.0.1 and ::1
    /// work and nothing leaves the sandbox; or `egress`, which adds the hosts of --allow [default: none]
    #[expect(clippy::doc_markdown, reason = "the help has no markup")]
    #[arg(long, value_name = "POLICY", default_value_t, hide_default_value = true)]
    pub(crate) network: NetworkPolicy,
    /// Let code reach a host through a proxy, with `--network egress`: a name, `*.DOMAIN` or an IP
    /// address, on the ports 80 and 443 or the one that is named
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) allow: Vec<AllowRule>,
}

impl NetworkArgs {
    /// Returns the policy for what code can reach, if anything.
    pub(crate) fn egress(&self) -> Result<Option<EgressPolicy>> {
        match (self.network, self.allow.is_empty()) {
            (NetworkPolicy::Egress, false) => Ok(Some(EgressPolicy {
                allow: self.allow.clone(),
                ..EgressPolicy::default()
            })),
            (NetworkPolicy::Egress, true) => Err(Error::Refused(
                "`--network egress` needs hosts that code may reach; name each with `--allow HOST`"
                    .to_owned(),
            )),
            (_, true) => Ok(None),
            (other, false) => Err(Error::Refused(format!(
                "`--allow` is for `--network egress`, and the network is `{other}`; add `--network egress`"
            ))),
        }
    }
}

/// The wall around sandboxes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct WallArgs {
    /// Choose the wall around sandboxes: `process` (the host's kernel), `gvisor`, `microvm`, or
    /// `auto`, the strongest that works here [default: process, with --minimum-backend: auto]
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Option<BackendChoice>,
    /// Refuse to run behind a weaker wall than this one
    #[arg(long, value_name = "BACKEND")]
    pub(crate) minimum_backend: Option<BackendKind>,
    /// Allow emulated microVMs where KVM does not work. They are slow, and QEMU does not consider its
    /// emulator a security boundary
    #[arg(long)]
    pub(crate) emulation: bool,
}

impl PolicyArgs {
    /// The demands; what is named overrides the set.
    pub(crate) fn demands(&self) -> Demands {
        let mut demands = if self.without_namespaces || env_vars::WITHOUT_NAMESPACES.is_on() {
            Demands::without_namespaces()
        } else {
            Demands::default()
        };
        demands.0.extend(self.protections.iter().copied());
        demands
    }
}

impl WallArgs {
    /// Returns the options for machines of the backends.
    pub(crate) fn options(&self) -> WallOptions {
        let mut walls = WallOptions::default();
        walls.microvm.emulation = self.emulation;
        walls
    }

    /// The backend, which is never weaker than the minimum.
    pub(crate) async fn backend(&self) -> Result<BackendKind> {
        Ok(choose(self.backend, self.minimum_backend, &self.options()).await?)
    }
}

fn parse_protection(text: &str) -> std::result::Result<(Protection, Demand), String> {
    let Some((name, demand)) = text.split_once('=') else {
        return Err(format!(
            "`{text}` has no `=`; write for example `landlock=strict`"
        ));
    };
    let protection = named(name).ok_or_else(|| {
        let names: Vec<_> = Protection::ALL.iter().map(ToString::to_string).collect();
        format!("`{name}` is not a protection; there are {}", names.join(", "))
    })?;
    let demand =
        named(demand).ok_or_else(|| format!("`{demand}` is not `strict`, `degradable` or `disabled`"))?;
    Ok((protection, demand))
}

/// An enum's variant by the name that it is serialised under.
fn named<'de, T: Deserialize<'de>>(name: &'de str) -> Option<T> {
    let name: StrDeserializer<'de, ValueError> = name.into_deserializer();
    T::deserialize(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protections_go_by_the_names_of_reports() {
        assert_eq!(
            parse_protection("net_namespace=strict"),
            Ok((Protection::NetNamespace, Demand::Strict))
        );
        assert!(
            parse_protection("firewall=strict")
                .unwrap_err()
                .starts_with("`firewall` is not a protection; there are user_namespace, ")
        );
        assert_eq!(
            parse_protection("seccomp=off").unwrap_err(),
            "`off` is not `strict`, `degradable` or `disabled`"
        );
    }

    #[test]
    fn named_protections_override_the_set() {
        let args = PolicyArgs {
            protections: vec![(Protection::PidNamespace, Demand::Strict)],
            without_namespaces: true,
        };
        assert_eq!(args.demands().of(Protection::UserNamespace), Demand::Degradable);
        assert_eq!(args.demands().of(Protection::PidNamespace), Demand::Strict);
        assert_eq!(args.demands().of(Protection::Seccomp), Demand::Strict);
        assert_eq!(PolicyArgs::default().demands(), Demands::default());
    }
}
