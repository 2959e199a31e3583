//! LibreChat's own tools.

use cellblock_testkit::require;

use super::code_api;
use crate::support::{block_on, run};

#[test]
fn the_tools_of_librechat_work() {
    require!(LibreChatClient);
    block_on(async {
        let api = code_api().await;
        run(
            "librechat",
            "dialects/librechat",
            "node",
            &["--test", "--test-reporter=tap", "client.test.js"],
            &[("LIBRECHAT_CODE_BASEURL", &api.url(""))],
        )
        .await;
    });
}
