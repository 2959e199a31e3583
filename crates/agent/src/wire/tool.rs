//! Tools that a request offers to the model, and which of them it may or must choose.

use cellblock_interpreter::toolset::ToolDefinition;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::approval::ApprovalRule;
use super::call_kind::CallKind;
use super::custom::CustomTool;
use super::request::NetworkAllowlist;
use super::search::SearchTool;
use super::shell::ShellEnvironment;
use super::skill::SkillRequest;

/// The interpreter's name for models.
pub const INTERPRETER: &str = "code_interpreter";

/// A tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Tool {
    /// A function of the client, to which its calls are returned.
    Function(Function),
    /// Python in one of our sandboxes.
    CodeInterpreter {
        /// Container for its code.
        container: Container,
    },
    /// Commands of a shell.
    Shell {
        /// Place in which they run.
        environment: ShellEnvironment,
        /// Callers that may run them; null means the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowed_callers: Option<Vec<AllowedCaller>>,
    },
    /// Changes of the client's files.
    ApplyPatch {
        /// Callers that may make them; null means the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowed_callers: Option<Vec<AllowedCaller>>,
    },
    /// Commands on the client's computer, in the older form.
    LocalShell,
    /// Programs in JavaScript that call functions of the client.
    ProgrammaticToolCalling,
    /// A tool of the client that takes one text.
    Custom(CustomTool),
    /// The tools of a server, which are called here.
    Mcp(McpTool),
    /// Functions of the client with a common prefix.
    Namespace(Namespace),
    /// A search of deferred tools.
    ToolSearch(SearchTool),
}

impl Tool {
    /// Returns the name that is unique among tools of its type: that of a function or namespace, or
    /// a server's label.
    pub fn name(&self) -> &str {
        match self {
            Self::Function(function) => &function.name,
            Self::Custom(custom) => &custom.name,
            Self::CodeInterpreter { .. } => "code_interpreter",
            Self::Shell { .. } => CallKind::Shell.function(),
            Self::ApplyPatch { .. } => CallKind::Patch.function(),
            Self::LocalShell => CallKind::LocalShell.function(),
            Self::ProgrammaticToolCalling => CallKind::Program.function(),
            Self::Mcp(tool) => &tool.server_label,
            Self::Namespace(namespace) => &namespace.name,
            Self::ToolSearch(_) => CallKind::Search.function(),
        }
    }

    /// Returns whether it runs Python in one of our sandboxes.
    pub const fn is_interpreter(&self) -> bool {
        matches!(self, Self::CodeInterpreter { .. })
    }

    /// Returns the name of the field that has the container.
    const fn place_key(&self) -> &'static str {
        if self.is_interpreter() {
            "container"
        } else {
            "environment"
        }
    }

    /// Returns the container in which it runs, if that is one of ours.
    pub const fn container(&self) -> Option<&Container> {
        match self {
            Self::CodeInterpreter { container }
            | Self::Shell {
                environment: ShellEnvironment::Hosted(container),
                ..
            } => Some(container),
            _ => None,
        }
    }

    /// Returns whether it runs commands in one of our containers.
    pub const fn is_hosted_shell(&self) -> bool {
        matches!(self, Self::Shell { .. }) && self.container().is_some()
    }

    /// Returns whether it runs programs in JavaScript.
    pub const fn is_programs(&self) -> bool {
        matches!(self, Self::ProgrammaticToolCalling)
    }

    /// Returns its name if the model calls it by a name that no client chooses.
    pub fn fixed_name(&self) -> Option<&str> {
        match self {
            Self::CodeInterpreter { .. }
            | Self::Shell { .. }
            | Self::ApplyPatch { .. }
            | Self::LocalShell
            | Self::ProgrammaticToolCalling
            | Self::ToolSearch(_) => Some(self.name()),
            Self::Function(_) | Self::Custom(_) | Self::Mcp(_) | Self::Namespace(_) => None,
        }
    }

    /// Returns the client's functions in it, each with its namespace.
    pub fn functions(&self) -> impl Iterator<Item = (Option<&Namespace>, &Function)> {
        let (one, namespace) = match self {
            Self::Function(function) => (Some((None, function)), None),
            Self::Namespace(namespace) => (None, Some(namespace)),
            Self::CodeInterpreter { .. }
            | Self::Shell { .. }
            | Self::ApplyPatch { .. }
            | Self::LocalShell
            | Self::ProgrammaticToolCalling
            | Self::Custom(_)
            | Self::Mcp(_)
            | Self::ToolSearch(_) => (None, None),
        };
        let within = namespace.into_iter().flat_map(|namespace| {
            let members = namespace.tools.iter();
            members.filter_map(move |member| match member {
                Member::Function(function) => Some((Some(namespace), function)),
                Member::Custom(_) => None,
            })
        });
        one.into_iter().chain(within)
    }

    /// Returns the number of functions as which it is offered.
    pub fn offered_as(&self) -> usize {
        (self.functions().count() + self.customs().count()).max(1)
    }

    /// Returns the client's tools in it that take one text, each with its namespace.
    pub fn customs(&self) -> impl Iterator<Item = (Option<&Namespace>, &CustomTool)> {
        let (one, namespace) = match self {
            Self::Custom(custom) => (Some((None, custom)), None),
            Self::Namespace(namespace) => (None, Some(namespace)),
            _ => (None, None),
        };
        let within = namespace.into_iter().flat_map(|namespace| {
            let members = namespace.tools.iter();
            members.filter_map(move |member| match member {
                Member::Custom(custom) => Some((Some(namespace), custom)),
                Member::Function(_) => None,
            })
        });
        one.into_iter().chain(within)
    }
}

/// Tools of the client with a common prefix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Namespace {
    /// 1 to 64 of `a-z A-Z 0-9 _ -`.
    pub name: String,
    /// Purpose of the functions.
    pub description: String,
    /// The functions, at least one.
    pub tools: Vec<Member>,
}

/// A tool in a namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Member {
    /// A function of the client.
    Function(Function),
    /// A tool of the client that takes one text.
    Custom(CustomTool),
}

impl Member {
    /// Returns its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Function(function) => &function.name,
            Self::Custom(custom) => &custom.name,
        }
    }
}

/// The tools of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpTool {
    /// The client's label for the server.
    pub server_label: String,
    /// Address of the server; null for one that the operator has configured under this label.
    pub server_url: Option<String>,
    /// Description of the server for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_description: Option<String>,
    /// Selection of its tools; null means all.
    pub allowed_tools: Option<AllowedTools>,
    /// Callers that may call the tools; null means the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_callers: Option<Vec<AllowedCaller>>,
    /// Calls that need approval.
    pub require_approval: ApprovalRule,
    /// Whether the tools are offered only after a search has found them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub defer_loading: bool,
    /// Headers for the server. They may be secrets, so they are neither returned nor stored.
    #[serde(skip)]
    pub headers: Secrets,
}

/// A caller of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowedCaller {
    /// The model.
    Direct,
    /// Code that the model runs.
    Programmatic,
}

impl AllowedCaller {
    /// Returns whether it is among these; only the model is if there is no list.
    fn is_in(self, callers: Option<&[Self]>) -> bool {
        callers.unwrap_or(&[Self::Direct]).contains(&self)
    }
}

impl McpTool {
    /// Returns whether the model may call the tools itself.
    pub fn is_direct(&self) -> bool {
        AllowedCaller::Direct.is_in(self.allowed_callers.as_deref())
    }

    /// Returns whether code must be able to call the tools.
    pub fn is_programmatic(&self) -> bool {
        AllowedCaller::Programmatic.is_in(self.allowed_callers.as_deref())
    }
}

/// Names and values that are never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(pub Vec<(String, String)>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

/// Selection of a server's tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AllowedTools {
    /// Tools with these names.
    Names(Vec<String>),
    /// Tools that match a filter.
    Filter {
        /// Tools with these names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_names: Option<Vec<String>>,
        /// Tools that the server declares to be read-only, or the others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read_only: Option<bool>,
    },
}

impl AllowedTools {
    /// Returns whether a tool is selected. That it only reads is a claim of its server.
    pub fn allows(&self, name: &str, reads: bool) -> bool {
        let (names, read_only) = match self {
            Self::Names(names) => (Some(names), None),
            Self::Filter {
                tool_names,
                read_only,
            } => (tool_names.as_ref(), *read_only),
        };
        names.is_none_or(|names| names.iter().any(|it| it == name))
            && read_only.is_none_or(|wanted| wanted == reads)
    }
}

/// A function of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// 1 to 64 of `a-z A-Z 0-9 _ -`.
    pub name: String,
    /// Description of the tool.
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    pub parameters: Option<Map<String, Value>>,
    /// Whether arguments must match the schema exactly.
    pub strict: Option<bool>,
    /// JSON Schema of its result; only for code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Map<String, Value>>,
    /// Callers that may call it; null means the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_callers: Option<Vec<AllowedCaller>>,
    /// Whether it is offered only after a search has found it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub defer_loading: bool,
}

impl Function {
    /// Returns whether the model may call it itself.
    pub fn is_direct(&self) -> bool {
        AllowedCaller::Direct.is_in(self.allowed_callers.as_deref())
    }

    /// Returns whether code may call it.
    pub fn is_programmatic(&self) -> bool {
        AllowedCaller::Programmatic.is_in(self.allowed_callers.as_deref())
    }
}

impl From<ToolDefinition> for Function {
    fn from(tool: ToolDefinition) -> Self {
        Self {
            name: tool.name,
            description: Some(tool.description).filter(|it| !it.is_empty()),
            parameters: Some(tool.input_schema),
            strict: None,
            output_schema: None,
            allowed_callers: None,
            defer_loading: false,
        }
    }
}

/// Container for code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Container {
    /// An existing container.
    Id(String),
    /// A container that is created when it is needed.
    Auto(AutoContainer),
}

/// Returns the container of a request's code and commands, and the parameter that names it. Programs alone
/// run in one that is created for them.
pub fn container(tools: &[Tool]) -> Option<(String, Container)> {
    let mut found: Option<(String, Container)> = None;
    for (index, tool) in tools.iter().enumerate() {
        let Some(container) = tool.container() else {
            continue;
        };
        let key = tool.place_key();
        match (&mut found, container) {
            (Some((param, Container::Auto(one))), Container::Auto(other)) => {
                // Errors of skills name the tool that has them.
                if one.skills.is_empty() && !other.skills.is_empty() {
                    *param = format!("tools[{index}].{key}");
                }
                one.add(other);
            }
            (Some((_, Container::Id(_))), _) => {}
            (found, container) => *found = Some((format!("tools[{index}].{key}"), container.clone())),
        }
    }
    found.or_else(|| {
        let index = tools.iter().position(Tool::is_programs)?;
        Some((
            format!("tools[{index}]"),
            Container::Auto(AutoContainer::default()),
        ))
    })
}

/// Returns the parameter with the network policy of the container of a request's code and commands, which
/// need not be the tool that names the container.
pub fn network_param(tools: &[Tool]) -> Option<String> {
    let mut tools = tools.iter().enumerate();
    tools.find_map(|(index, tool)| match tool.container()? {
        Container::Auto(auto) if auto.network_policy.is_some() => {
            Some(format!("tools[{index}].{}.network_policy", tool.place_key()))
        }
        _ => None,
    })
}

/// A container that is created when it is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoContainer {
    /// Always `auto`.
    pub r#type: String,
    /// Uploaded files that it contains from the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_ids: Vec<String>,
    /// `1g`, `4g`, `16g` or `64g`.
    pub memory_limit: Option<String>,
    /// Hosts that its code reaches; null means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<NetworkAllowlist>,
    /// Whether the request says that its code reaches no hosts, not even those of another tool.
    #[serde(skip)]
    pub no_network: bool,
    /// Skills that it has from the start.
    #[serde(skip)]
    pub skills: Vec<SkillRequest>,
    /// Whether all calls of a response run in it, and the client receives its id for later requests.
    #[serde(skip)]
    pub shared: bool,
}

impl Default for AutoContainer {
    fn default() -> Self {
        Self {
            r#type: "auto".to_owned(),
            file_ids: Vec::new(),
            memory_limit: None,
            network_policy: None,
            no_network: false,
            skills: Vec::new(),
            shared: false,
        }
    }
}

impl AutoContainer {
    /// Adds the options of another tool that runs in it.
    fn add(&mut self, other: &Self) {
        for id in &other.file_ids {
            if !self.file_ids.contains(id) {
                self.file_ids.push(id.clone());
            }
        }
        if self.memory_limit.is_none() {
            self.memory_limit.clone_from(&other.memory_limit);
        }
        if self.network_policy.is_none() {
            self.network_policy.clone_from(&other.network_policy);
        }
        for skill in &other.skills {
            if !self.skills.contains(skill) {
                self.skills.push(skill.clone());
            }
        }
        self.no_network |= other.no_network;
        self.shared |= other.shared;
    }
}

/// Selection of the tools that the model may or must call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ToolChoice {
    /// Any number, at least one, or none.
    Mode(ChoiceMode),
    /// A specific tool.
    Tool(ToolName),
    /// Some of the offered tools.
    Allowed {
        /// Always `allowed_tools`.
        r#type: String,
        /// Any number, or at least one.
        mode: AllowedMode,
        /// The allowed tools.
        tools: Vec<ToolName>,
    },
}

/// Whether the model must choose a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceMode {
    /// It may not.
    None,
    /// It may.
    Auto,
    /// It must.
    Required,
}

/// Whether the model must choose one of the allowed tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowedMode {
    /// It may.
    Auto,
    /// It must.
    Required,
}

/// A tool, identified by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolName {
    /// A function.
    Function {
        /// Name of the function.
        name: String,
        /// Namespace of the function, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
    },
    /// A tool that takes one text.
    Custom {
        /// Name of the tool.
        name: String,
        /// Namespace of the tool, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
    },
    /// Python in one of our sandboxes.
    CodeInterpreter,
    /// Commands of a shell.
    Shell,
    /// Changes of the client's files.
    ApplyPatch,
    /// Programs in JavaScript.
    ProgrammaticToolCalling,
    /// A tool of a server, or any of its tools.
    Mcp {
        /// The server's label.
        server_label: String,
        /// Name of the tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}

impl ToolName {
    /// Returns whether it names this tool.
    pub fn names(&self, tool: &Tool) -> bool {
        match (self, tool) {
            (Self::Function { name, namespace }, tool) => tool.functions().any(|(within, function)| {
                *name == function.name
                    && namespace.as_ref() == within.map(|within| &within.name)
                    && function.is_direct()
            }),
            (Self::Custom { name, namespace }, tool) => tool.customs().any(|(within, custom)| {
                *name == custom.name && namespace.as_ref() == within.map(|within| &within.name)
            }),
            (Self::CodeInterpreter, Tool::CodeInterpreter { .. })
            | (Self::Shell, Tool::Shell { .. })
            | (Self::ApplyPatch, Tool::ApplyPatch { .. })
            | (Self::ProgrammaticToolCalling, Tool::ProgrammaticToolCalling) => true,
            // Whether the server has the tool is known after its tools were listed.
            (Self::Mcp { server_label, .. }, Tool::Mcp(tool)) => *server_label == tool.server_label,
            _ => false,
        }
    }
}
