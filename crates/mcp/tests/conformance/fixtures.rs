//! The suite's tools, resources and prompts beside the server's own; whatever they have no part in is the server's answer.

use std::sync::Arc;
use std::time::Duration;

use cellblock_mcp::Server;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, Prompt, PromptArgument, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate, Role, ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};

use crate::jobs::{JOBS, job};

/// A red dot.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// No sound.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const TOOLS: [(&str, &str); 8] = [
    ("test_simple_text", "Answers a text"),
    ("test_image_content", "Answers a picture"),
    ("test_audio_content", "Answers a sound"),
    ("test_embedded_resource", "Answers a resource"),
    (
        "test_multiple_content_types",
        "Answers a text, a picture and a resource",
    ),
    ("test_error_handling", "Answers an error"),
    ("test_tool_with_progress", "Tells of its progress"),
    ("test_missing_capability", "Needs a client that samples"),
];

/// What one of the tools needs of a client.
#[expect(deprecated, reason = "the suite asks for a capability that is on its way out")]
fn sampling() -> ClientCapabilities {
    ClientCapabilities::builder().enable_sampling().build()
}

/// The server with fixtures.
#[derive(Clone, Debug)]
pub(crate) struct Fixtures(Server);

impl Fixtures {
    pub(crate) const fn over(server: Server) -> Self {
        Self(server)
    }
}

type Asked = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        self.0.get_info()
    }

    async fn list_tools(&self, request: Page, asked: Asked) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.0.list_tools(request, asked).await?;
        let schema = json!({"type": "object", "properties": {}});
        for (name, description) in TOOLS.into_iter().chain(JOBS) {
            let schema = schema.as_object().cloned().unwrap_or_default();
            listed.tools.push(Tool::new(name, description, Arc::new(schema)));
        }
        Ok(listed)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.0.get_tool(name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        asked: Asked,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(call) = job(&request) {
            return self.0.call_tool(call, asked).await;
        }
        let picture = ContentBlock::image(PNG, "image/png");
        let resource = ResourceContents::text("embedded", "test://embedded-resource");
        let resource = ContentBlock::resource(resource);
        let text = ContentBlock::text("This is a simple text response for testing.");
        let content = match &*request.name {
            "test_simple_text" => vec![text],
            "greet" => {
                let name = request.arguments.as_ref().and_then(|all| all.get("name"));
                let name = name.and_then(Value::as_str).unwrap_or_default();
                vec![ContentBlock::text(format!("Hello, {name}!"))]
            }
            "test_image_content" => vec![picture],
            "test_audio_content" => vec![ContentBlock::audio(WAV, "audio/wav")],
            "test_embedded_resource" => vec![resource],
            "test_multiple_content_types" => vec![text, picture, resource],
            "test_error_handling" => {
                let told = "This tool intentionally returns an error for testing";
                return Ok(CallToolResult::error(vec![ContentBlock::text(told)]).into());
            }
            "test_tool_with_progress" => {
                if let Some(token) = asked.meta.get_progress_token() {
                    for progress in [0.0, 50.0, 100.0] {
                        let told = ProgressNotificationParam::new(token.clone(), progress).with_total(100.0);
                        // A client that does not listen loses nothing else.
                        let _ = asked.peer.notify_progress(told).await;
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
                vec![text]
            }
            "test_missing_capability" => {
                let declared = asked.client_capabilities();
                if declared.is_none_or(|declared| declared.sampling.is_none()) {
                    let needed = sampling();
                    return Err(ErrorData::missing_required_client_capability(needed));
                }
                vec![text]
            }
            _ => return self.0.call_tool(request, asked).await,
        };
        Ok(CallToolResult::success(content).into())
    }

    async fn get_task(&self, request: GetTaskParams, asked: Asked) -> Result<GetTaskResult, ErrorData> {
        self.0.get_task(request, asked).await
    }

    async fn update_task(&self, request: UpdateTaskParams, asked: Asked) -> Result<(), ErrorData> {
        self.0.update_task(request, asked).await
    }

    async fn cancel_task(&self, request: CancelTaskParams, asked: Asked) -> Result<(), ErrorData> {
        self.0.cancel_task(request, asked).await
    }

    async fn list_resources(&self, request: Page, asked: Asked) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = self.0.list_resources(request, asked).await?;
        listed.resources.extend([
            Resource::new("test://static-text", "static text").with_mime_type("text/plain"),
            Resource::new("test://static-binary", "static bytes").with_mime_type("image/png"),
        ]);
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        request: Page,
        asked: Asked,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = self.0.list_resource_templates(request, asked).await?;
        let template =
            ResourceTemplate::new("test://template/{id}/data", "template").with_mime_type("application/json");
        listed.resource_templates.push(template);
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        asked: Asked,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        let id = uri
            .strip_prefix("test://template/")
            .and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (&*uri, id) {
            ("test://static-text", _) => {
                ResourceContents::text("This is the content of the static text resource.", uri)
            }
            ("test://static-binary", _) => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
            (_, Some(id)) => {
                let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                ResourceContents::text(text.to_string(), uri.clone()).with_mime_type("application/json")
            }
            _ => return self.0.read_resource(request, asked).await,
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(&self, request: Page, asked: Asked) -> Result<ListPromptsResult, ErrorData> {
        let mut listed = self.0.list_prompts(request, asked).await?;
        let arguments = |names: &[&str]| {
            let arguments = names.iter().map(|name| {
                PromptArgument::new(*name)
                    .with_description("An argument")
                    .with_required(true)
            });
            Some(arguments.collect())
        };
        listed.prompts.extend([
            Prompt::new("test_simple_prompt", Some("A prompt"), None),
            Prompt::new(
                "test_prompt_with_arguments",
                Some("One with arguments"),
                arguments(&["arg1", "arg2"]),
            ),
            Prompt::new(
                "test_prompt_with_embedded_resource",
                Some("One with a resource"),
                arguments(&["resourceUri"]),
            ),
            Prompt::new("test_prompt_with_image", Some("One with a picture"), None),
        ]);
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        asked: Asked,
    ) -> Result<GetPromptResponse, ErrorData> {
        let argument = |name: &str| {
            let given = request.arguments.as_ref().and_then(|all| all.get(name));
            given.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let content = match &*request.name {
            "test_simple_prompt" => ContentBlock::text("This is a simple prompt for testing."),
            "test_prompt_with_arguments" => ContentBlock::text(format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                argument("arg1"),
                argument("arg2")
            )),
            "test_prompt_with_embedded_resource" => {
                ContentBlock::resource(ResourceContents::text("embedded", argument("resourceUri")))
            }
            "test_prompt_with_image" => ContentBlock::image(PNG, "image/png"),
            _ => return self.0.get_prompt(request, asked).await,
        };
        let message = PromptMessage::new(Role::User, content);
        Ok(GetPromptResult::new(vec![message]).into())
    }
}
