//! Measures what E2B's protocol costs: the same cell by its route and by its session, one after the other, in one process.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use cellblock_dialects::{DialectsOptions, E2bOptions};
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_interpreter::session::SessionOptions;
use serde_json::{Value, json};
use tower_service::Service as _;

mod terms;

const RUNS: usize = 500;
const CREATED: usize = 20;

async fn ask(routes: &Router, path: &str, sandbox: &str, body: &Value) -> Vec<u8> {
    let request = Request::post(path)
        .header("e2b-sandbox-id", sandbox)
        .body(Body::from(body.to_string()));
    let response = routes.clone().call(request.expect("the request is valid")).await;
    let body = response.expect("routes do not fail").into_body();
    axum::body::to_bytes(body, usize::MAX)
        .await
        .expect("the body is read")
        .to_vec()
}

async fn create(routes: &Router) -> String {
    let body = json!({"templateID": "base", "timeout": 300, "secure": false});
    let made = ask(routes, "/sandboxes", "", &body).await;
    let made: Value = serde_json::from_slice(&made).expect("the answer is JSON");
    made["sandboxID"].as_str().expect("it has an id").to_owned()
}

fn median(mut all: Vec<Duration>) -> f64 {
    all.sort_unstable();
    all[all.len() / 2].as_secs_f64() * 1000.0
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "its output is the result")]
async fn main() {
    for network in [NetworkPolicy::None, NetworkPolicy::Loopback] {
        let host = terms::host(network).await;
        let options = DialectsOptions {
            e2b: Some(E2bOptions::default()),
            ..DialectsOptions::default()
        };
        let routes = cellblock_dialects::routes(&host, &options)
            .expect("E2B needs no port of its own")
            .remove(0)
            .routes;
        let cell = json!({"code": "1+1"});
        let mut first = Vec::new();
        for _ in 0..CREATED {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let began = Instant::now();
            let sandbox = create(&routes).await;
            let lines = ask(&routes, "/execute", &sandbox, &cell).await;
            first.push(began.elapsed());
            assert!(String::from_utf8_lossy(&lines).contains("\"text\":\"2\""));
        }
        let sandbox = create(&routes).await;
        let session = host.interpreter.session(SessionOptions::default());
        let (mut by_route, mut by_session) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let began = Instant::now();
            ask(&routes, "/execute", &sandbox, &cell).await;
            by_route.push(began.elapsed());
            let began = Instant::now();
            session.execute("1+1").await.expect("the cell runs");
            by_session.push(began.elapsed());
        }
        let (route, session) = (median(by_route), median(by_session));
        println!(
            "network {}: create to first result {:.2} ms (median of {CREATED}); warm 1+1 by /execute {route:.3} ms, by Session::execute \
             {session:.3} ms, ratio {:.2}, difference {:.3} ms (medians of {RUNS})",
            network.name(),
            median(first),
            route / session,
            route - session,
        );
        terms::stop(&host).await;
    }
}
