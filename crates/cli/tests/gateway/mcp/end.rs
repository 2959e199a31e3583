//! The end of a server while `/mcp` runs code, asked for and not.

use rustix::process::Signal;
use serde_json::json;

use super::client::{begin_code, block_on, connect, run};
use crate::server::ServerHome;

#[test]
fn a_call_comes_to_its_end_and_nothing_is_left() {
    let place = ServerHome::new();
    let nothing = place.nothing();
    let mut server = place.serve(&[]);
    let sent = begin_code(server.address, None, "import time; time.sleep(2)\n'to the end'");
    server.signal(Signal::TERM);
    let rest = sent.rest();
    assert!(rest.contains("\"value\":\"to the end\""), "{rest}");
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    server.leaves(&nothing);
}

#[test]
fn a_call_that_is_longer_than_the_grace_is_interrupted_and_says_why() {
    let place = ServerHome::new();
    let nothing = place.nothing();
    let mut server = place.serve(&["--grace", "1"]);
    let sent = begin_code(server.address, None, "import time; time.sleep(50)");
    server.signal(Signal::TERM);
    let rest = sent.rest();
    assert!(rest.contains("\"outcome\":\"interrupted\""), "{rest}");
    assert!(rest.contains("the server is stopping"), "{rest}");
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    server.leaves(&nothing);
}

#[test]
fn unused_sessions_end_with_the_server() {
    let place = ServerHome::new();
    let nothing = place.nothing();
    let mut server = place.serve(&["--grace", "3600"]);
    block_on(async {
        let client = connect(&server, None).await;
        run(
            &client,
            None,
            "import subprocess; subprocess.Popen(['sleep', '50']).pid",
        )
        .await;
        run(&client, None, "1").await;
    });
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    server.leaves(&nothing);
}

#[test]
fn nothing_survives_a_kill_that_the_next_start_does_not_sweep() {
    let place = ServerHome::new();
    let nothing = place.nothing();
    let mut server = place.serve(&[]);
    let code = "import subprocess; subprocess.run(['sleep', '50'])";
    let sent = begin_code(server.address, None, code);
    server.signal(Signal::KILL);
    let rest = sent.rest();
    assert!(!rest.contains("\"result\""), "{rest}");
    assert_eq!(server.ended(), None);
    server.leaves(&nothing);

    let mut server = place.serve(&[]);
    block_on(async {
        let client = connect(&server, None).await;
        assert_eq!(run(&client, None, "6 * 7").await["outputs"][0]["value"], 42);
        let sessions = super::client::done(&client, "list_sessions", json!({})).await;
        assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    });
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    server.leaves(&nothing);
}
