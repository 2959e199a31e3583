//! The interpreter that the tests of this binary share, and sessions with the suite's shared module in them.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use cellblock_artifact::Store;
use cellblock_image::{DEFAULT_IMAGE, Home, OpenImage, Sink};
use cellblock_interpreter::cell::Rescue;
use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::egress::{DomainSecret, EgressPolicy, EgressSecret};
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_interpreter::project::Project;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::skill::{SessionSkill, SkillBundle, SkillPackage};
use cellblock_interpreter::{Cell, Interpreter, Session};
use cellblock_sandbox::jail::protection::{Demand, Demands, Protection};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use crate::backend::over_backend;

/// The interpreter's tasks live here, so it must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static INTERPRETER: OnceCell<Interpreter> = OnceCell::const_new();

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// The default image of the home that all tests share, built if it is not there.
pub(crate) async fn image() -> OpenImage {
    let home = Home::at(&cellblock_testkit::home().unwrap()).unwrap();
    let store = cellblock_image::ImageStore::new(home);
    store.open(DEFAULT_IMAGE, Sink::new(|_| {})).await.unwrap()
}

/// The image's interpreter, to be run outside a sandbox.
pub(crate) fn python(image: &OpenImage) -> PathBuf {
    image.tree().join(&image.manifest().interpreter)
}

pub(crate) async fn interpreter() -> &'static Interpreter {
    INTERPRETER.get_or_init(start).await
}

async fn start() -> Interpreter {
    // The second run, as an ordinary user, may not write below the target directory.
    let artifacts = std::env::var_os("CELLBLOCK_TEST_STORE").map_or_else(
        || PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("containment"),
        PathBuf::from,
    );
    let builder = Interpreter::builder()
        .image(image().await)
        .demands(demands())
        .store(Store::local(artifacts).unwrap());
    let interpreter = over_backend(builder).await.build().await.unwrap();
    interpreter.warmed().await.unwrap();
    interpreter
}

/// Set where sandboxes are to have no namespaces although the machine has them.
pub(crate) const ALONE: &str = "CELLBLOCK_TEST_ALONE";

/// Whether sandboxes have no namespaces.
pub(crate) fn alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

fn demands() -> Demands {
    if !alone() {
        return Demands::default();
    }
    let mut demands = Demands::without_namespaces();
    demands.0.insert(Protection::UserNamespace, Demand::Disabled);
    demands
}

/// A session in which `from probe import …` works.
pub(crate) async fn session(limits: Option<Limits>, bait: &str) -> Session {
    connected(limits, bait, Vec::new()).await
}

/// A project of all probes, with a dataset of another session, which none of them has looked at.
async fn project() -> Project {
    static PROJECT: OnceCell<Project> = OnceCell::const_new();
    let made = PROJECT.get_or_init(|| async {
        let store = interpreter().await.store().clone();
        let project = Project::new(store, cellblock_interpreter::mint("owner_"), "probes").unwrap();
        let publisher = interpreter().await.session(SessionOptions {
            project: Some(project.clone()),
            ..SessionOptions::default()
        });
        let code = "_ = publish_dataset(pd.DataFrame({'x': [1]}), 'unseen')";
        let ran = publisher.execute(code).await.unwrap();
        assert_eq!(ran.outcome, Outcome::Completed, "{ran:?}");
        project
    });
    made.await.clone()
}

/// The skill of all sessions.
async fn skill() -> SessionSkill {
    static SKILL: OnceCell<SessionSkill> = OnceCell::const_new();
    let made = SKILL.get_or_init(|| async {
        let folder = tempfile::tempdir().unwrap();
        let manifest = "---\nname: probe\ndescription: Nothing to do.\n---\n";
        std::fs::write(folder.path().join("SKILL.md"), manifest).unwrap();
        let package = SkillPackage::from_folder(folder.path()).unwrap();
        let bundle = SkillBundle::store(interpreter().await.store(), package).await;
        SessionSkill::stored("skill_probe", "1", Arc::new(bundle.unwrap()))
    });
    made.await.clone()
}

/// A session of which code can also call connectors.
pub(crate) async fn connected(
    limits: Option<Limits>,
    bait: &str,
    connectors: Vec<Arc<dyn Connector>>,
) -> Session {
    // Probes look for the value, and have a placeholder.
    let way_out = || EgressPolicy {
        domain_secrets: vec![DomainSecret {
            host: "secret.invalid".parse().unwrap(),
            name: "PROBE_KEY".to_owned(),
            value: EgressSecret::new("opensesame-4711-emasesnepo"),
        }],
        // The proxy has the value in a request that then fails.
        allow_http_domain_secrets: true,
        // A probe tries to replace them.
        replaceable: true,
        ..EgressPolicy::from_rules(["allowed.invalid", "secret.invalid"]).unwrap()
    };
    let options = SessionOptions {
        egress: limits
            .as_ref()
            .is_some_and(|limits| limits.network == NetworkPolicy::Egress)
            .then(way_out),
        limits,
        // A standby is a process of the sandbox beside the kernel, which a probe that looks for
        // others would find.
        rescue: Rescue::Off,
        connectors,
        project: Some(project().await),
        // Sandboxes without namespaces have no place for it.
        skills: if alone() { Vec::new() } else { vec![skill().await] },
        ..SessionOptions::default()
    };
    let session = interpreter().await.session(options);
    let read = |name: &str| std::fs::read(crate::probe::folder().join("shared").join(name)).unwrap();
    let shared = ["probe.py", "forge.py", "calls.py", "way_out.py"].map(|name| (name, read(name)));
    for (name, content) in shared
        .into_iter()
        .chain([("bait.json", bait.as_bytes().to_vec())])
    {
        session
            .write_file(format!("/tmp/shared/{name}"), content)
            .await
            .unwrap();
    }
    let ready = Cell {
        collect_files: false,
        ..Cell::new(
            "import os, sys\nsys.path.insert(0, os.path.join(os.environ.get('TMPDIR', '/tmp'), 'shared'))",
        )
    };
    let ended = session.execute(ready).await.unwrap();
    assert_eq!(ended.outcome, Outcome::Completed, "{ended:#?}");
    session
}

/// The next cell of a session works.
pub(crate) async fn works(session: &Session) -> bool {
    let ended = session.execute("print(6 * 7)").await;
    ended.is_ok_and(|ended| ended.outcome == Outcome::Completed && ended.stdout.text == "42\n")
}
