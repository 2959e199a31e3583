//! Environment of the programs in a sandbox.

use std::collections::BTreeMap;

use crate::base::HeldLayer;

/// Returns the variables of a command: those of the way out, which the requested ones override, and
/// the path to packages that cells required.
pub(in crate::session) fn environment(
    layers: &[HeldLayer],
    way_out: &BTreeMap<String, String>,
    asked: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut env = way_out.clone();
    env.extend(asked.clone());
    if !layers.is_empty() {
        let paths: Vec<_> = layers
            .iter()
            .map(|layer| format!("/opt/layers/{layer}"))
            .collect();
        env.insert("PYTHONPATH".to_owned(), paths.join(":"));
    }
    env
}
