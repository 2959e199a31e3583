//! The server: what a client may ask, and who answers it.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CreateTaskResult, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    Tool as Listed, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answer::CallAnswer;
use crate::asking::{ClientAsker, ClientQuestion, WaitingCalls};
use crate::conversations::{self, CallGuard, Conversations, McpConversation};
use crate::display::{self, AnswerDisplay};
use crate::engine::LazyInterpreter;
use crate::options::Options;
use crate::progress::CallProgress;
use crate::refusal::named;
use crate::sessions::McpSessions;
use crate::shared::McpShared;
use crate::tasks::{TaskCall, Tasks};
use crate::tools::{Call, OfferedTool, Work, arguments};
use crate::{prompts, resources};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::hosting::Owner;

/// Milliseconds for which what never changes while a server runs may be kept.
const FRESH: u64 = 300_000;
/// Maximum time in which interrupted calls end.
const LAST: Duration = Duration::from_secs(3);
/// Note for a call that the server's end has stopped.
const STOPPING: &str =
    "the server is stopping, and its sessions end: tell the user, or begin again when it is back";
/// Resources of one page.
const PAGE: usize = 200;

const INSTRUCTIONS: &str = "Cellblock runs code in isolated sandboxes without network. The first call \
                            without `session_id` makes a session and gives its handle; pass it as \
                            `session_id` in later calls, so that variables and files are there. Sessions \
                            expire when they are not used. The addresses `cellblock://…` in answers are \
                            read with resources/read; `download_file` reads files by their path.";

/// A server. Clones share sessions; all of them end when the last clone is gone.
#[derive(Clone, Debug)]
pub struct Server {
    shared: Arc<McpShared>,
    serving: Arc<ServerState>,
    access: Access,
}

/// Tells who makes a request.
pub(crate) type OwnerOf = Arc<dyn Fn(&::http::request::Parts) -> Option<Owner> + Send + Sync>;

/// Callers that may use a server.
#[derive(Clone)]
pub(crate) enum Access {
    /// The client at the other end of the connection.
    Connected(Owner),
    /// Those whom a request names.
    Requests(OwnerOf),
}

/// Tools and calls at work, for all clones.
#[derive(Debug)]
struct ServerState {
    tools: Vec<OfferedTool>,
    tasks: Tasks,
    /// Calls that wait for an answer of their client.
    waiting: WaitingCalls,
    /// Calls that a request of their conversation may stop.
    conversations: Conversations,
    calls: TaskTracker,
    /// Canceled when calls have to end, and no others may begin.
    ending: CancellationToken,
}

impl Server {
    /// A server that answers one client, as [`Owner::local`]. It starts a task: call it within a runtime.
    pub fn new(engine: LazyInterpreter, options: Options) -> Self {
        Self {
            serving: Arc::new(ServerState {
                tools: OfferedTool::offered(&options),
                tasks: Tasks::new(options.max_cell_timeout),
                waiting: WaitingCalls::default(),
                conversations: Conversations::default(),
                calls: TaskTracker::new(),
                ending: CancellationToken::new(),
            }),
            shared: Arc::new(McpShared {
                sessions: McpSessions::new(&options),
                engine,
                options,
            }),
            access: Access::Connected(Owner::local()),
        }
    }

    /// The same server for those whom each request names.
    pub(crate) fn for_requests(&self, owner: OwnerOf) -> Self {
        Self {
            access: Access::Requests(owner),
            ..self.clone()
        }
    }

    /// Ends a conversation: sessions that no other one has used are the first to make room, and end soon.
    pub(crate) fn leave(&self, conversation: &McpConversation) {
        self.serving.conversations.end(conversation);
        self.shared.sessions.leave(conversation);
    }

    /// Calls that a request of their conversation may stop.
    pub(crate) fn conversations(&self) -> &Conversations {
        &self.serving.conversations
    }

    /// The interpreter behind it.
    pub fn engine(&self) -> &LazyInterpreter {
        &self.shared.engine
    }

    /// Lets calls that are at work come to their ends until `ending` completes; then interrupts
    /// them, and lets them say so. Then [closes](Self::close).
    pub async fn drain(&self, ending: impl Future<Output = ()>) {
        self.serving.calls.close();
        tokio::select! {
            biased;
            () = self.serving.calls.wait() => {}
            () = ending => {}
        }
        self.close().await;
    }

    /// Interrupts what runs, ends all sessions, and completes when their sandboxes are gone. No
    /// session is made any more.
    pub async fn close(&self) {
        self.serving.ending.cancel();
        self.serving.calls.close();
        // Answers come before what they are about is gone.
        if timeout(LAST, self.serving.calls.wait()).await.is_err() {
            tracing::warn!(
                calls = self.serving.calls.len(),
                "calls do not end although they were interrupted"
            );
        }
        self.serving.tasks.shutdown();
        self.shared.sessions.registry.close_all(ready(())).await;
    }

    /// Whose request it is. A request that names nobody gets nothing.
    fn owner(&self, context: &RequestContext<RoleServer>) -> Result<Owner, ErrorData> {
        let owner = match &self.access {
            Access::Connected(owner) => Some(owner.clone()),
            Access::Requests(owner_of) => context
                .extensions
                .get::<::http::request::Parts>()
                .and_then(|parts| owner_of(parts)),
        };
        owner.ok_or_else(|| ErrorData::invalid_request("the request does not say whose it is", None))
    }

    /// Lets a client that has no other way stop the call by a request of its own.
    fn follow(
        &self,
        context: &RequestContext<RoleServer>,
        conversation: Option<McpConversation>,
        working: &TaskCall,
    ) -> Option<CallGuard> {
        let conversation = conversation?;
        let conversations = &self.serving.conversations;
        Some(conversations.follow(conversation, context.id.clone(), working.stop.clone()))
    }

    /// Begins a call in a task of its own, so that what it has begun comes to its end in order
    /// whatever becomes of the request.
    fn begin(&self, work: Work, mut call: Call) -> TaskCall {
        let stop = call.stop.clone();
        let (shared, ending) = (Arc::clone(&self.shared), self.serving.ending.clone());
        let answer = self.serving.calls.spawn(async move {
            let answered = work.call(&shared, &mut call).await;
            call.progress.finish().await;
            let mut answer = answered.unwrap_or_else(CallAnswer::from);
            if answer.fell_short() && ending.is_cancelled() {
                answer.note(STOPPING);
            }
            let store = shared.engine.now().map(Interpreter::store);
            answer.finish(call.display, store).await
        });
        TaskCall {
            answer,
            guard: stop.clone().drop_guard(),
            stop,
        }
    }
}

impl Server {
    /// Waits for the end of a call, or for what its client has to do before that.
    async fn attend(
        &self,
        owner: &Owner,
        context: &RequestContext<RoleServer>,
        mut working: TaskCall,
        mut questions: mpsc::Receiver<ClientQuestion>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tasks = knows_tasks(context);
        // A question cannot be asked in a task: a call that may ask one becomes none yet.
        let mut asks = true;
        let mut later = std::pin::pin!(sleep(self.shared.options.task_after));
        let ended = loop {
            tokio::select! {
                ended = &mut working.answer => break ended,
                question = questions.recv(), if asks => {
                    let Some(question) = question else {
                        asks = false;
                        continue;
                    };
                    match self.serving.waiting.keep(owner, working, questions, question) {
                        Ok(required) => return Ok(CallToolResponse::InputRequired(required)),
                        Err(kept) => (working, questions) = kept,
                    }
                }
                () = context.ct.cancelled() => {
                    working.stop.cancel();
                    break working.answer.await;
                }
                () = &mut later, if tasks && !asks => {
                    let task = self.serving.tasks.begin(owner, working);
                    return Ok(CallToolResponse::Task(CreateTaskResult::new(task)));
                }
            }
        };
        match ended {
            Ok(result) => Ok(result.into()),
            Err(error) => {
                tracing::error!(%error, "a call did not come to its end");
                Err(ErrorData::internal_error(
                    "the call failed: Cellblock's own log says why",
                    None,
                ))
            }
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_tasks()
            .build();
        let name = Implementation::new("cellblock", env!("CARGO_PKG_VERSION")).with_title("Cellblock");
        ServerConfig::new(capabilities)
            .with_server_info(name)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.serving.tools.iter().map(|tool| tool.listed.clone());
        Ok(ListToolsResult::with_all_items(tools.collect()).with_ttl_ms(FRESH))
    }

    fn get_tool(&self, name: &str) -> Option<Listed> {
        let tool = self.serving.tools.iter().find(|tool| tool.listed.name == name);
        tool.map(|tool| tool.listed.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let owner = self.owner(&context)?;
        if let Some(state) = request.request_state {
            let waiting = &self.serving.waiting;
            let (working, questions) = waiting.answered(&owner, &state, request.input_responses)?;
            return self.attend(&owner, &context, working, questions).await;
        }
        let Some(tool) = self
            .serving
            .tools
            .iter()
            .find(|tool| tool.listed.name == request.name)
        else {
            let names: Vec<_> = self.serving.tools.iter().map(|tool| &*tool.listed.name).collect();
            let told = format!(
                "there is no tool {:?}; there are {}",
                named(&request.name),
                names.join(", ")
            );
            return Err(ErrorData::invalid_params(told, None));
        };
        let mut arguments = request.arguments.unwrap_or_default();
        arguments::normalize(&mut arguments, &tool.listed.input_schema);
        let parts = context.extensions.get::<::http::request::Parts>();
        let conversation = parts.and_then(|parts| conversations::conversation(parts, owner.clone()));
        let client = context.client_info();
        let shows_images = client.is_some_and(|client| display::shows_images(&client))
            || conversation.as_ref().is_some_and(McpConversation::shows_images);
        let (asker, questions) = ClientAsker::of(&context, matches!(self.access, Access::Connected(_)));
        let working = self.begin(
            tool.work,
            Call {
                tool: request.name.into_owned(),
                owner: owner.clone(),
                conversation: conversation.clone(),
                display: AnswerDisplay::of(&self.shared.options, shows_images),
                arguments: Value::Object(arguments),
                progress: CallProgress::of(&context),
                asker,
                stop: self.serving.ending.child_token(),
            },
        );
        let _followed = self.follow(&context, conversation, &working);
        self.attend(&owner, &context, working, questions).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let tasks = self.serving.tasks.of(&self.owner(&context)?);
        tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let tasks = self.serving.tasks.of(&self.owner(&context)?);
        tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.serving
            .tasks
            .of(&self.owner(&context)?)
            .cancel_task(&request.task_id)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = resources::list(&self.shared, &self.owner(&context)?).await;
        let begin = begin_of_page(request)?;
        let page: Vec<_> = all.iter().skip(begin).take(PAGE).cloned().collect();
        let mut result = ListResourcesResult::with_all_items(page);
        result.next_cursor = (all.len() > begin + PAGE).then(|| (begin + PAGE).to_string());
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates(
            &self.shared,
        )))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let owner = self.owner(&context)?;
        let read = resources::read(&self.shared, &owner, &request.uri).await?;
        Ok(read.into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list(&self.shared)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let owner = self.owner(&context)?;
        let prompt = prompts::get(&self.shared, &owner, &request.name, request.arguments.as_ref()).await?;
        Ok(prompt.into())
    }
}

/// Whether a call of this client may be answered by a task. One may declare the extension and speak
/// a revision that has no such answers.
fn knows_tasks(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
        && context
            .client_capabilities()
            .is_some_and(|it| it.supports_tasks())
}

/// Returns the index of a page's first entry.
fn begin_of_page(request: Option<PaginatedRequestParams>) -> Result<usize, ErrorData> {
    match request.and_then(|request| request.cursor) {
        None => Ok(0),
        Some(cursor) => cursor
            .parse()
            .map_err(|_| ErrorData::invalid_params("the cursor is none of this server's", None)),
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connected(owner) => f.debug_tuple("Connected").field(owner).finish(),
            Self::Requests(_) => f.debug_tuple("Requests").finish_non_exhaustive(),
        }
    }
}
