//! Jupyter, as its clients use it.

mod rest;

use cellblock_dialects::DialectsOptions;
use cellblock_dialects::jupyter::JupyterOptions;
use cellblock_testkit::require;

use crate::support::{DialectServer, block_on, suite};

pub(crate) async fn server() -> DialectServer {
    DialectServer::start(DialectsOptions {
        jupyter: Some(JupyterOptions::default()),
        ..DialectsOptions::default()
    })
    .await
}

#[test]
fn open_webui_runs_code_with_a_token_or_a_password() {
    require!(OpenWebuiClient);
    block_on(async {
        suite(
            "open-webui-jupyter",
            "open_webui",
            "test_interpreter",
            &server().await,
        )
        .await;
    });
}

#[test]
fn jupyter_kernel_client_runs_code() {
    require!(JupyterClients);
    block_on(async {
        suite(
            "jupyter-kernel-client",
            "jupyter",
            "test_kernel_client",
            &server().await,
        )
        .await;
    });
}

#[test]
fn jupyter_server_uses_it_as_its_kernel_gateway() {
    require!(JupyterClients);
    block_on(async { suite("jupyter-server", "jupyter", "test_gateway", &server().await).await });
}

#[test]
fn jupyter_lab_runs_a_notebook_in_a_browser() {
    require!(JupyterClients);
    require!(Chromium);
    block_on(async { suite("jupyterlab", "jupyter", "test_lab", &server().await).await });
}
