//! Commands of a shell: the tool, where they run, and their items.

use cellblock_interpreter::toolset::shell::{CommandOutcome, CommandReport, ShellArguments};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::call_kind::{self, CallKind};
use super::item::{FunctionCall, FunctionCallOutput, FunctionOutput, ItemStatus};
use super::request::NetworkAllowlist;
use super::skill::SkillRequest;
use super::tool::{AutoContainer, Container};

/// Place in which commands run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "EnvironmentForm", into = "EnvironmentForm")]
pub enum ShellEnvironment {
    /// One of our containers.
    Hosted(Container),
    /// The client's computer.
    Local {
        /// Skills that are installed there.
        skills: Vec<LocalSkill>,
    },
}

/// A skill on the client's computer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalSkill {
    /// Its name.
    pub name: String,
    /// Purpose of the skill.
    pub description: String,
    /// Path of its folder.
    pub path: String,
}

/// A [`ShellEnvironment`] as it is sent.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum EnvironmentForm {
    ContainerAuto {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        file_ids: Vec<String>,
        memory_limit: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network_policy: Option<NetworkAllowlist>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skills: Vec<SkillRequest>,
    },
    ContainerReference {
        container_id: String,
    },
    Local {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skills: Vec<LocalSkill>,
    },
}

impl From<EnvironmentForm> for ShellEnvironment {
    fn from(form: EnvironmentForm) -> Self {
        match form {
            EnvironmentForm::ContainerAuto {
                file_ids,
                memory_limit,
                network_policy,
                skills,
            } => Self::Hosted(Container::Auto(AutoContainer {
                file_ids,
                memory_limit,
                network_policy,
                skills,
                shared: true,
                ..AutoContainer::default()
            })),
            EnvironmentForm::ContainerReference { container_id } => Self::Hosted(Container::Id(container_id)),
            EnvironmentForm::Local { skills } => Self::Local { skills },
        }
    }
}

impl From<ShellEnvironment> for EnvironmentForm {
    fn from(environment: ShellEnvironment) -> Self {
        match environment {
            ShellEnvironment::Hosted(Container::Auto(auto)) => Self::ContainerAuto {
                file_ids: auto.file_ids,
                memory_limit: auto.memory_limit,
                network_policy: auto.network_policy,
                skills: auto.skills.into_iter().map(SkillRequest::without_files).collect(),
            },
            ShellEnvironment::Hosted(Container::Id(container_id)) => {
                Self::ContainerReference { container_id }
            }
            ShellEnvironment::Local { skills } => Self::Local { skills },
        }
    }
}

/// Commands that the model runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellCall {
    /// `sh_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Id that its output refers to.
    pub call_id: String,
    /// The commands, and their limits.
    pub action: ShellAction,
    /// Place in which they run; null if a client omitted it.
    pub environment: Option<ShellPlace>,
}

/// Commands with their limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellAction {
    /// The commands.
    pub commands: Vec<String>,
    /// Maximum time of each command in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Maximum number of characters of each command's output.
    pub max_output_length: Option<u64>,
}

/// Place in which a call runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ShellPlace {
    /// One of our containers.
    ContainerReference {
        /// Id of the container.
        container_id: String,
    },
    /// The client's computer.
    Local,
}

/// Outputs of commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellCallOutput {
    /// `sho_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Id of the call.
    pub call_id: String,
    /// Output of each command.
    pub output: Vec<ShellOutput>,
    /// Maximum number of characters, as the call has it.
    pub max_output_length: Option<u64>,
}

/// Output of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellOutput {
    /// Text that it wrote to stdout.
    pub stdout: String,
    /// Text that it wrote to stderr.
    pub stderr: String,
    /// Its end.
    pub outcome: ShellOutcome,
}

/// End of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ShellOutcome {
    /// It exited.
    Exit {
        /// Its code.
        exit_code: i32,
    },
    /// Its time was over.
    Timeout,
}

impl From<&CommandReport> for ShellOutput {
    fn from(report: &CommandReport) -> Self {
        Self {
            stdout: report.stdout.clone(),
            stderr: report.stderr.clone(),
            outcome: match report.end {
                CommandOutcome::Exited(exit_code) => ShellOutcome::Exit { exit_code },
                CommandOutcome::TimedOut(_) => ShellOutcome::Timeout,
            },
        }
    }
}

impl ShellCall {
    /// Returns the id of its container, if it runs in one of ours.
    pub fn container(&self) -> Option<&str> {
        match &self.environment {
            Some(ShellPlace::ContainerReference { container_id }) => Some(container_id),
            Some(ShellPlace::Local) | None => None,
        }
    }

    /// Returns it as the model knows it.
    pub(super) fn into_function(self) -> FunctionCall {
        let hosted = self.container().is_some();
        let kind = CallKind::Shell;
        FunctionCall {
            id: if hosted {
                call_kind::served(&self.id)
            } else {
                self.id
            },
            status: self.status,
            call_id: self.call_id,
            name: kind.function().to_owned(),
            namespace: None,
            arguments: json!(ShellArguments::from(self.action)).to_string(),
            caller: None,
        }
    }
}

impl From<ShellAction> for ShellArguments {
    fn from(action: ShellAction) -> Self {
        Self {
            commands: action.commands,
            timeout_ms: action.timeout_ms,
            max_output_length: action.max_output_length,
        }
    }
}

impl From<ShellArguments> for ShellAction {
    fn from(arguments: ShellArguments) -> Self {
        Self {
            commands: arguments.commands,
            timeout_ms: arguments.timeout_ms,
            max_output_length: arguments.max_output_length,
        }
    }
}

impl ShellCallOutput {
    /// Returns it as the model knows it.
    pub(super) fn into_function(self) -> FunctionCallOutput {
        let texts: Vec<_> = self.output.iter().map(ShellOutput::text).collect();
        FunctionCallOutput {
            caller: None,
            output: FunctionOutput::Text(numbered(&texts)),
            id: self.id,
            status: self.status,
            call_id: self.call_id,
        }
    }
}

impl ShellOutput {
    /// Returns it for the model.
    pub fn text(&self) -> String {
        let outcome = match self.outcome {
            ShellOutcome::Exit { exit_code } => format!("[exit code] {exit_code}"),
            ShellOutcome::Timeout => "[timed out]".to_owned(),
        };
        let mut text = self.stdout.clone();
        if !self.stderr.is_empty() {
            line(&mut text, &format!("[stderr]\n{}", self.stderr));
        }
        line(&mut text, &outcome);
        text
    }
}

/// Returns the texts of several commands as one; a single command has no number.
pub(crate) fn numbered(texts: &[String]) -> String {
    if let [text] = texts {
        return text.clone();
    }
    let texts = texts.iter().enumerate();
    let texts: Vec<_> = texts
        .map(|(index, text)| format!("[command {}]\n{text}", index + 1))
        .collect();
    texts.join("\n")
}

/// Adds a text that starts on a new line.
pub(crate) fn line(text: &mut String, more: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn an_environment_has_the_form_of_the_api() {
        for form in [
            json!({"type": "container_auto", "file_ids": ["file_1"], "memory_limit": "4g"}),
            json!({"type": "container_auto", "memory_limit": null, "skills": [
                {"type": "skill_reference", "skill_id": "skill_1", "version": "2"},
                {"type": "inline", "name": "n", "description": "d",
                 "source": {"type": "base64", "media_type": "application/zip"}},
            ]}),
            json!({"type": "container_reference", "container_id": "cntr_1"}),
            json!({"type": "local", "skills": [{"name": "n", "description": "d", "path": "/p"}]}),
            json!({"type": "local"}),
        ] {
            let environment: ShellEnvironment = serde_json::from_value(form.clone()).unwrap();
            assert_eq!(json!(environment), form);
        }
    }

    #[test]
    fn a_model_reads_every_stream_and_outcome() {
        let output = |stdout: &str, stderr: &str, outcome: Value| -> ShellOutput {
            serde_json::from_value(json!({"stdout": stdout, "stderr": stderr, "outcome": outcome})).unwrap()
        };
        let failed = output("a\n", "b", json!({"type": "exit", "exit_code": 3}));
        assert_eq!(failed.text(), "a\n[stderr]\nb\n[exit code] 3");
        let late = output("", "", json!({"type": "timeout"}));
        assert_eq!(late.text(), "[timed out]");
        assert_eq!(
            numbered(&[failed.text(), late.text()]),
            "[command 1]\na\n[stderr]\nb\n[exit code] 3\n[command 2]\n[timed out]"
        );
        assert_eq!(numbered(&[late.text()]), "[timed out]");
    }
}
