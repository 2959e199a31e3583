//! Items: what goes into a response and what comes out of it. Nullable keys are always written.

use serde::{Deserialize, Serialize};

use super::content::Part;

/// One step of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// Something said.
    Message(Message),
    /// A call of one of the client's functions.
    FunctionCall(FunctionCall),
    /// What the client's function gave.
    FunctionCallOutput(FunctionCallOutput),
    /// What the model thought.
    Reasoning(Reasoning),
    /// Code that the model ran.
    CodeInterpreterCall(CodeInterpreterCall),
    /// What was said before, in short and sealed.
    Compaction(Compaction),
    /// An item of a stored response, by its id; only in requests.
    ItemReference(ItemReference),
}

impl Item {
    /// Its id.
    pub fn id(&self) -> &str {
        match self {
            Self::Message(item) => &item.id,
            Self::FunctionCall(item) => &item.id,
            Self::FunctionCallOutput(item) => &item.id,
            Self::Reasoning(item) => &item.id,
            Self::CodeInterpreterCall(item) => &item.id,
            Self::Compaction(item) => &item.id,
            Self::ItemReference(item) => &item.id,
        }
    }

    pub(super) fn set_status(&mut self, status: ItemStatus) {
        match self {
            Self::Message(item) => item.status = status,
            Self::FunctionCall(item) => item.status = status,
            Self::FunctionCallOutput(item) => item.status = status,
            Self::Reasoning(item) => item.status = status,
            Self::CodeInterpreterCall(item) => item.status = status,
            // They are whole from the first.
            Self::Compaction(_) | Self::ItemReference(_) => {}
        }
    }
}

/// How far an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// It is being written.
    InProgress,
    /// Its code runs; only for a [`CodeInterpreterCall`].
    Interpreting,
    /// It is whole.
    Completed,
    /// It was cut short.
    Incomplete,
    /// It could not be done; only for a [`CodeInterpreterCall`].
    Failed,
}

/// Something said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `msg_…`.
    pub id: String,
    /// How far it is.
    pub status: ItemStatus,
    /// By whom.
    pub role: Role,
    /// What.
    pub content: Vec<Part>,
    /// Whether it is `commentary` or the `final_answer`; left out where it was not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The application, by its older name.
    System,
    /// The application.
    Developer,
}

/// A call of one of the client's functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// `fc_…`.
    pub id: String,
    /// How far it is.
    pub status: ItemStatus,
    /// What its output refers to.
    pub call_id: String,
    /// The function.
    pub name: String,
    /// JSON as the model wrote it, which may be broken.
    pub arguments: String,
}

/// What the client's function gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCallOutput {
    /// `fco_…`.
    pub id: String,
    /// How far it is.
    pub status: ItemStatus,
    /// Which call.
    pub call_id: String,
    /// What it gave.
    pub output: Output,
}

/// What a function gave: text, or parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Output {
    /// Text.
    Text(String),
    /// Text, pictures and files.
    Parts(Vec<Part>),
}

/// What the model thought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// `rs_…`.
    pub id: String,
    /// How far it is.
    pub status: ItemStatus,
    /// In short.
    pub summary: Vec<Part>,
    /// As it is, where the provider shows it.
    pub content: Option<Vec<Part>>,
    /// In a form that only the provider reads.
    pub encrypted_content: Option<String>,
}

/// Code that the model ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodeInterpreterCall {
    /// `ci_…`.
    pub id: String,
    /// How far it is.
    pub status: ItemStatus,
    /// Where it runs; known before any code is.
    pub container_id: String,
    /// The code; empty at first, null where a client left it out.
    pub code: Option<String>,
    /// What it gave, where that is included.
    pub outputs: Option<Vec<InterpreterOutput>>,
}

/// What was said before, in short and sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// `cmp_…`.
    pub id: String,
    /// In a form that only this gateway reads, and only for whom it was made.
    pub encrypted_content: String,
}

/// An item of a stored response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemReference {
    /// Its id.
    pub id: String,
}

/// What code gave. Clients know these two and no others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InterpreterOutput {
    /// What it printed, its values and tracebacks.
    Logs {
        /// As text.
        logs: String,
    },
    /// A picture.
    Image {
        /// Its address.
        url: String,
    },
}
