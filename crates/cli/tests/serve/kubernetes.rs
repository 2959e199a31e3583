//! Code in pods of a cluster whose kubelet starts `cellblock serve` processes.

use std::net::TcpListener;
use std::time::Duration;

use cellblock_testkit::kubernetes::{ADMIN, NOBODY, PretendedPods, ServePods, TestCluster};
use cellblock_testkit::wait::block_until;
use cellblock_testkit::{Cli, require};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{GatewayProcess, call, serve};

/// A port for pods, each of which has an address of its own. While it is held at 127.0.0.1, nobody
/// gets it at all addresses.
fn reserved_port() -> (TcpListener, u16) {
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    (held, port)
}

/// A cluster with a warm pool of servers.
fn cluster(port: u16, replicas: u32) -> TestCluster {
    let cluster = TestCluster::start(ServePods {
        config: "remote: {serve: true}\npool: {ready: 1}".to_owned(),
        args: vec!["--no-model".to_owned()],
        port,
    });
    cluster.create_pool("python", replicas, &json!({}));
    cluster
}

/// A configuration that takes pods of the pool.
fn config(cluster: &TestCluster, port: u16, more: &str) -> String {
    format!(
        "backend: kubernetes\nsandbox_allow_http: true\npool: {{ready: 0, acquire_timeout: 3m}}\n\
         kubernetes: {{kubeconfig: '{}', namespace: {}, warm_pool: python, port: {port}, claim_timeout: \
         2m, lease: 1s{more}}}",
        cluster.kubeconfig(ADMIN).display(),
        cluster.namespace(),
    )
}

fn session(server: &GatewayProcess) -> String {
    let (status, session) = server.post("/v1/sessions", &json!({}));
    assert_eq!(status, 201, "{session}");
    format!("/v1/sessions/{}", session["id"].as_str().unwrap())
}

fn cell(server: &GatewayProcess, session: &str, code: &str) -> Value {
    let (status, cell) = server.post(&format!("{session}/cells"), &json!({"code": code}));
    assert_eq!(status, 200, "{cell}");
    cell
}

fn claims(cluster: &TestCluster, wanted: usize) {
    block_until("there are as many claims", || {
        cluster.count("sandboxclaims") == wanted
    });
}

#[test]
fn a_session_lives_in_a_pod_and_neither_its_end_nor_a_kill_leaves_a_claim() {
    require!(UserNamespaces);
    let (_held, port) = reserved_port();
    let cluster = cluster(port, 1);
    let config = config(&cluster, port, "");
    let server = serve(&config, &["--no-model"], &[]);
    let first = session(&server);
    cell(&server, &first, "x = 41");
    let answer = cell(&server, &first, "x + 1");
    assert_eq!(answer["outputs"][0]["value"], 42, "{answer}");
    assert_eq!(answer["sandbox"]["backend"], "kubernetes", "{answer}");
    // The pod that was claimed at the start, and no other.
    claims(&cluster, 1);
    let (_, metrics) = server.text("/metrics");
    for line in ["cellblock_claims 1", "cellblock_claims_total{result=\"ready\"} 1"] {
        assert!(metrics.lines().any(|it| it == line), "{line}\n{metrics}");
    }

    // A pod that dies takes its variables with it, and its claim goes at once.
    let second = session(&server);
    cell(&server, &second, "y = 1");
    claims(&cluster, 2);
    let all = cluster.all("sandboxclaims");
    let young = all
        .iter()
        .max_by_key(|it| it["metadata"]["uid"].as_str().unwrap().to_owned())
        .unwrap();
    cluster.delete("pods", young["status"]["sandbox"]["name"].as_str().unwrap());
    claims(&cluster, 1);
    let (status, lost) = server.post(&format!("{second}/cells"), &json!({"code": "y"}));
    assert!(status != 200 || lost["outcome"] != "completed", "{lost}");
    let answer = cell(&server, &second, "'y' in globals()");
    assert_eq!(answer["outputs"][0]["value"], false, "{answer}");

    // A killed gateway leaves its claims, and the next one deletes them.
    claims(&cluster, 2);
    assert_eq!(server.end(Signal::KILL), None);
    assert_eq!((cluster.count("sandboxclaims"), cluster.count("leases")), (2, 1));
    let next = serve(&config, &["--no-model"], &[]);
    block_until("the dead gateway's claims are deleted", || {
        (cluster.count("sandboxclaims"), cluster.count("leases")) == (1, 1)
    });
    let third = session(&next);
    assert_eq!(cell(&next, &third, "6 * 7")["outputs"][0]["value"], 42);
    assert_eq!(next.end(Signal::TERM), Some(0));
    assert_eq!((cluster.count("sandboxclaims"), cluster.count("leases")), (0, 0));
    block_until("only the pool's pod is left", || cluster.counts() == (0, 1, 1));
}

#[test]
fn each_call_of_a_server_that_only_executes_claims_a_pod() {
    require!(UserNamespaces);
    let (_held, port) = reserved_port();
    let cluster = TestCluster::start(ServePods {
        config: "execute: {}".to_owned(),
        args: vec!["--no-model".to_owned()],
        port,
    });
    cluster.create_pool("python", 1, &json!({}));
    let server = serve(&config(&cluster, port, ", serves: execute"), &["--demo"], &[]);
    for _ in 0..2 {
        let response = server.run_code("print(6 * 7)", None);
        assert_eq!(call(&response), ("completed".to_owned(), "42\n".to_owned()));
        claims(&cluster, 0);
    }
    assert_eq!(cluster.requests("POST", "sandboxclaims"), 2);
    assert_eq!(server.end(Signal::INT), Some(0));
}

#[test]
fn a_server_without_a_pod_listens_and_says_why_until_there_is_one() {
    require!(UserNamespaces);
    let (_held, port) = reserved_port();
    let cluster = TestCluster::start(ServePods {
        config: "remote: {serve: true}\npool: {ready: 1}".to_owned(),
        args: vec!["--no-model".to_owned()],
        port,
    });
    cluster.create_pool("python", 0, &json!({"fake.cellblock.dev/never-ready": "1"}));
    let config = config(&cluster, port, "").replace("claim_timeout: 2m", "claim_timeout: 3s");
    let server = serve(&config, &["--no-model"], &[]);
    let (status, told) = server.get("/readyz");
    assert_eq!((status, &told["status"]), (503, &json!("not_ready")));
    let reason = told["reason"].as_str().unwrap();
    assert!(reason.contains("no pod became ready within"), "{reason}");
    assert_eq!(server.get("/healthz").0, 200);
    let (status, refused) = server.post("/v1/sessions", &json!({}));
    assert_eq!((status, &refused["error"]["code"]), (503, &json!("starting")));

    // A pod of the pool becomes ready without a claim, however long it takes.
    let annotations = json!({"fake.cellblock.dev/never-ready": null});
    let ready = json!({"spec": {"podTemplate": {"metadata": {"annotations": annotations}}}});
    cluster.patch("sandboxtemplates", "python", &ready);
    cluster.patch("sandboxwarmpools", "python", &json!({"spec": {"replicas": 1}}));
    block_until("the server is ready", || server.get("/readyz").0 == 200);
    let session = session(&server);
    assert_eq!(cell(&server, &session, "6 * 7")["outputs"][0]["value"], 42);
    assert_eq!(server.end(Signal::TERM), Some(0));
}

#[test]
fn a_server_without_permissions_does_not_start() {
    let cluster = TestCluster::start(PretendedPods);
    cluster.create_pool("python", 1, &json!({}));
    let admin = cluster.kubeconfig(ADMIN).display().to_string();
    let nobody = cluster.kubeconfig(NOBODY).display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let written = config(&cluster, 8080, "").replace(&admin, &nobody);
    std::fs::write(folder.path().join("cellblock.yaml"), written).unwrap();
    let cli = Cli::new(["serve", "--no-model", "--listen", "127.0.0.1:0"])
        .env("CELLBLOCK_SERVE__STATE", folder.path().join("state"))
        .folder(folder.path());
    let finished = cli.run().unwrap();
    assert_eq!(
        (finished.code(), &*finished.stdout),
        (78, ""),
        "{}",
        finished.stderr
    );
    assert!(finished.stderr.contains("RBAC denies"), "{}", finished.stderr);
}

#[test]
fn doctor_checks_version_permissions_pool_template_and_one_claim() {
    // Every address of 127/8 is this machine, and this accepts connections to each pod.
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let cluster = TestCluster::start(PretendedPods);
    cluster.create_pool("python", 2, &json!({}));
    block_until("the pool is ready", || {
        cluster.all("sandboxwarmpools")[0]["status"]["readyReplicas"] == 2
    });
    let folder = tempfile::tempdir().unwrap();
    let examine = |text: &str| {
        std::fs::write(folder.path().join("cellblock.yaml"), text).unwrap();
        let cli = Cli::new(["doctor", "--kubernetes", "--json"]).folder(folder.path());
        cli.limit(Duration::from_mins(2)).run().unwrap()
    };
    let written = config(&cluster, port, "");
    let finished = examine(&written);
    let report = finished.json().unwrap();
    assert_eq!(
        (finished.code(), &report["ready"]),
        (0, &json!(true)),
        "{report:#}"
    );
    let checks = report["checks"].as_array().unwrap();
    let names: Vec<_> = checks.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "cluster",
            "agent-sandbox",
            "permissions",
            "pool",
            "template",
            "claim"
        ]
    );
    assert_eq!(checks[2]["detail"], "all 12 that are needed");
    assert_eq!(checks[3]["detail"], "`python`: 2 of 2 pods are ready");
    assert_eq!(cluster.count("sandboxclaims"), 0);

    let admin = cluster.kubeconfig(ADMIN).display().to_string();
    let nobody = cluster.kubeconfig(NOBODY).display().to_string();
    let finished = examine(&written.replace(&admin, &nobody));
    let report = finished.json().unwrap();
    assert_eq!(
        (finished.code(), &report["ready"]),
        (78, &json!(false)),
        "{report:#}"
    );
    let denied = report["checks"][2]["detail"].as_str().unwrap();
    assert!(
        denied.starts_with("denied: `create` on `sandboxclaims.extensions.agents.x-k8s.io`, "),
        "{denied}"
    );

    drop(listener);
    let report = examine(&written).json().unwrap();
    let unreached = report["checks"][5]["detail"].as_str().unwrap();
    assert!(
        unreached.contains("does not accept connections; its NetworkPolicy"),
        "{unreached}"
    );

    let finished = examine("listen: 127.0.0.1:0");
    assert_eq!(finished.code(), 2, "{}", finished.stderr);
    assert!(
        finished.stderr.contains("no `backend: kubernetes`"),
        "{}",
        finished.stderr
    );
}
