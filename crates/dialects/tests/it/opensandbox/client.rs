//! OpenSandbox's own libraries.

use std::sync::Arc;

use cellblock_interpreter::hosting::UnlimitedMeter;
use cellblock_testkit::require;

use super::options;
use crate::support::{block_on, run, serve_with};

#[test]
fn the_libraries_of_opensandbox_work() {
    require!(OpenSandboxClient);
    block_on(async {
        let served = serve_with(options(), &["key-a"], Arc::new(UnlimitedMeter)).await;
        let domain = format!("{}/opensandbox", served.address);
        let variables = [
            ("OPEN_SANDBOX_DOMAIN", domain.as_str()),
            ("OPEN_SANDBOX_API_KEY", "key-a"),
        ];
        run(
            "opensandbox",
            "dialects/opensandbox",
            ".venv/bin/python",
            &["-m", "unittest", "test_client"],
            &variables,
        )
        .await;
    });
}
