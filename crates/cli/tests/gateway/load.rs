//! Many executions, one after the other and at once, leave nothing (SC-003).

use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::http;
use crate::server::{Place, Server, until};

const CONSECUTIVE: usize = 100;
const CONCURRENT: usize = 50;

/// Runs code, checks what came of it, and deletes its container.
fn execute(server: &Server, number: usize) {
    let code = format!("open('/workspace/{number}.txt', 'w').write('x')\nprint({number} * 2)");
    let answer = server.post("/v1/responses", &[], &http::code(&code, false));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let response = answer.json();
    let call = http::call(&response);
    assert_eq!(call["status"], "completed", "{call}");
    assert_eq!(call["outputs"][0]["logs"], format!("{}\n", number * 2), "{call}");
    delete(server, call);
}

fn delete(server: &Server, call: &Value) {
    let container = call["container_id"].as_str().unwrap();
    let line = format!("DELETE /v1/containers/{container}");
    let status = http::send(server.address, &line, &[], "").answer().status;
    assert!(status == 200 || status == 404, "{status}");
}

/// Waits until no session has a sandbox any more and the pool is full, so that what is there can be counted.
fn settle(server: &Server, ready: f64) {
    let is = |name: &str, wanted: f64| (server.metric(name, &[]) - wanted).abs() < f64::EPSILON;
    until(|| (is("cellblock_sandboxes", 0.0) && is("cellblock_pool_ready", ready)).then_some(()));
}

#[test]
fn executions_leave_no_sandbox_no_process_and_no_file() {
    let place = Place::new();
    let nothing = place.nothing();
    let mut server = place.serve(&[]);
    execute(&server, 0);
    let ready = until(|| Some(server.metric("cellblock_pool_ready", &[])).filter(|ready| *ready > 0.0));
    let ready = until(|| {
        // The pool fills itself one by one; it is full when no more comes.
        thread::sleep(std::time::Duration::from_millis(500));
        let now = server.metric("cellblock_pool_ready", &[]);
        (now >= ready && now == server.metric("cellblock_pool_ready", &[])).then_some(now)
    });
    settle(&server, ready);
    let before = server.owner.count();
    for number in 0..CONSECUTIVE {
        execute(&server, number);
    }
    thread::scope(|scope| {
        for number in 0..CONCURRENT {
            let server = &server;
            scope.spawn(move || execute(server, number));
        }
    });
    settle(&server, ready);
    // What belongs to the server itself, as its descriptors and threads, may differ; what belongs to sandboxes may not.
    let after = until(|| {
        let now = server.owner.count();
        let same = now.processes == before.processes
            && now.cgroups == before.cgroups
            && now.mounts == before.mounts
            && now.namespaces == before.namespaces
            && now.entries == before.entries
            && now.id_locks == before.id_locks;
        same.then_some(now)
    });
    assert!(
        after.descriptors <= before.descriptors + 16,
        "{before:?} {after:?}"
    );
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    server.leaves(&nothing);
}
