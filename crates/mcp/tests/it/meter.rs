//! Limits of an owner that a meter outside sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cellblock_interpreter::hosting::uploads::UploadAllowance;
use cellblock_interpreter::hosting::{Admission, Meter, MeterDenial, Owner, Permit};
use serde_json::json;

use crate::support::{Client, all, block_on, connect, done, newest, refused, run, server, session};

/// Gives so many of each, until they are given back.
#[derive(Debug)]
struct PlaceMeter {
    sessions: Arc<AtomicUsize>,
    cells: Arc<AtomicUsize>,
    asked: AtomicUsize,
}

struct PermitCount(Arc<AtomicUsize>);

impl Drop for PermitCount {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn take(free: &Arc<AtomicUsize>, what: &str) -> Result<Permit, MeterDenial> {
    let taken = free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(1));
    match taken {
        Ok(_) => Ok(Permit::new(PermitCount(Arc::clone(free)))),
        Err(_) => Err(MeterDenial(format!("no {what} is free; try again in 9 s"))),
    }
}

impl Meter for PlaceMeter {
    fn session<'a>(&'a self, _: &'a Owner) -> Admission<'a, Permit> {
        Box::pin(async { take(&self.sessions, "sandbox") })
    }

    fn cell<'a>(&'a self, _: &'a Owner) -> Admission<'a, Permit> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { take(&self.cells, "cell") })
    }

    fn upload<'a>(&'a self, _: &'a Owner, bytes: u64) -> Admission<'a, Box<dyn UploadAllowance>> {
        Box::pin(async move {
            if bytes > 3 {
                return Err(MeterDenial(format!("{bytes} bytes are more than 3")));
            }
            Ok(Box::new(()) as _)
        })
    }
}

fn places(sessions: usize, cells: usize) -> Arc<PlaceMeter> {
    Arc::new(PlaceMeter {
        sessions: Arc::new(AtomicUsize::new(sessions)),
        cells: Arc::new(AtomicUsize::new(cells)),
        asked: AtomicUsize::new(0),
    })
}

#[test]
fn a_session_has_a_place_until_it_is_closed() {
    block_on(async {
        let places = places(1, 1);
        let meter = Arc::clone(&places);
        let server = server(|options| options.meter = meter).await;
        let client = connect(&server, Client::default(), newest()).await;
        let first = session(&client).await;
        run(&client, Some(&first), "1").await;
        done(&client, "close_session", json!({"session_id": first})).await;
        assert_eq!(places.sessions.load(Ordering::Relaxed), 1);
        // An idle session makes room for another one.
        let second = session(&client).await;
        run(&client, None, "1").await;
        let told = refused(&client, "run_python", json!({"code": "1", "session_id": second})).await;
        assert!(told.contains("made room"), "{told}");
        let sessions = done(&client, "list_sessions", json!({})).await;
        let last = sessions["sessions"][0]["session_id"].clone();
        done(&client, "close_session", json!({"session_id": last})).await;
        places.sessions.store(0, Ordering::Relaxed);
        let told = refused(&client, "run_python", json!({"code": "1"})).await;
        assert_eq!(told, "nothing was done: no sandbox is free; try again in 9 s");
    });
}

#[test]
fn whatever_runs_code_asks_first_and_gives_back() {
    block_on(async {
        let places = places(1, 1);
        let meter = Arc::clone(&places);
        let server = server(|options| {
            all(options);
            options.meter = meter;
        })
        .await;
        let client = connect(&server, Client::default(), newest()).await;
        let session = session(&client).await;
        let calls = [
            ("run_python", json!({"code": "1/0", "session_id": session})),
            (
                "sandbox_exec",
                json!({"command": ["true"], "session_id": session}),
            ),
            ("code_interpreter", json!({"code": "1", "session_id": session})),
            ("render_chart", json!({"session_id": session})),
        ];
        for (tool, arguments) in &calls {
            crate::support::answer(&client, tool, arguments.clone()).await;
        }
        assert_eq!(places.asked.load(Ordering::Relaxed), calls.len());
        assert_eq!(places.cells.load(Ordering::Relaxed), 1);
        places.cells.store(0, Ordering::Relaxed);
        for (tool, arguments) in calls {
            let told = refused(&client, tool, arguments).await;
            assert_eq!(
                told, "nothing was done: no cell is free; try again in 9 s",
                "{tool}"
            );
        }
    });
}

#[test]
fn an_upload_is_counted_in_bytes() {
    block_on(async {
        let meter = places(1, 1);
        let server = server(|options| options.meter = meter).await;
        let client = connect(&server, Client::default(), newest()).await;
        let session = session(&client).await;
        let upload = |content: &str, encoding: &str| {
            json!({"session_id": session, "path": "a",
            "content": content, "encoding": encoding})
        };
        done(&client, "upload_file", upload("abc", "text")).await;
        done(&client, "upload_file", upload("YWJj", "base64")).await;
        let told = refused(&client, "upload_file", upload("abcd", "text")).await;
        assert_eq!(told, "nothing was done: 4 bytes are more than 3");
    });
}
