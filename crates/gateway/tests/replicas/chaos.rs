//! Three gateways, one of which is killed while it is used, and a database that is restarted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::ScriptedProvider;
use cellblock_gateway::Options;
use cellblock_testkit::wait::{until, until_ok};
use cellblock_testkit::{DatabaseServer, require};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::support::{Api, block_on, code, database, exists, interpreter, key, replica, shared_interpreter};

/// Sessions at each gateway.
const EACH: usize = 2;
/// Time for which a gateway may be silent here.
const LEASE: Duration = Duration::from_secs(4);
/// No request hangs for longer.
const HANGS: Duration = Duration::from_secs(30);

/// Results of the requests to a session, which continue until they are stopped.
#[derive(Debug, Default)]
struct ChaosCounts {
    /// The last value of its counter.
    value: AtomicU64,
    /// Answers since somebody last looked.
    answers: AtomicU64,
    /// Whether it is said to be lost.
    is_lost: AtomicBool,
    /// Errors that are over soon.
    outages: AtomicU64,
    records_outages: AtomicU64,
}

fn change(options: &mut Options) {
    options.lease = LEASE;
    options.quotas.sandboxes = Some(3 * EACH as u64);
    options.quotas.cells_per_minute = None;
    // A cell whose answer was lost may still run.
    options.quotas.concurrent_cells = Some(4 * EACH as u64);
}

/// Uses a session through one gateway after the other.
async fn use_it(session: String, through: Vec<Api>, seen: Arc<ChaosCounts>, stop: Arc<AtomicBool>) {
    let cells = format!("{session}/cells");
    for api in through.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let cell = json!({"code": "x = globals().get('x', 0) + 1\nx"});
        let answer = timeout(HANGS, api.post(&cells, &cell)).await.unwrap();
        match (code(&answer), &answer.1) {
            ((200, _), cell) => {
                let value = cell["outputs"][0]["value"].as_u64().unwrap();
                // A request whose answer was lost may have been done.
                assert!(value > seen.value.swap(value, Ordering::Relaxed), "{cell}");
                seen.answers.fetch_add(1, Ordering::Relaxed);
            }
            ((503, "gateway_unreachable" | "gateway_failed"), _) => {
                seen.outages.fetch_add(1, Ordering::Relaxed);
            }
            ((503, "records_unavailable"), _) => {
                seen.records_outages.fetch_add(1, Ordering::Relaxed);
            }
            ((404, "session_not_found"), told) => {
                let message = told["error"]["message"].as_str().unwrap();
                assert!(
                    message.contains("the gateway that had this session has ended"),
                    "{message}"
                );
                seen.is_lost.store(true, Ordering::Relaxed);
                return;
            }
            (_, told) => panic!("{session}: {} {told}", answer.0),
        }
    }
}

/// Waits until each of these sessions has answered once more.
async fn answering(seen: &[Arc<ChaosCounts>]) {
    for it in seen {
        let before = it.answers.load(Ordering::Relaxed);
        until("a session answers", || {
            it.answers.load(Ordering::Relaxed) > before
        })
        .await;
    }
}

#[test]
fn sessions_answer_or_are_told_lost_while_gateways_and_the_database_end() {
    require!(Postgres);
    let mut server = block_on(DatabaseServer::postgres());
    let url = block_on(database(&server));
    let model: Arc<dyn Provider> = Arc::new(ScriptedProvider::new([]));
    // A runtime of its own: when it is dropped, nothing of the gateway runs any more, as after SIGKILL.
    let process = Runtime::new().unwrap();
    let (victim, at) = process.block_on(async {
        let interpreter = interpreter().await;
        replica(&url, Arc::clone(&model), interpreter, change).await
    });
    block_on(async {
        let shared = shared_interpreter().await;
        let (first, one) = replica(&url, Arc::clone(&model), Arc::clone(&shared), change).await;
        let (second, two) = replica(&url, model, shared, change).await;
        let key = key(&first, "ann").await;
        let apis = [at, one, two].map(|address| Api::new(address, &key));
        let live = apis[1..].to_vec();
        let stop = Arc::new(AtomicBool::new(false));
        let mut all = Vec::new();
        let mut tasks = Vec::new();
        for api in &apis {
            for _ in 0..EACH {
                let (session, seen) = (api.session().await, Arc::new(ChaosCounts::default()));
                // A first sandbox may take long on a busy machine.
                assert_eq!(api.run(&session, "x = 0\nx").await, 0);
                all.push(Arc::clone(&seen));
                let using = use_it(session, live.clone(), seen, Arc::clone(&stop));
                tasks.push(tokio::spawn(using));
            }
        }
        let more = async |api: &Api| api.post("/v1/sessions", &json!({})).await;
        assert_eq!(code(&more(&live[0]).await), (429, "rate_limit_exceeded"));
        let (lost, kept) = all.split_at(EACH);
        answering(&all).await;

        process.shutdown_background();
        until("sessions of a killed gateway are reported as lost", || {
            lost.iter().all(|it| it.is_lost.load(Ordering::Relaxed))
        })
        .await;
        answering(kept).await;
        // Their places are free, and nothing is left of the gateway.
        for api in &live {
            let made: Value = until_ok(async || match more(api).await {
                (201, session) => Ok(session),
                (_, told) => Err(told),
            })
            .await;
            assert!(made["id"].is_string(), "{made}");
        }
        assert_eq!(code(&more(&live[1]).await), (429, "rate_limit_exceeded"));
        let id = victim.mark().unwrap();
        for (table, column) in [("gateways", "id"), ("places", "gateway"), ("homes", "gateway")] {
            let left = format!("SELECT 1 FROM {table} WHERE substr({column}, 1, 12) = '{id}'");
            assert!(!exists(&first, left).await, "{table}");
        }

        server.kill();
        until("the outage of the records is named", || {
            kept.iter()
                .any(|it| it.records_outages.load(Ordering::Relaxed) > 0)
        })
        .await;
        server.restart_postgres().await;
        answering(kept).await;
        assert!(kept.iter().all(|it| !it.is_lost.load(Ordering::Relaxed)));
        stop.store(true, Ordering::Relaxed);
        for task in tasks {
            timeout(HANGS, task).await.unwrap().unwrap();
        }
        // Cells that ended while the database was down are not counted any more.
        until_ok(async || {
            let left = exists(&second, "SELECT 1 FROM places WHERE cells > 0".to_owned()).await;
            if left {
                Err("a cell is still counted")
            } else {
                Ok(())
            }
        })
        .await;
        for gateway in [first, second] {
            gateway.stop();
            gateway.stop();
        }
    });
    drop(victim);
}
