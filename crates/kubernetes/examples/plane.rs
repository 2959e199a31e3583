//! Starts the control plane of `CELLBLOCK_TEST_KUBE` with a warm pool, measures claims in it, and
//! keeps it until standard input ends, for trials by hand. With `--serve`, pods are `cellblock
//! serve` processes at addresses of their own, port 18080, and first cells in them are measured,
//! too; otherwise they are nothing.
//!
//! The program needs the feature `kubernetes` (`cargo build --release --features full`).
//!
//! ```console
//! CELLBLOCK_TEST_KUBE=DIR CELLBLOCK_BIN=target/release/cellblock \
//!     cargo run --release -p cellblock-kubernetes --example plane -- --serve < /dev/null
//! ```

#![expect(clippy::print_stdout, reason = "it prints what it measured")]

use std::error::Error;
use std::io::{Read as _, stdin};
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use cellblock_kubernetes::{Claims, KubernetesOptions, PodAccess, SandboxClaim, permissions};
use cellblock_protocol::{CellMode, FromKernel, Language, ToKernel};
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::Kernel;
use cellblock_sandbox::channel::write_frame;
use cellblock_sandbox::jail::protection::Demands;
use cellblock_sandbox::pool::create;
use cellblock_testkit::kubernetes::{ADMIN, GATEWAY, Plane, PretendedPods, ServePods, TestCluster};
use cellblock_testkit::wait::until;
use futures_util::StreamExt as _;
use kube::api::{DeleteParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt as _};
use serde_json::json;

const POOL: &str = "python";
const REPLICAS: u32 = 4;
const PORT: u16 = 18080;
const RUNS: usize = 60;
const REST: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let plane = Plane::start();
    println!("the plane answers after {:.1?}", began.elapsed());
    let connection = plane.connection();
    let serves = std::env::args().any(|arg| arg == "--serve");
    let cluster = if serves {
        let pods = ServePods {
            config: "remote: {serve: true}\npool: {ready: 1}".to_owned(),
            args: vec!["--no-model".to_owned()],
            port: PORT,
        };
        TestCluster::in_plane(Path::new(&connection), pods)
    } else {
        TestCluster::in_plane(Path::new(&connection), PretendedPods)
    };
    let permissions = permissions(&KubernetesOptions::default());
    let rules: Vec<_> = permissions
        .iter()
        .map(|it| (it.group, it.resource, it.verb))
        .collect();
    cluster.grant(&rules);
    cluster.create_pool(POOL, REPLICAS, &json!({}));
    filled(&cluster).await;
    println!("{REPLICAS} pods are ready after {:.1?}", began.elapsed());

    let kubeconfig = plane.kubeconfig(GATEWAY, cluster.namespace());
    let file = Kubeconfig::read_from(&kubeconfig)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    let api = Api::default_namespaced(Client::try_from(config)?);
    let options = KubernetesOptions {
        kubeconfig: Some(kubeconfig.clone()),
        warm_pool: Some(POOL.to_owned()),
        port: PORT,
        ..KubernetesOptions::default()
    };
    let claims = Claims::start(&options).await?;
    let backend = if serves {
        let access = PodAccess {
            key: None,
            allow_http: true,
        };
        let options = KubernetesOptions {
            owner: "of-the-cells".to_owned(),
            ..options.clone()
        };
        let backend = cellblock_kubernetes::start(&options, access, Demands::default()).await?;
        // The pod that it claimed to learn about the image.
        let lease = create(&backend, &Limits::default()).await?;
        lease.sandbox.destroy().await?;
        filled(&cluster).await;
        Some(backend)
    } else {
        None
    };
    let (mut own, mut ours, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        own.push(claim(&api).await?);
        filled(&cluster).await;
        let began = Instant::now();
        let pod = claims.claim().await?;
        ours.push(began.elapsed());
        drop(pod);
        filled(&cluster).await;
        let Some(backend) = &backend else { continue };
        // A pod is ready before its server has imported the image's libraries.
        tokio::time::sleep(REST).await;
        let began = Instant::now();
        let mut lease = create(backend, &Limits::default()).await?;
        first_cell(&mut lease.kernel).await?;
        cells.push(began.elapsed());
        lease.sandbox.destroy().await?;
        filled(&cluster).await;
    }
    print("claim to Ready, kube's client alone", own);
    print("claim to Ready, Claims::claim", ours);
    if serves {
        print("claim to the end of the first cell", cells);
    }
    drop((claims, backend));
    until("nothing is left", || {
        cluster.counts() == (0, REPLICAS as usize, REPLICAS as usize)
    })
    .await;
    println!("claims, sandboxes, pods afterward: {:?}", cluster.counts());
    println!("Leases of gateways afterward: {}", cluster.count("leases"));
    for program in [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "agent-sandbox-controller",
    ] {
        println!("{program}: {} MiB", plane.memory(program) >> 20);
    }
    println!("kubeconfig of a gateway: {}", kubeconfig.display());
    let administrator = plane.kubeconfig(ADMIN, cluster.namespace());
    println!("kubeconfig of an administrator: {}", administrator.display());
    stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

async fn filled(cluster: &TestCluster) {
    until("the pool is full", || {
        cluster.all("sandboxwarmpools")[0]["status"]["readyReplicas"] == REPLICAS
    })
    .await;
}

/// Creates a claim, watches it until it is ready, and deletes it.
async fn claim(api: &Api<SandboxClaim>) -> Result<Duration, Box<dyn Error>> {
    let claim: SandboxClaim = serde_json::from_value(json!({
        "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
        "kind": "SandboxClaim",
        "metadata": {"generateName": "own-"},
        "spec": {"warmPoolRef": {"name": POOL}},
    }))?;
    let began = Instant::now();
    let claim = api.create(&PostParams::default(), &claim).await?;
    let name = claim.name_any();
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    let version = claim.resource_version().unwrap_or_default();
    let mut events = pin!(api.watch(&params, &version).await?);
    loop {
        let Some(event) = events.next().await else {
            return Err("the watch ended".into());
        };
        if let WatchEvent::Added(claim) | WatchEvent::Modified(claim) = event? {
            let conditions = claim.status.unwrap_or_default().conditions;
            if conditions
                .iter()
                .any(|it| it.type_ == "Ready" && it.status == "True")
            {
                break;
            }
        }
    }
    let elapsed = began.elapsed();
    api.delete(&name, &DeleteParams::background()).await?;
    Ok(elapsed)
}

async fn first_cell(kernel: &mut Kernel) -> Result<(), Box<dyn Error>> {
    let message = ToKernel::Execute {
        cell: 1,
        name: "<cell>".to_owned(),
        code: "1 + 1".to_owned(),
        line: 1,
        language: Language::Python,
        argv: Vec::new(),
        mode: CellMode::Exec,
        echo: true,
        store: true,
        last: false,
        references: Vec::new(),
        report_names: false,
        grace_ms: None,
    };
    write_frame(&mut kernel.writer, &message, &[]).await?;
    while let Some(frame) = kernel.frames.next().await? {
        if let FromKernel::Done { .. } = frame.message {
            return Ok(());
        }
    }
    Err("the kernel ended".into())
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!(
        "{what}: p50 {:.1?}, p90 {:.1?}, min {:.1?}",
        at(50),
        at(90),
        at(0)
    );
}
