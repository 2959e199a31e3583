//! Kinds of calls that have items of their own, and that models know as function calls.

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A function.
    Function,
    /// Commands of a shell.
    Shell,
    /// A change of one of the client's files.
    Patch,
    /// A tool of the client that takes one text.
    Custom,
    /// A command on the client's computer, in the older form.
    LocalShell,
    /// A program that calls functions.
    Program,
    /// A search of deferred tools.
    Search,
}

/// All kinds except functions.
const KINDS: [CallKind; 6] = [
    CallKind::Shell,
    CallKind::Patch,
    CallKind::Custom,
    CallKind::LocalShell,
    CallKind::Program,
    CallKind::Search,
];

/// Beginning of the id of a call that was served here.
const SERVED: &str = "fc_";

impl CallKind {
    /// Returns the kind of a function call or its output, which the id of its item tells.
    pub fn of(id: &str) -> Self {
        let id = id.strip_prefix(SERVED).unwrap_or(id);
        let prefix = id.split('_').next().unwrap_or_default();
        let known = KINDS.into_iter();
        let mut kinds = known.filter(|kind| [kind.call_prefix(), kind.output_prefix()].contains(&prefix));
        kinds.next().unwrap_or(Self::Function)
    }

    /// Returns its name in error messages.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Shell => "shell",
            Self::Patch => "apply patch",
            Self::Custom => "custom tool",
            Self::LocalShell => "local shell",
            Self::Program => "program",
            Self::Search => "tool search",
        }
    }

    /// Returns the type of the item that has the output.
    pub const fn output_type(self) -> &'static str {
        match self {
            Self::Function => "function_call_output",
            Self::Shell => "shell_call_output",
            Self::Patch => "apply_patch_call_output",
            Self::Custom => "custom_tool_call_output",
            Self::LocalShell => "local_shell_call_output",
            Self::Program => "program_output",
            Self::Search => "tool_search_output",
        }
    }

    /// Returns the name of the function that a model calls; empty if the client names it.
    pub const fn function(self) -> &'static str {
        match self {
            Self::Function | Self::Custom => "",
            Self::Shell => cellblock_interpreter::toolset::shell::SHELL,
            Self::Patch => "apply_patch",
            Self::LocalShell => "local_shell",
            Self::Program => cellblock_interpreter::toolset::program::PROGRAM,
            Self::Search => "tool_search",
        }
    }

    /// Returns the prefix of the ids of calls.
    pub const fn call_prefix(self) -> &'static str {
        match self {
            Self::Function => "fc",
            Self::Shell => "sh",
            Self::Patch => "ap",
            Self::Custom => "ctc",
            Self::LocalShell => "lsh",
            Self::Program => "prog",
            Self::Search => "tsc",
        }
    }

    /// Returns the prefix of the ids of outputs.
    pub const fn output_prefix(self) -> &'static str {
        match self {
            Self::Function => "fco",
            Self::Shell => "sho",
            Self::Patch => "apo",
            Self::Custom => "ctco",
            Self::LocalShell => "lsho",
            Self::Program => "po",
            Self::Search => "tso",
        }
    }
}

/// Returns the id of the function call of an item that was served here, by which the item is found.
pub fn served(id: &str) -> String {
    format!("{SERVED}{id}")
}

/// Returns whether a function call with this id ran commands in one of our containers.
pub fn is_served_shell(id: &str) -> bool {
    id.starts_with(SERVED) && CallKind::of(id) == CallKind::Shell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_the_kind_of_its_call() {
        for (id, kind, is_served) in [
            ("sh_1", CallKind::Shell, false),
            ("sho_1", CallKind::Shell, false),
            ("ap_1", CallKind::Patch, false),
            ("apo_1", CallKind::Patch, false),
            ("ctc_1", CallKind::Custom, false),
            ("ctco_1", CallKind::Custom, false),
            ("prog_1", CallKind::Program, false),
            ("po_1", CallKind::Program, false),
            ("fc_prog_1", CallKind::Program, false),
            ("tsc_1", CallKind::Search, false),
            ("tso_1", CallKind::Search, false),
            ("fc_sh_1", CallKind::Shell, true),
            ("fc_1", CallKind::Function, false),
            ("fc_ci_1", CallKind::Function, false),
            ("shot", CallKind::Function, false),
        ] {
            assert_eq!((CallKind::of(id), is_served_shell(id)), (kind, is_served), "{id}");
        }
    }
}
