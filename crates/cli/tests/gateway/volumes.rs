//! Volumes over a server that is killed, and the commands of their operator.

use rustix::process::Signal;

use crate::server::ServerHome;

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

#[test]
fn a_volume_survives_a_kill_and_says_which_session_was_lost() {
    let place = ServerHome::new();
    let none = place.cellblock(&["volume", "list"]);
    assert!(none.stdout.starts_with("no volumes; "), "{}", none.stdout);
    let mut server = place.serve(&[]);
    let session = server.post("/v1/sessions", JSON, r#"{"volume": "data"}"#).json();
    let id = session["id"].as_str().unwrap().to_owned();
    let code = r#"{"code": "_ = open('/workspace/volume/x', 'w').write('kept')"}"#;
    let cell = server.post(&format!("/v1/sessions/{id}/cells"), JSON, code);
    assert_eq!(cell.json()["outcome"], "completed", "{}", cell.body);

    let held = place.cellblock(&["volume", "remove", "data"]);
    assert_eq!(held.code(), 2, "{}", held.stderr);
    assert!(
        held.stderr.contains(&format!("the session `{id}` writes it")),
        "{}",
        held.stderr
    );
    server.signal(Signal::KILL);
    assert_eq!(server.ended(), None);

    let mut server = place.serve(&[]);
    let volume = server.get("/v1/volumes/data", &[]).json();
    assert_eq!(volume["revision"], 1, "{volume}");
    assert_eq!(volume["last_writer"]["session"], id.as_str());
    assert_eq!(volume["last_writer"]["state"], "lost");
    let session = server.post("/v1/sessions", JSON, r#"{"volume": "data"}"#).json();
    let cells = format!("/v1/sessions/{}/cells", session["id"].as_str().unwrap());
    let read = server.post(
        &cells,
        JSON,
        r#"{"code": "print(open('/workspace/volume/x').read(), end='')"}"#,
    );
    let read = read.json();
    assert_eq!(read["stdout"], "kept", "{read}");
    assert!(read["note"].as_str().unwrap().contains(&id), "{read}");
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0), "{}", server.log());

    let list = place.cellblock(&["volume", "list", "--json"]).json().unwrap();
    assert_eq!(list["volumes"][0]["owner"], "local", "{list}");
    assert_eq!(list["volumes"][0]["last_writer"]["state"], "saved", "{list}");
    let shown = place.cellblock(&["volume", "show", "data"]);
    assert!(shown.stdout.contains("revision 1, saved "), "{}", shown.stdout);
    let deleted = place.cellblock(&["volume", "remove", volume["id"].as_str().unwrap()]);
    assert_eq!(deleted.code(), 0, "{}", deleted.stderr);
    let again = place.cellblock(&["volume", "show", "data"]);
    assert_eq!(again.code(), 2, "{}", again.stderr);
    assert!(
        again.stderr.contains("there is no volume `data`"),
        "{}",
        again.stderr
    );
}
