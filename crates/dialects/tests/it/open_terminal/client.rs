//! Open WebUI's own code, at `tests/clients/dialects/open_webui`.

use cellblock_testkit::require;

use super::server;
use crate::support::{block_on, suite};

#[test]
fn open_webui_makes_tools_of_the_operations_and_relays_its_users() {
    require!(OpenWebuiClient);
    block_on(async {
        let server = server().await;
        suite("open-webui-terminal", "open_webui", "test_terminal", &server).await;
    });
}
