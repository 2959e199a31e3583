//! Network rules of a sandbox that its client sends: they narrow the server's list of hosts.

use cellblock_interpreter::egress::{Destination, EgressPolicy, EgressRestriction};
use cellblock_interpreter::limits::NetworkPolicy;

/// Maximum number of entries of a list of rules.
pub(crate) const MAX_RULES: usize = 256;
/// Characters of a rule that an error repeats.
const MAX_SHOWN: usize = 100;

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
            .map_err(|error| unenforceable(rule, &error))
    };
    rules.map(read).collect()
}

/// Describes a rule whose destination cannot be read, as a fragment.
pub(crate) fn unenforceable(rule: &str, error: &dyn std::fmt::Display) -> String {
    let shown: String = rule.chars().take(MAX_SHOWN).collect();
    format!("`{shown}` cannot be enforced: {error}")
}

/// Returns the network that a restriction leaves, of what a caller may have.
///
/// # Errors
///
/// Returns why an exception would not be reached, as a fragment.
pub(crate) fn narrow(
    restriction: &EgressRestriction,
    offered: NetworkPolicy,
    egress: Option<&EgressPolicy>,
) -> Result<NetworkPolicy, String> {
    for allowed in &restriction.except {
        reach(allowed, offered, egress)?;
    }
    let is_closed = restriction.except.is_empty() && restriction.deny.iter().any(Destination::is_everything);
    Ok(if is_closed {
        NetworkPolicy::Loopback
    } else {
        NetworkPolicy::Egress
    })
}

/// Checks that sandboxes of a caller can reach a destination, as far as it is known.
///
/// # Errors
///
/// Returns why not, as a fragment.
pub(crate) fn reach(
    allowed: &Destination,
    offered: NetworkPolicy,
    egress: Option<&EgressPolicy>,
) -> Result<(), String> {
    let Some(egress) = egress.filter(|_| offered == NetworkPolicy::Egress) else {
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
    Ok(())
}
