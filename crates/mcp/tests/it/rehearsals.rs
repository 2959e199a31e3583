//! Code whose calls need approval: the client's person is asked.

use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::toolset::notebook;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolResponse, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    Implementation,
};
use rmcp::service::{RequestContext, RoleClient, RunningService};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, ErrorData, ServiceExt as _};
use serde_json::{Value, json};

use crate::shop::Shop;
use crate::support::{block_on, call, newest, revisions, server, text, until};

const WRITES: &str = "for sku in (1, 2): shop.set_price(sku=sku, price=sku + 2)\nprint('changed')";

/// A client whose person gives this answer, if the client has elicitation.
#[derive(Clone)]
struct Person {
    answer: Option<(ElicitationAction, Value)>,
    /// Whether the client takes tasks.
    tasks: bool,
    /// Questions that it was asked.
    asked: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = if self.tasks {
            ClientCapabilities::builder().enable_tasks().build()
        } else {
            ClientCapabilities::default()
        };
        if self.answer.is_some() {
            capabilities.elicitation = serde_json::from_value(json!({})).unwrap();
        }
        ClientConfig::new(capabilities, Implementation::new("person", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let ElicitRequestParams::FormElicitationParams { message, .. } = request {
            self.asked.lock().push(message);
        }
        let (action, content) = self.answer.clone().unwrap();
        Ok(ElicitResult::new(action).with_content(content))
    }
}

/// A client of a server with the shop.
async fn connect(
    answer: Option<(ElicitationAction, Value)>,
    mode: ClientLifecycleMode,
) -> (RunningService<RoleClient, Person>, Person, Arc<Shop>) {
    connect_with(answer, mode, None).await
}

/// The same, of a client that takes tasks if calls become tasks after this time.
async fn connect_with(
    answer: Option<(ElicitationAction, Value)>,
    mode: ClientLifecycleMode,
    task_after: Option<Duration>,
) -> (RunningService<RoleClient, Person>, Person, Arc<Shop>) {
    let (shop, connector) = Shop::open();
    let server = server(|options| {
        options.toolsets = vec![notebook::KIND];
        options.connectors = vec![connector];
        options.task_after = task_after.unwrap_or(options.task_after);
    });
    let server = server.await;
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        let running = server.serve(theirs).await.unwrap();
        running.waiting().await.unwrap();
    });
    let person = Person {
        answer,
        tasks: task_after.is_some(),
        asked: Arc::default(),
    };
    let client = person.clone().serve_with_lifecycle(ours, mode).await.unwrap();
    (client, person, shop)
}

async fn run(client: &RunningService<RoleClient, Person>, code: &str) -> (bool, String) {
    let ran = client
        .call_tool(call("run_cell", json!({"code": code})))
        .await
        .unwrap();
    (ran.is_error == Some(true), text(&ran))
}

#[test]
fn approved_code_writes_what_it_was_approved_for() {
    block_on(async {
        for mode in revisions() {
            let answer = (ElicitationAction::Accept, json!({"approve": true}));
            let (client, person, shop) = connect(Some(answer), mode).await;
            let (failed, told) = run(&client, WRITES).await;
            assert!(!failed && told.contains("changed"), "{told}");
            assert_eq!(shop.written(), ["1=3", "2=4"]);
            let asked = person.asked.lock().clone();
            assert_eq!(asked.len(), 1, "{asked:?}");
            assert!(asked[0].contains("2 calls"), "{asked:?}");
            assert!(asked[0].contains("shop.set_price("), "{asked:?}");

            let (failed, told) = run(&client, "shop.get_price(sku=1)['price']").await;
            assert!(!failed && told.contains('2'), "{told}");
            assert_eq!(person.asked.lock().len(), 1, "there was nothing to approve");
        }
    });
}

#[test]
fn denied_code_writes_nothing() {
    block_on(async {
        for mode in revisions() {
            let answer = (
                ElicitationAction::Accept,
                json!({"approve": false, "reason": "too dear"}),
            );
            let (client, person, shop) = connect(Some(answer), mode).await;
            let (failed, told) = run(&client, WRITES).await;
            assert!(failed && told.contains("nothing was written"), "{told}");
            assert!(told.contains("too dear"), "{told}");
            assert_eq!(shop.written(), [""; 0]);
            assert_eq!(person.asked.lock().len(), 1);
        }
    });
}

#[test]
fn code_of_a_client_that_cannot_be_asked_writes_nothing() {
    block_on(async {
        for mode in revisions() {
            let (client, _, shop) = connect(None, mode).await;
            let (_, told) = run(&client, WRITES).await;
            assert!(told.contains("an MCP client with elicitation"), "{told}");
            assert_eq!(shop.written(), [""; 0]);
        }
    });
}

#[test]
fn an_unknown_state_continues_no_call() {
    block_on(async {
        let answer = (ElicitationAction::Accept, json!({"approve": true}));
        let (client, _, shop) = connect(Some(answer), newest()).await;
        let asked = client
            .call_tool_once(call("run_cell", json!({"code": WRITES})))
            .await;
        let CallToolResponse::InputRequired(required) = asked.unwrap() else {
            panic!("not a question");
        };
        assert_eq!(shop.written(), [""; 0]);
        let accept = json!({"action": "accept", "content": {"approve": true}});
        let retry = |state: &str| {
            let mut retry = call("run_cell", json!({"code": WRITES}));
            retry.request_state = Some(state.to_owned());
            retry.input_responses = Some([("approval".to_owned(), accept.clone())].into());
            client.call_tool_once(retry)
        };
        let refused = retry("call_0").await.unwrap_err().to_string();
        assert!(refused.contains("no call waits"), "{refused}");
        let state = required.request_state.unwrap();
        let done = retry(&state).await.unwrap();
        assert!(matches!(done, CallToolResponse::Complete(_)), "{done:?}");
        assert_eq!(shop.written(), ["1=3", "2=4"]);
        assert!(retry(&state).await.is_err(), "an approval counts once");
    });
}

#[test]
fn a_slow_rehearsal_asks_its_question_before_the_call_becomes_a_task() {
    block_on(async {
        let answer = (ElicitationAction::Accept, json!({"approve": true}));
        let after = Some(Duration::from_millis(1));
        let (client, _, shop) = connect_with(Some(answer), newest(), after).await;
        let asked = client
            .call_tool_once(call("run_cell", json!({"code": WRITES})))
            .await;
        let CallToolResponse::InputRequired(required) = asked.unwrap() else {
            panic!("not a question");
        };
        let accept = json!({"action": "accept", "content": {"approve": true}});
        let mut retry = call("run_cell", json!({"code": WRITES}));
        retry.request_state = required.request_state;
        retry.input_responses = Some([("approval".to_owned(), accept)].into());
        client.call_tool_once(retry).await.unwrap();
        until("the calls are made", async || shop.written().len() == 2).await;
    });
}
