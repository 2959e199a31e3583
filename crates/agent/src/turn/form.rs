//! Calls that the client serves in forms other than that of a function.

use std::collections::HashSet;
use std::sync::Arc;

use cellblock_interpreter::toolset::shell::SHELL;
use regex::Regex;

use super::builder::ResponseBuilder;
use super::functions::Functions;
use super::step::{Call, CallPurpose, ModelStep};
use super::{patch, search, shell};
use crate::wire::{
    CallKind, CustomCall, CustomFormat, GrammarSyntax, Item, ItemStatus, LocalShellAction, LocalShellCall,
    PatchCall, SearchCall, SearchExecution, ShellCall, ShellEnvironment, ShellPlace, Tool, custom_input,
};

/// Form in which the client gets a call once it is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallForm {
    /// Commands that run on its computer.
    Shell,
    /// Change of one of its files.
    Patch,
    /// Command that runs on its computer, in the older form.
    LocalShell,
    /// Text of this format, for one of its tools.
    Text(CustomFormat),
    /// Search of deferred tools, which may be served here.
    Search(SearchExecution),
}

/// Returns the form of a call of a tool that only the client can serve, by the model's name of it.
pub(super) fn form_of(tools: &[Tool], functions: &Functions, name: &str) -> Option<CallForm> {
    let known = |tool: &Tool| match tool {
        Tool::Shell {
            environment: ShellEnvironment::Local { .. },
            ..
        } if name == SHELL => Some(CallForm::Shell),
        Tool::ApplyPatch { .. } if name == tool.name() => Some(CallForm::Patch),
        Tool::LocalShell if name == tool.name() => Some(CallForm::LocalShell),
        Tool::ToolSearch(search) if name == tool.name() => Some(CallForm::Search(search.execution)),
        _ => None,
    };
    let custom = || functions.find(name)?.custom.clone();
    tools
        .iter()
        .find_map(known)
        .or_else(|| custom().map(CallForm::Text))
}

impl ModelStep {
    /// Hands calls to the client in their forms, once they are complete. Those that the client could
    /// not read go back to the model, which has read these items.
    pub(super) fn hand_over(&mut self, items: &[Item], telling: &mut ResponseBuilder<'_>) {
        let earlier = items.iter().filter_map(|item| match item {
            Item::FunctionCall(call) => Some(call.call_id.clone()),
            Item::Program(program) => Some(program.call_id.clone()),
            _ => None,
        });
        let mut known: HashSet<String> = earlier.collect();
        for call in &mut self.calls {
            // Some models count their calls anew in each step, and clients find calls by their ids.
            let has_item = matches!(
                call.wants,
                CallPurpose::Form(_) | CallPurpose::Shell { .. } | CallPurpose::Program { .. }
            );
            if !known.insert(call.id.clone()) && has_item {
                call.id = telling.ids.mint("call");
            }
            if let CallPurpose::Form(form) = &call.wants {
                let handed_over = match form {
                    CallForm::Search(SearchExecution::Server) => telling.search(call),
                    form => telling.hand_over(form, call).map(CallPurpose::HandedOver),
                };
                call.wants = handed_over.unwrap_or_else(CallPurpose::Refused);
            }
            if let CallPurpose::Program { place } = &call.wants {
                let place = Arc::clone(place);
                call.wants = match telling.start_program(&call.id, &call.arguments, &*place) {
                    Ok(program) => CallPurpose::Started { program, place },
                    Err(why) => CallPurpose::Refused(why),
                };
            }
        }
    }
}

impl ResponseBuilder<'_> {
    /// Writes the item of a call, and returns its id.
    fn hand_over(&mut self, form: &CallForm, call: &Call) -> Result<String, String> {
        match form {
            CallForm::Shell => {
                let arguments = shell::arguments(&call.arguments)?;
                let id = self.ids.mint(CallKind::Shell.call_prefix());
                self.draft.whole_shell_call(ShellCall {
                    id: id.clone(),
                    status: ItemStatus::Completed,
                    call_id: call.id.clone(),
                    action: arguments.into(),
                    environment: Some(ShellPlace::Local),
                });
                Ok(id)
            }
            CallForm::Text(format) => {
                let input = custom_input(&call.arguments);
                check_text(format, &input)?;
                let id = self.ids.mint(CallKind::Custom.call_prefix());
                self.draft.whole_custom_call(CustomCall {
                    id: id.clone(),
                    status: ItemStatus::Completed,
                    call_id: call.id.clone(),
                    name: call.name.clone(),
                    namespace: call.namespace.clone(),
                    input,
                });
                Ok(id)
            }
            CallForm::LocalShell => {
                let action = LocalShellAction::parse(&call.arguments)?;
                let id = self.ids.mint(CallKind::LocalShell.call_prefix());
                self.draft.whole_local_shell_call(LocalShellCall {
                    id: id.clone(),
                    status: ItemStatus::Completed,
                    call_id: call.id.clone(),
                    action,
                });
                Ok(id)
            }
            CallForm::Search(execution) => {
                let arguments = search::arguments(&call.arguments)?;
                let id = self.ids.mint(CallKind::Search.call_prefix());
                self.draft.whole_search_call(SearchCall {
                    id: id.clone(),
                    status: ItemStatus::Completed,
                    execution: *execution,
                    call_id: Some(call.id.clone()),
                    arguments: arguments.into(),
                });
                Ok(id)
            }
            CallForm::Patch => {
                let operation = patch::operation(&call.arguments)?;
                let id = self.ids.mint(CallKind::Patch.call_prefix());
                self.draft.whole_patch_call(PatchCall {
                    id: id.clone(),
                    status: ItemStatus::Completed,
                    call_id: call.id.clone(),
                    operation,
                });
                Ok(id)
            }
        }
    }
}

/// Checks a text that must match a regular expression. Other grammars are the client's to check.
fn check_text(format: &CustomFormat, input: &str) -> Result<(), String> {
    let CustomFormat::Grammar {
        syntax: GrammarSyntax::Regex,
        definition,
    } = format
    else {
        return Ok(());
    };
    match Regex::new(&format!(r"\A(?:{definition})\z")) {
        Ok(regex) if !regex.is_match(input) => Err(format!(
            "The tool was not called: its input does not match the regular expression `{definition}` as a \
             whole. Call it again with an input that does."
        )),
        Ok(_) => Ok(()),
        Err(error) => {
            // Other engines have more syntax.
            tracing::debug!(%error, "a text is not checked");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_must_match_its_regular_expression_as_a_whole() {
        let of = |definition: &str| CustomFormat::Grammar {
            syntax: GrammarSyntax::Regex,
            definition: definition.to_owned(),
        };
        assert_eq!(check_text(&of("[a-z]+|1"), "abc"), Ok(()));
        for wrong in ["abc1", "", "abc\n"] {
            let told = check_text(&of("[a-z]+|1"), wrong).unwrap_err();
            assert!(told.contains("`[a-z]+|1`"), "{wrong:?}");
        }
        // Syntax that is unknown here is left to the client.
        assert_eq!(check_text(&of("(?=a)b"), "x"), Ok(()));
        assert_eq!(check_text(&CustomFormat::Text, "anything"), Ok(()));
    }
}
