//! Deferred tools of a turn: the model does not see them until a search has loaded them.

use crate::wire::{CallKind, Item, MAX_DEFERRED, SearchTool, Tool};

/// The deferred tools of a turn.
#[derive(Debug, Default)]
pub(super) struct DeferredTools {
    /// The search, if the request has one.
    pub(super) search: Option<SearchTool>,
    /// Tools that searches of earlier turns loaded, in their order.
    pub(super) earlier: Vec<Tool>,
    /// The model's names of loaded tools; the last were loaded last.
    pub(super) loaded: Vec<String>,
}

impl DeferredTools {
    /// Returns the deferred tools of a request. Tools of earlier searches count only if it can search.
    pub(super) fn of(tools: &[Tool], conversation: &[Item]) -> Self {
        let search = tools.iter().find_map(|tool| match tool {
            Tool::ToolSearch(search) => Some(search.clone()),
            _ => None,
        });
        let mut earlier = Vec::new();
        // Models know tools by name, so that a function like a hosted tool would be offered as a second one.
        let fixed: Vec<_> = tools.iter().filter_map(Tool::fixed_name).collect();
        let is_fixed =
            |tool: &Tool| matches!(tool, Tool::Function(_) | Tool::Custom(_)) && fixed.contains(&tool.name());
        if search.is_some() {
            let outputs = conversation.iter().rev().filter_map(|item| match item {
                Item::ToolSearchOutput(output) => Some(&output.tools),
                _ => None,
            });
            // The last ones, if there are too many.
            let mut room = MAX_DEFERRED;
            let tools = outputs.flat_map(|tools| tools.iter().rev());
            for tool in tools.filter(|tool| !is_fixed(tool)) {
                let Some(left) = room.checked_sub(tool.offered_as()) else {
                    break;
                };
                room = left;
                earlier.push(tool.clone());
            }
            earlier.reverse();
        }
        Self {
            search,
            earlier,
            loaded: Vec::new(),
        }
    }

    /// Offers tools from now on, each once.
    pub(super) fn load(&mut self, names: Vec<String>) {
        for name in names {
            self.loaded.retain(|loaded| *loaded != name);
            self.loaded.push(name);
        }
    }
}

/// Returns the message for a call of a tool that is not loaded.
pub(super) fn not_loaded(name: &str) -> String {
    let search = CallKind::Search.function();
    format!(
        "`{name}` was not called: it is not loaded. Find it with `{search}`, and call it in the next step."
    )
}
