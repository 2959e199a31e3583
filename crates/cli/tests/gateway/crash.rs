//! The end that nobody asked for.

use rustix::process::Signal;

use crate::http;
use crate::server::ServerHome;

#[test]
fn only_the_records_survive_a_kill() {
    let place = ServerHome::new();
    let nothing = place.nothing();
    let mut server = place.serve(&[]);
    let sent = server.begin("import subprocess\nsubprocess.run(['sleep', '50'])");
    server.signal(Signal::KILL);
    let rest = sent.rest();
    assert!(!rest.contains("response.completed"), "{rest}");
    assert_eq!(server.ended(), None);
    let made = place.cellblock(&["key", "create", "after"]);
    assert_eq!(made.code(), 0, "{}", made.stderr);
    server.leaves(&nothing);

    let mut server = place.serve(&[]);
    let body = http::code("6 * 7", false);
    assert_eq!(server.post("/v1/responses", &[], &body).status, 401);
    let bearer = format!("Bearer {}", made.stdout.trim_end());
    let answer = server.post("/v1/responses", &[("Authorization", &bearer)], &body);
    assert_eq!(
        http::call(&answer.json())["status"],
        "completed",
        "{}",
        answer.body
    );
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    server.leaves(&nothing);
}
