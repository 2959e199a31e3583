//! A gateway's sandboxes for another Cellblock, through axum's `WebSocket`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::routing::any;
use cellblock_agent::provider::ProviderKey;
use cellblock_artifact::Store;
use cellblock_gateway::Gateway;
use cellblock_gateway::keys::KeyTerms;
use cellblock_gateway::quotas::{Allowance, Quota};
use cellblock_gateway::records::Records;
use cellblock_gateway::remote::{ConnectError, FoundServer, Site, connect, upgrade};
use cellblock_gateway::{Models, Options};
use cellblock_interpreter::error::Blame;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::protection::Demands;
use cellblock_interpreter::remote::RemoteBackend;
use cellblock_interpreter::remote::{Remote, ServeTerms};
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::{Cell, Interpreter};
use cellblock_sandbox::jail::protection::{Demand, Protection, ProtectionStatus};
use cellblock_sandbox::pool::PoolConfig;
use cellblock_testkit::wait::until;
use tokio::net::TcpListener;
use tokio::sync::watch;

const PATIENCE: Duration = Duration::from_secs(30);

fn store() -> Store {
    Store::local(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("remote")).unwrap()
}

async fn local() -> Interpreter {
    Interpreter::builder()
        .home(cellblock_testkit::home().unwrap())
        .preload(vec!["json".to_owned()])
        .pool(0)
        .store(store())
        .build()
        .await
        .unwrap()
}

/// Serves an interpreter's sandboxes until `gone` is told.
async fn serve(interpreter: Arc<Interpreter>, gone: watch::Receiver<bool>) -> Site {
    let route = any(move |request: WebSocketUpgrade| {
        let (interpreter, mut gone) = (Arc::clone(&interpreter), gone.clone());
        async move {
            upgrade(request, interpreter, ServeTerms::default(), async move {
                let _ = gone.wait_for(|gone| *gone).await;
            })
        }
    });
    at(Router::new().route("/v1/sandbox", route)).await
}

/// Serves a router and returns its address.
async fn at(router: Router) -> Site {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // It ends with the test's runtime.
    tokio::spawn(async move { axum::serve(listener, router).await });
    Site {
        url,
        key: None,
        allow_plain: false,
        demands: Demands::default(),
    }
}

/// An interpreter over the sandboxes of another.
fn far(backend: RemoteBackend) -> Interpreter {
    Interpreter::start_remote(Remote {
        backend,
        limits: Limits::default(),
        pool: PoolConfig {
            ready: 0,
            ..PoolConfig::default()
        },
        store: store(),
        spool: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("remote-spool"),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_runs_in_the_sandbox_of_another_gateway_and_ends_with_it() {
    let interpreter = Arc::new(local().await);
    let (go, gone) = watch::channel(false);
    let site = serve(Arc::clone(&interpreter), gone).await;
    let FoundServer::Cellblock(backend) = connect(&site).await.unwrap() else {
        panic!("it has sandboxes");
    };
    let here = far(*backend);
    let session = here.session(SessionOptions {
        prelude: Vec::new(),
        ..SessionOptions::default()
    });
    session.execute("x = 6").await.unwrap();
    let ended = session.execute(Cell::new("print(x * 7)")).await.unwrap();
    assert_eq!(ended.outcome, Outcome::Completed, "{ended:#?}");
    assert_eq!(ended.stdout.text, "42\n");
    assert_eq!(ended.sandbox.backend, "remote");
    assert_eq!(interpreter.sandboxes_in_use().len(), 1);

    go.send_replace(true);
    until("gone", || interpreter.sandboxes_in_use().is_empty()).await;
    let error = session.execute("1").await.unwrap_err();
    assert_eq!(error.blame(), Blame::Backend, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_whose_sandboxes_lack_a_demanded_protection_is_not_used() {
    let interpreter = Arc::new(local().await);
    let report = interpreter.report();
    let lacking: Vec<_> = Protection::ALL
        .into_iter()
        .filter(|it| report.0.get(it) != Some(&ProtectionStatus::Active))
        .collect();
    let (_go, gone) = watch::channel(false);
    let mut site = serve(Arc::clone(&interpreter), gone).await;
    for protection in lacking {
        site.demands.0.insert(protection, Demand::Strict);
    }
    match connect(&site).await {
        Err(ConnectError::Sandboxes { source, .. }) => assert_eq!(source.blame(), Blame::Policy, "{source}"),
        Ok(FoundServer::Cellblock(_)) => assert!(site.demands.0.is_empty()),
        other => panic!("{other:?}"),
    }
}

/// A gateway with a key whose owner may have one sandbox.
async fn gateway(serve: bool) -> (Gateway, ProviderKey) {
    let mut options = Options::default();
    options.remote.serve = serve;
    let records = Records::in_memory().unwrap();
    let gateway = Gateway::new(options, records, Models::default(), local().await);
    let allowance = Allowance::default().with(Quota::Sandboxes, Some(1));
    let made = gateway
        .keys
        .create(
            "far",
            KeyTerms {
                allowance,
                ..KeyTerms::default()
            },
        )
        .await
        .unwrap();
    (gateway, ProviderKey::new(&made.1.reveal()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_gives_sandboxes_to_whoever_has_a_key_and_room_in_its_quota_until_it_ends() {
    let (gateway, key) = gateway(true).await;
    let mut site = at(gateway.router()).await;
    match connect(&site).await {
        Err(ConnectError::Sandboxes { source, .. }) => assert_eq!(source.blame(), Blame::Policy, "{source}"),
        other => panic!("{other:?}"),
    }
    site.key = Some(key);
    let FoundServer::Cellblock(backend) = connect(&site).await.unwrap() else {
        panic!("it has sandboxes");
    };
    let here = far(*backend);
    let session = || {
        here.session(SessionOptions {
            prelude: Vec::new(),
            ..SessionOptions::default()
        })
    };
    let (first, second) = (session(), session());
    first.execute("x = 1").await.unwrap();
    let refused = second.execute("x = 2").await.unwrap_err();
    assert_eq!(refused.blame(), Blame::Capacity, "{refused}");
    first.close().await.unwrap();
    // Its place is free when the other side has heard of it.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while let Err(error) = second.execute("x = 2").await {
        assert_eq!(error.blame(), Blame::Capacity, "{error}");
        assert!(tokio::time::Instant::now() < deadline, "{error}");
    }
    let there = Arc::clone(gateway.interpreter().unwrap());
    assert_eq!(there.sandboxes_in_use().len(), 1);
    gateway.stop();
    let executed = second.execute("print(x)").await.unwrap();
    assert_eq!(executed.stdout.text, "2\n");
    gateway.stop();
    let gone = async {
        until("gone", || there.sandboxes_in_use().is_empty()).await;
        gateway.tasks.close();
        gateway.tasks.wait().await;
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_gives_no_sandboxes_is_one_that_only_executes() {
    let (gateway, key) = gateway(false).await;
    let mut site = at(gateway.router()).await;
    site.key = Some(key);
    let found = connect(&site).await.unwrap();
    assert!(matches!(found, FoundServer::Execute(..)), "{found:?}");
}
