//! Names of schemas, for the annotations of handlers.

use std::borrow::Cow;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Names types for annotations. [`description`](crate::description) fills in their schemas.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($name))
            }
        }
    )*};
}

names! {
    /// An error of the API.
    Error
    /// A session.
    Session
    /// Name of a toolset.
    ToolsetName
    /// A cell that was run.
    Cell
    /// An event of a cell.
    CellEvent
    /// A variable with its value.
    SessionVariable
    /// Origin of a variable.
    VariableOrigin
    /// Resources that a session's sandbox uses.
    SessionUsage
    /// An input that was bound.
    InputBound
    /// Files of a sandbox.
    FileList
    /// A file that was written.
    FileWritten
    /// A deleted object.
    Deleted
    /// Result of an interrupt.
    Interrupted
    /// A process of a session.
    Process
    /// Part of the output of a process.
    ProcessOutput
    /// A signed link to a port.
    PortLink
    /// A checkpoint that was just made.
    NewCheckpoint
    /// The result of a rollback.
    RolledBack
    /// A cell that was tried.
    Try
    /// The result of a decision about a try.
    DecidedTry
    /// The sessions of a fork.
    Forked
    /// Parts that a hibernated session has lost.
    Hibernated
    /// A dataset.
    Mounted
    /// A recorded tool result.
    Alias
    /// The caller's own key.
    OwnKey
    /// A key of the server.
    Key
    /// A key that has just been made.
    NewKey
    /// A recorded run.
    Run
    /// Result of a replay.
    Replay
    /// A run with its code, its inputs and those before it.
    RunExport
    /// A volume.
    Volume
    /// A dataset of a project, with its current version.
    PublishedDataset
    SessionList
    CellList
    VariableList
    MountedList
    ProcessList
    PortList
    CheckpointList
    /// Events of a session.
    SessionEventList
    ToolList
    AliasList
    PublishedDatasetList
    DatasetVersionList
    ConnectorList
    KeyList
    DecisionList
    BackendList
    /// The server.
    Server
    VolumeList
    /// Runs.
    RunList
    /// Result of a connector's function.
    ConnectorAnswer
}
