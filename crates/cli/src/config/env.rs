//! Values that the environment sets over those of the file.

use super::mistake::Mistake;
use super::node::{Node, Origin};
use super::yaml;

/// The beginning of the variables. What follows is the path of a key, in upper case, with `__`
/// between its parts.
pub(crate) const PREFIX: &str = "CELLBLOCK_SERVE__";

/// Puts the values of variables over those of the tree.
pub(super) fn overlay(
    tree: &mut Node,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<(), Mistake> {
    let mut ours: Vec<_> = variables
        .into_iter()
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect();
    // Of `…__LIMITS` and `…__LIMITS__MEMORY`, the one that says more comes last.
    ours.sort();
    for (name, text) in ours {
        let path: Vec<_> = name[PREFIX.len()..]
            .to_lowercase()
            .split("__")
            .map(str::to_owned)
            .collect();
        let origin = Origin::Variable(name);
        if path.iter().any(String::is_empty) {
            let message = format!(
                "part of the name is empty; the name for the key `limits.memory`, for example, is \
                 `{PREFIX}LIMITS__MEMORY`"
            );
            return Err(Mistake::told(Some(origin), message));
        }
        let value = yaml::value(&text, &origin);
        tree.set(&path, value);
    }
    Ok(())
}
