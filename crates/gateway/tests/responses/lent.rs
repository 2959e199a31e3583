//! Servers that a request lends to its code: functions that it selects, and servers that it names
//! by their address.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_agent::{ToolServer, ToolServerAddress, ToolServerError, ToolServers};
use cellblock_gateway::execute_server::{ExecuteServer, ExecuteServerOptions};
use cellblock_gateway::records::Records;
use cellblock_gateway::{Gateway, Models, Options, RemoteEngine};
use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, FetchAnswer, FetchEffect, Redaction,
};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::market::{read, says};
use crate::support::{Server, block_on, interpreter, interpreter_tool, listen, runs, serve_with};

/// A function that reads, and one that writes. Answers are the credentials that the shop was given,
/// so nobody should see them.
#[derive(Debug)]
struct Shop {
    name: String,
    given: String,
    redaction: Redaction,
}

impl Shop {
    fn connector(name: &str, given: &str) -> Arc<dyn Connector> {
        Arc::new(Self {
            name: name.to_owned(),
            given: given.to_owned(),
            redaction: Redaction::new(["hunter2hunter2"]),
        })
    }
}

impl Connector for Shop {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &'static str {
        "A shop."
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        let card = |name: &str, effect| Card {
            name: name.to_owned(),
            parameters: json!({"type": "object"}),
            effect,
            ..Card::default()
        };
        let cards = vec![
            card("get_price", FetchEffect::Reads),
            card("set_price", FetchEffect::Writes),
        ];
        Box::pin(async move { Ok(cards) })
    }

    fn fetch(
        &self,
        function: &str,
        _: Map<String, Value>,
        _: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let answer = json!(format!("{function} {}", self.given));
        Box::pin(async move { Ok(answer.into()) })
    }

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}

/// A shop at every address of one host.
#[derive(Debug)]
struct Shops;

impl ToolServers for Shops {
    fn at(&self, _: ToolServerAddress) -> Result<Arc<dyn ToolServer>, ToolServerError> {
        Err(ToolServerError::new("only code may call it"))
    }

    fn connector(&self, address: ToolServerAddress) -> Result<Arc<dyn Connector>, ToolServerError> {
        if !address.url.starts_with("https://shops.example.com/") {
            return Err(ToolServerError::new("the operator does not allow its URL"));
        }
        let given: Vec<_> = address.headers.iter().map(|(_, value)| &**value).collect();
        Ok(Shop::connector(&address.label, &given.join(" ")))
    }
}

async fn start(answers: Vec<ScriptedAnswer>) -> (Server, Arc<ScriptedProvider>) {
    let provider = Arc::new(ScriptedProvider::new(answers));
    let model = Arc::clone(&provider) as Arc<dyn Provider>;
    let server = serve_with(model, |options| {
        options.connectors = vec![Shop::connector("shop", "own")];
        options.tools.named = Some(Arc::new(Shops));
    });
    (server.await.of("local"), provider)
}

/// A request whose code may call a server.
fn asking(server: &Value, previous: &Value) -> Value {
    let mut tool = json!({"type": "mcp", "require_approval": "never",
        "allowed_callers": ["programmatic"], "server_label": "shop"});
    let fields = server.as_object().unwrap().clone();
    tool.as_object_mut().unwrap().extend(fields);
    let mut tools = interpreter_tool();
    tools.as_array_mut().unwrap().push(tool);
    json!({"input": "go", "tools": tools, "previous_response_id": previous["id"]})
}

/// Returns what the model has read of the code's last output.
fn last(provider: &ScriptedProvider) -> String {
    read(provider, provider.asked().len() - 1).pop().unwrap()
}

#[test]
fn a_request_selects_the_functions_of_a_server_that_its_code_sees() {
    block_on(async {
        let forged = "from cellblock_kernel.library import broker\n\
                      def forge(name):\n    try:\n        return broker.call('fetch', \
                      {'connector': 'shop', 'function': name})\n    except Exception as error:\n        \
                      return str(error)\n\
                      write = shop.set_price\n[f.__name__ for f in shop]";
        let selected = "print([f.__name__ for f in shop], shop.get_price())\n\
                        print(forge('set_price') == forge('set_prica').replace('prica', 'price'))\n\
                        print(forge('set_price'))\ntry: write()\n\
                        except Exception as error: print(type(error))";
        let code = [forged, selected, selected, "shop.set_price()"];
        let answers = code.iter().flat_map(|code| [runs("c", code), says("Done.")]);
        let (server, provider) = start(answers.collect()).await;
        let mut response = server.create(asking(&json!({}), &Value::Null)).await.ok();
        let told = last(&provider);
        assert!(told.contains("get_price") && told.contains("set_price"), "{told}");
        for allowed in [json!(["get_price"]), json!({"read_only": true})] {
            let asked = asking(&json!({"allowed_tools": allowed}), &response);
            response = server.create(asked).await.ok();
            let told = last(&provider);
            assert!(told.contains("['get_price'] get_price own"), "{told}");
            assert!(
                told.contains("True\n`shop` has no function `set_price`; did you mean `get_price`?"),
                "{told}"
            );
            assert!(told.contains("InvalidParameterError"), "{told}");
            let asked = provider.asked();
            let instructions = asked[asked.len() - 2].instructions.as_deref().unwrap();
            assert!(instructions.contains("shop.get_price"), "{instructions}");
            assert!(!instructions.contains("set_price"), "{instructions}");
        }
        // The next request sees all of them again.
        server.create(asking(&json!({}), &response)).await.ok();
        assert!(last(&provider).contains("set_price own"), "{}", last(&provider));
    });
}

#[test]
fn code_calls_servers_that_a_request_names_by_their_address() {
    block_on(async {
        let code = [
            "desk.get_price() + desk.__doc__",
            "desk.get_price()",
            "desk.get_price()",
        ];
        let answers = code.iter().flat_map(|code| [runs("c", code), says("Done.")]);
        let (server, provider) = start(answers.collect()).await;
        let desk = |token: &str| {
            json!({
                "server_label": "desk", "server_url": "https://shops.example.com/desk",
                "authorization": token,
                "server_description": "Prices of desks.", "allowed_tools": ["get_price"],
            })
        };
        let first = server
            .create(asking(&desk("hunter2hunter2"), &Value::Null))
            .await
            .ok();
        let told = last(&provider);
        assert!(told.contains("get_price Bearer [redacted]"), "{told}");
        assert!(told.contains("Prices of desks."), "{told}");
        let asked = provider.asked();
        let instructions = asked[0].instructions.as_deref().unwrap();
        assert!(instructions.contains("desk.get_price"), "{instructions}");
        assert!(!instructions.contains("desk.set_price"), "{instructions}");
        let offered: Vec<_> = asked[0].tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(offered, ["code_interpreter"]);
        assert!(!first.to_string().contains("hunter2"), "{first}");

        // Answers belong to the credentials, and the server to the request.
        let second = server.create(asking(&desk("other"), &first)).await.ok();
        let told = last(&provider);
        assert!(told.contains("get_price Bearer other"), "{told}");
        server.create(asking(&json!({}), &second)).await.ok();
        let told = last(&provider);
        assert!(told.contains("this session has no connector `desk`"), "{told}");
    });
}

#[test]
fn servers_that_code_cannot_call_are_rejected() {
    block_on(async {
        let (server, provider) = start(Vec::new()).await;
        let url = "https://shops.example.com/desk";
        for (tool, part) in [
            (
                json!({"server_url": url}),
                "the operator has a server `shop` for code",
            ),
            (
                json!({"server_label": "my-desk", "server_url": url}),
                "cannot be a name in code",
            ),
            (
                json!({"server_label": "print", "server_url": url}),
                "choose another name",
            ),
            (
                json!({"server_label": "desk", "server_url": "https://evil.example"}),
                "does not allow its URL",
            ),
            (json!({"server_label": "desk"}), "`offer: code`"),
            (
                json!({"headers": {"X-Key": "hunter2hunter2"}}),
                "leave it out for `shop`",
            ),
            (
                json!({"server_label": "desk", "server_url": url, "require_approval": "sometimes"}),
                "`always`, `never`",
            ),
        ] {
            let refused = server.create(asking(&tool, &Value::Null)).await;
            assert_eq!(refused.status, 400, "{part}: {}", refused.body);
            let body = refused.body.to_string();
            assert!(body.contains(part) && !body.contains("hunter2"), "{part}: {body}");
        }
        let mut both = asking(&json!({"server_label": "tools", "server_url": url}), &Value::Null);
        let function = json!({"type": "function", "name": "f", "allowed_callers": ["programmatic"]});
        both["tools"].as_array_mut().unwrap().push(function);
        let refused = server.create(both).await.body.to_string();
        assert!(refused.contains("the client's functions"), "{refused}");
        assert!(provider.asked().is_empty());
    });
}

#[test]
fn code_at_another_server_has_no_skills() {
    block_on(async {
        let provider = Arc::new(ScriptedProvider::new(Vec::new()));
        let elsewhere = RemoteEngine {
            server: ExecuteServer::new("http://127.0.0.1:1", ExecuteServerOptions::default()).unwrap(),
            timeout: Duration::from_secs(1),
            store: interpreter().await.store().clone(),
        };
        let models = Models::default().with("m", provider as Arc<dyn Provider>);
        let gateway = Gateway::new(
            Options::default(),
            Records::in_memory().unwrap(),
            models,
            elsewhere,
        );
        let server = listen(gateway).await;
        let body = json!({
            "model": "m",
            "max_tokens": 100,
            "messages": [{"role": "user", "content": "go"}],
            "tools": [{"type": "code_execution_20250522", "name": "code_execution"}],
            "container": {"skills": [{"type": "custom", "skill_id": "s"}]},
        });
        let refused = server.post("messages", &body).await;
        assert_eq!(refused.status, 400, "{}", refused.body);
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("a server that has no skills"), "{message}");
    });
}

#[test]
fn code_at_another_server_can_call_no_tools() {
    block_on(async {
        let elsewhere = RemoteEngine {
            server: ExecuteServer::new("http://127.0.0.1:1", ExecuteServerOptions::default()).unwrap(),
            timeout: Duration::from_secs(1),
            store: interpreter().await.store().clone(),
        };
        let provider = Arc::new(ScriptedProvider::new(Vec::new()));
        let models = Models::default().with("m", Arc::clone(&provider) as Arc<dyn Provider>);
        let options = Options {
            connectors: vec![Shop::connector("shop", "own")],
            ..Options::default()
        };
        let gateway = Gateway::new(options, Records::in_memory().unwrap(), models, elsewhere);
        let server = listen(gateway).await.of("local");
        let function = json!({"type": "function", "name": "f", "allowed_callers": ["programmatic"]});
        for tool in [json!({}), function] {
            let refused = server.create(asking(&tool, &Value::Null)).await;
            assert_eq!(refused.error(), (400, "invalid_value"));
            let body = refused.body.to_string();
            assert!(body.contains("code runs at another server here"), "{body}");
        }
        assert!(provider.asked().is_empty());
    });
}
