//! Packages that sandboxes of all dialects have.

use cellblock_dialects::open_terminal::OpenTerminalOptions;
use cellblock_dialects::{DialectsOptions, LibreChatOptions};
use serde_json::{Value, json};

use crate::open_terminal::Chat;
use crate::support::{DialectServer, RequestExt, block_on, client};

const CODE: &str = "import humanize\nprint(humanize.intcomma(1000))";

#[test]
fn sandboxes_of_dialects_have_the_required_packages() {
    block_on(async {
        let server = DialectServer::start(DialectsOptions {
            requirements: vec!["humanize".to_owned()],
            librechat: Some(LibreChatOptions::default()),
            open_terminal: Some(OpenTerminalOptions::default()),
            ..DialectsOptions::default()
        })
        .await;
        let chat = Chat::new(&server);
        let answer = chat.done("/python", json!({"code": CODE})).await;
        assert_eq!(answer["stdout"], "1,000\n", "{answer}");
        let request = client()
            .post(server.url("/librechat/exec"))
            .header("X-API-Key", chat.key)
            .json(&json!({"lang": "py", "code": CODE}));
        let answer: Value = request.sent().await.json().await.unwrap();
        assert_eq!(answer["stdout"], "1,000\n", "{answer}");
    });
}
