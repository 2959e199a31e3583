//! Many executions, one after the other and at once, leave nothing (SC-003).

use std::thread;
use std::time::Duration;

use cellblock_sandbox::pool::PoolConfig;
use cellblock_testkit::Count;
use cellblock_testkit::wait::block_until_ok;
use rustix::process::Signal;
use serde_json::Value;

use crate::http;
use crate::server::{Server, ServerHome, until};

const CONSECUTIVE: usize = 100;
const CONCURRENT: usize = 50;
const STEADY: Duration = Duration::from_secs(1);

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
fn settle(server: &Server) {
    let ready = u64::try_from(PoolConfig::default().ready).unwrap();
    let is = |name: &str, wanted: u64| server.metric(name, &[]) == wanted;
    until(|| (is("cellblock_sandboxes", 0) && is("cellblock_pool_ready", ready)).then_some(()));
}

/// Counts what is there once that does not change any more: the spare room comes after the pool.
fn steady(server: &mut Server) -> Count {
    let rooms = |count: &Count| (count.processes, count.namespaces, count.cgroups);
    until(|| {
        let earlier = server.owner.count();
        thread::sleep(STEADY);
        let now = server.owner.count();
        (rooms(&earlier) == rooms(&now)).then_some(now)
    })
}

#[test]
fn executions_leave_no_sandbox_no_process_and_no_file() {
    let place = ServerHome::new();
    let nothing = place.nothing();
    let mut server = place.serve(&[]);
    execute(&server, 0);
    settle(&server);
    let before = steady(&mut server);
    for number in 0..CONSECUTIVE {
        execute(&server, number);
    }
    thread::scope(|scope| {
        for number in 0..CONCURRENT {
            let server = &server;
            scope.spawn(move || execute(server, number));
        }
    });
    settle(&server);
    // What belongs to the server itself, as its descriptors and threads, may differ; of what
    // belongs to sandboxes, there may be less: the first one may not have been gone completely.
    let after = block_until_ok(|| {
        let now = server.owner.count();
        let no_more = now.processes <= before.processes
            && now.cgroups <= before.cgroups
            && now.mounts <= before.mounts
            && now.namespaces <= before.namespaces
            && now.entries <= before.entries
            && now.id_locks <= before.id_locks;
        if no_more {
            return Ok(now);
        }
        Err(format!("{now:?} is more than {before:?}"))
    });
    assert!(
        after.descriptors <= before.descriptors + 16,
        "{before:?} {after:?}"
    );
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    server.leaves(&nothing);
}
