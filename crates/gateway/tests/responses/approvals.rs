//! Calls that a person approves: tools of servers, and code that is rehearsed before it writes.

use std::sync::Arc;

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_gateway::Options;
use cellblock_gateway::records::Records;
use cellblock_interpreter::connector::Connector;
use serde_json::{Value, json};

use crate::market::{fetches, items, read, says, start};
use crate::order::Order;
use crate::shop::Shop;
use crate::support::{Server, block_on, events, gateway, interpreter_tool, listen, runs, serve_with};

const WRITES: &str = "for sku in (1, 2): shop.set_price(sku=sku, price=sku + 2)\nprint('changed')";

/// The server `market`, of which calls need approval as this rule says.
fn market(rule: &Value) -> Value {
    json!([{"type": "mcp", "server_label": "market", "require_approval": rule}])
}

fn answer(request: &Value, approve: bool, reason: Option<&str>) -> Value {
    json!({"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve,
           "reason": reason})
}

/// A request that goes on from a response.
fn then(response: &Value, tools: &Value, input: &[Value]) -> Value {
    json!({"previous_response_id": response["id"], "tools": tools, "input": input})
}

/// A gateway whose code can call the shop, which needs approval.
async fn with_shop(answers: Vec<ScriptedAnswer>) -> (Server, Arc<ScriptedProvider>, Arc<Shop>) {
    let (shop, connector) = Shop::open();
    let (server, provider) = with_connector(answers, connector).await;
    (server, provider, shop)
}

async fn with_connector(
    answers: Vec<ScriptedAnswer>,
    connector: Arc<dyn Connector>,
) -> (Server, Arc<ScriptedProvider>) {
    let provider = Arc::new(ScriptedProvider::new(answers));
    let model = Arc::clone(&provider) as Arc<dyn Provider>;
    let server = serve_with(model, |options| options.connectors = vec![connector]).await;
    (server.of("local"), provider)
}

#[test]
fn a_tool_is_called_once_its_call_is_approved() {
    block_on(async {
        let (server, provider) = start(vec![fetches(), says("Compared.")], |_| {}).await;
        let tools = market(&json!("always"));
        let text = server.stream(json!({"input": "go", "tools": tools})).await;
        let events = events(&text.text().await.unwrap());
        Order::check(&events).unwrap();
        let asked = &events.last().unwrap()["response"];
        assert_eq!(asked["status"], "completed");
        let requests = items(asked, "mcp_approval_request");
        assert_eq!(requests.len(), 2, "{asked}");
        assert_eq!(
            (&requests[0]["server_label"], &requests[0]["name"]),
            (&json!("market"), &json!("get_price_history"))
        );
        assert_eq!(requests[0]["arguments"], r#"{"symbol": "ACME"}"#);
        assert!(items(asked, "mcp_call").is_empty());
        assert_eq!(provider.asked().len(), 1, "the model waits for the answer");

        let input = [
            answer(requests[0], true, None),
            answer(requests[1], false, Some("not now")),
        ];
        let text = server.stream(then(asked, &tools, &input)).await;
        let events = crate::support::events(&text.text().await.unwrap());
        Order::check(&events).unwrap();
        let response = &events.last().unwrap()["response"];
        let [call] = items(response, "mcp_call")[..] else {
            panic!("{response}")
        };
        assert_eq!(call["approval_request_id"], requests[0]["id"]);
        assert_eq!(call["status"], "completed", "{call}");
        let told = read(&provider, 1);
        assert!(
            told.iter().any(|text| text.starts_with("get_price_history_1")),
            "{told:?}"
        );
        let known = json!(provider.asked()[1].items).to_string();
        assert!(known.contains("not now"), "{known}");
    });
}

#[test]
fn a_response_that_is_not_stored_goes_on_and_calls_nothing_twice() {
    block_on(async {
        let answers = vec![
            ScriptedAnswer::new().call("c1", "get_net_flow", "{}"),
            says("Fetched."),
            says("Again."),
        ];
        let (server, provider) = start(answers, |_| {}).await;
        let tools = market(&json!("always"));
        let create = async |input: &[Value]| {
            let asking = json!({"input": input, "tools": tools, "store": false});
            server.create(asking).await.ok()
        };
        let mut input = vec![json!({"role": "user", "content": "go"})];
        let asked = create(&input).await;
        let output = |response: &Value| response["output"].as_array().unwrap().clone();
        input.extend(output(&asked));
        input.push(answer(items(&asked, "mcp_approval_request")[0], true, None));
        let response = create(&input).await;
        assert_eq!(items(&response, "mcp_call").len(), 1, "{response}");

        input.extend(output(&response));
        input.push(json!({"role": "user", "content": "and now?"}));
        let last = create(&input).await;
        assert!(items(&last, "mcp_call").is_empty(), "{last}");
        assert_eq!(read(&provider, 2).len(), 1, "the model knows one call");
    });
}

#[test]
fn a_rule_names_the_tools_that_need_approval() {
    block_on(async {
        let (server, _) = start(vec![fetches(), says("Done.")], |_| {}).await;
        let tools = market(&json!({"always": {"tool_names": ["get_net_flow"]},
                                   "never": {"tool_names": ["get_price_history"]}}));
        let asked = server.create(json!({"input": "go", "tools": tools})).await.ok();
        assert_eq!(
            asked["tools"][0]["require_approval"],
            tools[0]["require_approval"]
        );
        assert_eq!(items(&asked, "mcp_call")[0]["name"], "get_price_history");
        let request = items(&asked, "mcp_approval_request")[0];
        assert_eq!(request["name"], "get_net_flow");
        let twice = [answer(request, true, None), answer(request, false, None)];
        let refused = server.create(then(&asked, &tools, &twice)).await;
        assert_eq!(refused.error(), (400, "duplicate_approval_response"));
        let input = [answer(request, true, None)];
        let response = server.create(then(&asked, &tools, &input)).await.ok();
        assert_eq!(items(&response, "mcp_call")[0]["name"], "get_net_flow");
    });
}

/// A gateway with its records in a file.
async fn serve_in(
    folder: &std::path::Path,
    answers: Vec<ScriptedAnswer>,
    change: impl FnOnce(&mut Options),
) -> Server {
    let mut options = Options::default();
    change(&mut options);
    let records = Records::open(&folder.join("records.sqlite")).unwrap();
    let provider = Arc::new(ScriptedProvider::new(answers)) as Arc<dyn Provider>;
    listen(gateway(provider, options, records).await)
        .await
        .of("local")
}

#[test]
fn approved_calls_are_made_after_a_restart() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let tools = market(&json!("always"));
        let before = serve_in(folder.path(), vec![fetches()], crate::market::tools).await;
        let asked = before.create(json!({"input": "go", "tools": tools})).await.ok();
        let after = serve_in(folder.path(), vec![says("Fetched.")], crate::market::tools).await;
        let requests = items(&asked, "mcp_approval_request");
        let input: Vec<_> = requests.iter().map(|it| answer(it, true, None)).collect();
        let response = after.create(then(&asked, &tools, &input)).await.ok();
        assert_eq!(items(&response, "mcp_call").len(), 2, "{response}");
    });
}

#[test]
fn approved_code_runs_after_a_restart() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let (shop, connector) = Shop::open();
        let tools = interpreter_tool();
        let granted = connector.clone();
        let before = serve_in(folder.path(), vec![runs("c1", WRITES)], |options| {
            options.connectors = vec![granted];
        });
        let asking = json!({"input": "go", "tools": tools});
        let asked = before.await.create(asking).await.ok();
        let after = serve_in(folder.path(), vec![says("Changed.")], |options| {
            options.connectors = vec![connector];
        });
        assert_eq!(shop.written(), [""; 0]);
        let input = [answer(items(&asked, "mcp_approval_request")[0], true, None)];
        let response = after.await.create(then(&asked, &tools, &input)).await.ok();
        assert_eq!(items(&response, "code_interpreter_call").len(), 1, "{response}");
        assert_eq!(shop.written(), ["1=3", "2=4"]);
    });
}

#[test]
fn code_is_rehearsed_and_writes_what_was_approved() {
    block_on(async {
        let answers = vec![runs("c1", WRITES), says("Changed.")];
        let (server, provider, shop) = with_shop(answers).await;
        let tools = interpreter_tool();
        let asked = server.create(json!({"input": "go", "tools": tools})).await.ok();
        let request = items(&asked, "mcp_approval_request")[0];
        assert_eq!(
            (&request["server_label"], &request["name"]),
            (&json!("code_interpreter"), &json!("code_interpreter"))
        );
        let arguments: Value = serde_json::from_str(request["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(arguments["code"], WRITES);
        assert_eq!(
            arguments["writes"],
            json!([
                {"connector": "shop", "function": "set_price", "arguments": {"sku": 1, "price": 3}},
                {"connector": "shop", "function": "set_price", "arguments": {"sku": 2, "price": 4}},
            ])
        );
        assert_eq!(items(&asked, "code_interpreter_call").len(), 1);
        assert_eq!(provider.asked().len(), 1, "the model waits for the answer");
        assert_eq!(shop.written(), [""; 0]);

        let input = [answer(request, true, None)];
        let mut approving = then(&asked, &tools, &input);
        approving["include"] = json!(["code_interpreter_call.outputs"]);
        let response = server.create(approving).await.ok();
        let call = items(&response, "code_interpreter_call")[0];
        assert_eq!(call["code"], WRITES);
        assert!(call["outputs"].to_string().contains("changed"), "{call}");
        assert_eq!(shop.written(), ["1=3", "2=4"]);
        assert!(read(&provider, 1).last().unwrap().contains("changed"));
    });
}

#[test]
fn code_that_is_denied_writes_nothing() {
    block_on(async {
        let answers = vec![runs("c1", WRITES), says("Left as it is.")];
        let (server, provider, shop) = with_shop(answers).await;
        let tools = interpreter_tool();
        let asked = server.create(json!({"input": "go", "tools": tools})).await.ok();
        let request = items(&asked, "mcp_approval_request")[0];
        let input = [answer(request, false, Some("too dear"))];
        let response = server.create(then(&asked, &tools, &input)).await.ok();
        assert!(items(&response, "code_interpreter_call").is_empty(), "{response}");
        let known = json!(provider.asked()[1].items).to_string();
        assert!(known.contains("too dear"), "{known}");
        assert_eq!(shop.written(), [""; 0]);
    });
}

#[test]
fn code_with_nothing_to_approve_goes_on_without_a_question() {
    block_on(async {
        let answers = vec![
            runs("c1", "price = shop.get_price(sku=1)['price']\nprice"),
            runs("c2", "shop.set_price(sku=1, price=price)['price']"),
            says("It cannot."),
        ];
        let (server, provider, shop) = with_shop(answers).await;
        let asking = json!({"input": "go", "tools": interpreter_tool()});
        let response = server.create(asking).await.ok();
        assert!(items(&response, "mcp_approval_request").is_empty(), "{response}");
        let told = json!(provider.asked()[2].items).to_string();
        assert!(
            told.contains("[rehearsal]") && told.contains("nothing to approve"),
            "{told}"
        );
        assert!(told.contains("TypeError"), "{told}");
        assert_eq!(shop.written(), [""; 0]);
    });
}

#[test]
fn a_request_requires_approval_of_the_calls_of_its_code() {
    block_on(async {
        let answers = vec![runs("c1", WRITES), says("Changed.")];
        let shop = Arc::new(Shop::default());
        let (server, _) = with_connector(answers, Arc::clone(&shop) as Arc<dyn Connector>).await;
        let mut tools = interpreter_tool();
        tools.as_array_mut().unwrap().push(json!({
            "type": "mcp", "server_label": "shop", "allowed_callers": ["programmatic"],
            "require_approval": "always",
        }));
        let asked = server.create(json!({"input": "go", "tools": tools})).await.ok();
        assert_eq!(shop.written(), [""; 0]);
        let input = [answer(items(&asked, "mcp_approval_request")[0], true, None)];
        server.create(then(&asked, &tools, &input)).await.ok();
        assert_eq!(shop.written(), ["1=3", "2=4"]);
    });
}
