//! Placeholders of secrets: what code has in its environment, and what hosts receive.

use std::time::Duration;

use cellblock_interpreter::cell::Language;
use cellblock_interpreter::egress::{DomainSecret, EgressPolicy, EgressSecret};
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_interpreter::session::fork::ForkOptions;
use cellblock_interpreter::session::processes::{MAX_WAIT, ProcessOrder};
use cellblock_interpreter::session::{SessionOptions, is_reserved_variable};
use cellblock_interpreter::{Cell, Session};
use cellblock_testkit::wait::until;

use crate::egress::{OriginServer, SECRET, allowing, search, with_egress};
use crate::support::{block_on, interpreter, run, value};

const PYTHON: &str = "import os\nos.environ['API_KEY']";

/// A policy with a secret of a server, whose variable is `API_KEY`.
fn policy(server: &OriginServer) -> EgressPolicy {
    EgressPolicy {
        domain_secrets: vec![DomainSecret {
            host: "127.0.0.1".parse().unwrap(),
            name: "API_KEY".to_owned(),
            value: EgressSecret::new(SECRET),
        }],
        ..allowing(server.rule())
    }
}

#[test]
fn a_placeholder_becomes_the_secret_outside_and_the_secret_is_nowhere_inside() {
    block_on(async {
        let server = OriginServer::start();
        let session = with_egress(Some(policy(&server))).await;
        let request = format!(
            "import os, urllib.request\n\
             headers = {{'x-token': 'Token ' + os.environ['API_KEY']}}\n\
             request = urllib.request.Request('http://127.0.0.1:{}/', headers=headers)\n\
             urllib.request.urlopen(request, timeout=30).read().decode()",
            server.port
        );
        assert_eq!(value(&session, &request).await, "hello");
        let heard = server.heard().remove(0).to_lowercase();
        assert!(heard.contains(&format!("x-token: token {SECRET}")), "{heard}");
        assert_eq!(value(&session, &search(SECRET)).await, "([], True)");
        session.close().await.unwrap();
    });
}

/// Returns the variable as a process has it.
async fn of_a_process(session: &Session) -> String {
    let order = ProcessOrder {
        command: ["sh", "-c", "printf %s \"$API_KEY\""].map(str::to_owned).to_vec(),
        ..ProcessOrder::default()
    };
    let processes = session.processes();
    let id = processes.start(order).await.unwrap().id;
    processes.wait(&id, MAX_WAIT).await.unwrap();
    let output = processes.output(&id, 0, 1 << 16, MAX_WAIT).await.unwrap();
    output.into_text().0
}

#[test]
fn every_language_process_and_new_sandbox_has_the_same_placeholder() {
    block_on(async {
        let interpreter = interpreter().await;
        let session = interpreter.session(SessionOptions {
            limits: Some(Limits {
                network: NetworkPolicy::Egress,
                ..interpreter.limits().clone()
            }),
            egress: Some(policy(&OriginServer::start())),
            idle: Duration::from_secs(1),
            ..SessionOptions::default()
        });
        let placeholder = value(&session, PYTHON).await.as_str().unwrap().to_owned();
        assert!(placeholder.starts_with("placeholder_"), "{placeholder}");
        for (language, code) in [
            (Language::Bash, "echo $API_KEY"),
            (Language::Javascript, "console.log(process.env.API_KEY)"),
        ] {
            let ran = session
                .execute(Cell::new(code).in_language(language))
                .await
                .unwrap();
            assert_eq!(
                ran.stdout.text,
                format!("{placeholder}\n"),
                "{language:?}: {ran:?}"
            );
        }
        assert_eq!(of_a_process(&session).await, placeholder);
        session.reset().await.unwrap();
        assert_eq!(value(&session, PYTHON).await, *placeholder);
        run(&session, "import os\nos._exit(1)").await;
        assert_eq!(value(&session, PYTHON).await, *placeholder);
        let first = session.prepare().await.unwrap().sandbox;
        until("its sandbox is given back", || {
            !interpreter.sandboxes_in_use().contains(&first)
        })
        .await;
        assert_eq!(of_a_process(&session).await, placeholder);
        assert_eq!(value(&session, PYTHON).await, *placeholder);
        assert_ne!(session.prepare().await.unwrap().sandbox, first);
        session.close().await.unwrap();
    });
}

#[test]
fn a_fork_has_the_placeholder_and_a_way_out() {
    needs!(Forks);
    block_on(async {
        let server = OriginServer::start();
        let session = with_egress(Some(policy(&server))).await;
        run(&session, "import os, urllib.request\nkey = os.environ['API_KEY']").await;
        let forked = session.fork(ForkOptions::new(1)).await;
        if interpreter().await.backend().suspends() {
            let refused = forked.unwrap_err().to_string();
            assert!(refused.contains("`egress`"), "{refused}");
            session.close().await.unwrap();
            return;
        }
        let fork = forked.unwrap().remove(0);
        session.close().await.unwrap();
        assert_eq!(value(&fork, "os.environ['API_KEY'] == key").await, true);
        let request = format!(
            "request = urllib.request.Request('http://127.0.0.1:{}/', headers={{'x-token': key}})\n\
             urllib.request.urlopen(request, timeout=30).read().decode()",
            server.port
        );
        assert_eq!(value(&fork, &request).await, "hello");
        let heard = server.heard().remove(0).to_lowercase();
        assert!(heard.contains(&format!("x-token: {SECRET}")), "{heard}");
        assert_eq!(value(&fork, &search(SECRET)).await, "([], True)");
        fork.close().await.unwrap();
    });
}

#[test]
fn variables_of_the_sandbox_are_reserved() {
    for name in ["PATH", "HTTPS_PROXY", "SSL_CERT_FILE", "LD_PRELOAD", "PYTHONPATH"] {
        assert!(is_reserved_variable(name), "{name}");
    }
    for name in ["API_KEY", "path", "PATHS"] {
        assert!(!is_reserved_variable(name), "{name}");
    }
}
