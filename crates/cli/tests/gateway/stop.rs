//! The end that an operator asks for.

use rustix::process::Signal;

use crate::server::{ServerHome, until};

#[test]
fn running_code_ends_and_leaves_nothing_behind() {
    let place = ServerHome::new();
    let nothing = place.nothing();
    let mut server = place.serve(&[]);
    let sent = server.begin("import time\ntime.sleep(2)\nprint('to the', 'end')");
    server.signal(Signal::TERM);
    let rest = sent.rest();
    assert!(rest.contains("event: response.completed"), "{rest}");
    assert!(rest.contains("to the end"), "{rest}");
    assert!(rest.contains("data: [DONE]"), "{rest}");
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    server.leaves(&nothing);
}

#[test]
fn a_server_that_stops_rejects_new_sessions_while_code_runs() {
    let place = ServerHome::new();
    let mut server = place.serve(&[]);
    let sent = server.begin("import time\ntime.sleep(10)\nprint('to the', 'end')");
    server.signal(Signal::TERM);
    let told = until(|| {
        let told = server.get("/readyz", &[]);
        (told.status == 503).then_some(told)
    });
    assert_eq!(told.json()["status"], "draining");
    let refused = server.post("/v1/sessions", &[], "{}");
    assert_eq!((refused.status, refused.code()), (503, "draining".to_owned()));
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    let rest = sent.rest();
    assert!(rest.contains("to the end"), "{rest}");
    assert_eq!(server.ended(), Some(0), "{}", server.log());
}

#[test]
fn code_that_exceeds_the_grace_period_fails_with_the_reason() {
    let place = ServerHome::new();
    let nothing = place.nothing();
    let mut server = place.serve(&["--grace", "1"]);
    let sent = server.begin("import time\ntime.sleep(50)");
    server.signal(Signal::TERM);
    let rest = sent.rest();
    assert!(rest.contains("event: response.failed"), "{rest}");
    assert!(
        rest.contains("the gateway was stopped before the response was whole"),
        "{rest}"
    );
    assert!(rest.contains("data: [DONE]"), "{rest}");
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    server.leaves(&nothing);
}

#[test]
fn a_second_signal_ends_at_once() {
    let place = ServerHome::new();
    let nothing = place.nothing();
    let mut server = place.serve(&["--grace", "3600"]);
    let sent = server.begin("import time\ntime.sleep(50)");
    server.signal(Signal::TERM);
    server.signal(Signal::INT);
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    let rest = sent.rest();
    assert!(!rest.contains("response.completed"), "{rest}");
    server.leaves(&nothing);
}

#[test]
fn an_idle_server_ends_although_a_client_keeps_its_connection() {
    let place = ServerHome::new();
    let nothing = place.nothing();
    let mut server = place.serve(&["--grace", "3600"]);
    let _kept = std::net::TcpStream::connect(server.address).unwrap();
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    server.leaves(&nothing);
}
