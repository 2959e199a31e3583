//! Schemas of the JSON that every interface writes, under the names that handlers give it.

use cellblock_interpreter::{project, workbench};
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Value, json};

use crate::{connectors, decisions, key_routes, own_key, replicas, runs, server_routes, sessions, volumes};

/// Puts the schemas where the names are.
pub(super) fn fill(document: &mut Value) {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    "/components/schemas".clone_into(settings.definitions_path.to_mut());
    let mut generator = settings.into_generator();
    let schemas = &mut document["components"]["schemas"];
    let mut put = |name: &str, schema: Value| schemas[name] = schema;
    put("Error", error());
    let named = named(&mut generator);
    for (name, schema) in named {
        put(&format!("{name}List"), list(name));
        put(name, schema);
    }
    put("SessionList", sessions());
    for (name, schema) in generator.take_definitions(true) {
        put(&name, schema);
    }
    // Only those lists that a route answers with were asked for.
    if let Some(schemas) = schemas.as_object_mut() {
        let lists = [
            "Session",
            "Cell",
            "Variable",
            "Mounted",
            "Process",
            "Port",
            "Checkpoint",
            "SessionEvent",
            "Tool",
            "Alias",
            "File",
            "PublishedDataset",
            "DatasetVersion",
            "Connector",
            "Key",
            "Decision",
            "Backend",
            "Volume",
            "Run",
        ];
        schemas.retain(|name, _| name.strip_suffix("List").is_none_or(|of| lists.contains(&of)));
    }
}

fn named(generator: &mut SchemaGenerator) -> Vec<(&'static str, Value)> {
    macro_rules! of {
        ($($name:literal => $type:ty,)*) => {
            vec![$(($name, <$type as JsonSchema>::json_schema(generator).into())),*]
        };
    }
    of! {
        "Session" => sessions::answer::SessionAnswer,
        "Cell" => sessions::cells::CellAnswer,
        "CellEvent" => sessions::stream::CellEvent<'_>,
        "MissingServer" => replicas::MissingServer,
        "SessionUsage" => sessions::usage::UsageAnswer,
        "InputBound" => sessions::inputs::InputBound,
        "FileList" => sessions::files::FileList,
        "FileWritten" => sessions::files::FileWritten,
        "Deleted" => sessions::answer::DeletionAnswer,
        "Interrupted" => sessions::manage::InterruptAnswer,
        "Process" => sessions::processes::ProcessAnswer,
        "ProcessOutput" => sessions::processes::ProcessOutputAnswer,
        "Port" => sessions::ports::Port,
        "PortLink" => sessions::ports::PortLink,
        "SessionEvent" => cellblock_interpreter::session::timeline::SessionEvent,
        "Checkpoint" => cellblock_interpreter::session::checkpoints::Checkpoint,
        "NewCheckpoint" => cellblock_interpreter::session::checkpoints::NewCheckpoint,
        "RolledBack" => cellblock_interpreter::session::checkpoints::RolledBack,
        "Try" => sessions::tries::TryAnswer,
        "DecidedTry" => cellblock_interpreter::session::checkpoints::tries::DecidedTry,
        "Hibernated" => cellblock_interpreter::session::hibernate::HibernationSummary,
        "Forked" => sessions::fork::ForkAnswer,
        "SessionVariable" => sessions::variables::VariableAnswer,
        "Variable" => cellblock_interpreter::session::Variable,
        "Mounted" => workbench::DatasetMount,
        "Tool" => sessions::tools::ToolAnswer,
        "Alias" => sessions::aliases::AliasAnswer,
        "PublishedDataset" => project::PublishedDataset,
        "DatasetVersion" => project::DatasetVersion,
        "Connector" => cellblock_interpreter::connector::Bundle,
        "Volume" => volumes::VolumeAnswer,
        "OwnKey" => own_key::KeyAnswer,
        "Server" => server_routes::ServerAnswer,
        "Backend" => server_routes::BackendAnswer,
        "Decision" => decisions::Decision,
        "Key" => key_routes::ListedKey,
        "NewKey" => key_routes::NewKey,
        "Run" => runs::RunAnswer,
        "Replay" => runs::ReplayAnswer,
        "RunExport" => runs::RunExport,
        "ConnectorAnswer" => connectors::ConnectorAnswer,
    }
}

fn list(of: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "object": {"type": "string", "const": "list"},
            "data": {"type": "array", "items": {"$ref": format!("#/components/schemas/{of}")}},
        },
        "required": ["object", "data"],
    })
}

/// Sessions can be in several servers.
fn sessions() -> Value {
    let mut sessions = list("Session");
    sessions["properties"]["missing_servers"] = json!({
        "type": "array",
        "description": "Servers that may have more sessions of the caller and did not answer in time; \
                        absent if all have answered.",
        "items": {"$ref": "#/components/schemas/MissingServer"},
    });
    sessions
}

fn error() -> Value {
    let nullable = json!({"type": ["string", "null"]});
    json!({
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "message": {"type": "string", "description": "Description of the error."},
                    "type": {
                        "type": "string",
                        "enum": ["invalid_request_error", "not_found", "too_many_requests",
                            "model_error", "server_error"],
                    },
                    "param": nullable,
                    "code": nullable,
                },
                "required": ["message", "type", "param", "code"],
            },
        },
        "required": ["error"],
    })
}
