//! Sessions whose code calls connectors.

use cellblock_interpreter::toolset::{notebook, python};
use serde_json::json;

use crate::support::{Client, answer, block_on, connect, newest, server, session, text};
use crate::weather::Weather;

#[test]
fn code_calls_connectors_only_if_the_notebook_is_offered() {
    block_on(async {
        for (toolset, tool, ends) in [
            (notebook::KIND, "run_cell", "21"),
            (python::KIND, "run_python", "NameError"),
        ] {
            let server = server(|options| {
                options.toolsets = vec![toolset];
                options.connectors = vec![Weather::named("weather")];
            });
            let client = connect(&server.await, Client::default(), newest()).await;
            let session = session(&client).await;
            let code = "weather.get_forecast(city='Kyiv')[0]['high']";
            let ran = answer(&client, tool, json!({"session": session, "code": code})).await;
            assert!(text(&ran).contains(ends), "{ran:?}");
        }
    });
}
