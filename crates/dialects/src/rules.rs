//! Network rules of a sandbox that its client sends: they narrow the server's list of hosts.

use cellblock_interpreter::egress::{Destination, EgressPolicy, EgressRestriction};
use cellblock_interpreter::limits::NetworkPolicy;

/// Maximum number of entries of a list of rules.
const MAX_RULES: usize = 256;

/// Reads the destinations of rules.
///
/// # Errors
///
/// Returns what is wrong with the first that is invalid, as a fragment.
pub(crate) fn destinations<'a>(
    rules: impl ExactSizeIterator<Item = &'a String>,
) -> Result<Vec<Destination>, String> {
    let count = rules.len();
    if count > MAX_RULES {
        return Err(format!(
            "{count} rules are too many, the limit is {MAX_RULES}; use larger CIDR blocks"
        ));
    }
    let read = |rule: &String| {
        rule.parse::<Destination>()
            .map_err(|error| format!("`{rule}` cannot be enforced: {error}"))
    };
    rules.map(read).collect()
}

/// Returns the network and the restriction that enforce rules, of what a caller may have.
///
/// # Errors
///
/// Returns why an exception would not be reached, as a fragment.
pub(crate) fn narrow(
    restriction: EgressRestriction,
    offered: NetworkPolicy,
    egress: Option<&EgressPolicy>,
) -> Result<(NetworkPolicy, EgressRestriction), String> {
    let egress = egress.filter(|_| offered == NetworkPolicy::Egress);
    for allowed in &restriction.except {
        let Some(egress) = egress else {
            return Err(format!(
                "`{allowed}` cannot be reached: sandboxes of this key have no way out; remove it, or let \
                 the operator set `limits: {{max_network: egress}}` and `egress: {{allow: \
                 [\"{allowed}\"]}}`"
            ));
        };
        if matches!(allowed, Destination::Hosts(hosts) if !egress.allows_some(hosts)) {
            return Err(format!(
                "`{allowed}` is not on this server's list of hosts; remove it, or let the operator add it \
                 with `egress: {{allow: [\"{allowed}\"]}}`"
            ));
        }
    }
    if restriction.except.is_empty() && restriction.deny.iter().any(Destination::is_everything) {
        return Ok((NetworkPolicy::Loopback, EgressRestriction::default()));
    }
    Ok((NetworkPolicy::Egress, restriction))
}
