//! Containers of which none gets a sandbox: their sessions run no code.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cellblock_artifact::Store;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::protection::{Demands, Protection, ProtectionStatus, Report};
use cellblock_interpreter::remote::{Remote, RemoteBackend, RemoteConfig};
use cellblock_interpreter::session::SessionOptions;
use cellblock_testkit::{Messages, WebSockets};
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::advance;

use super::room::{RoomPermit, enter, try_enter};
use super::{ContainerState, HeldContainer, LiveContainer};
use crate::models::Models;
use crate::options::Options;
use crate::records::Records;
use crate::state::Gateway;

const KEY: &str = "sk-of-the-tests";
const IDLE: Duration = Duration::from_mins(20);
const BRIEF: Duration = Duration::from_secs(30);

/// A gateway, with the folder of its store.
#[derive(Debug)]
struct Bench {
    gateway: Gateway,
    _folder: tempfile::TempDir,
}

/// A gateway whose time stands still.
async fn bench(change: impl FnOnce(&mut Options)) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let server = WebSockets::start(KEY, describe).await.unwrap();
    let config = RemoteConfig::new(&server.url()).unwrap().with_key(KEY).unwrap();
    let interpreter = Interpreter::start_remote(Remote {
        backend: RemoteBackend::start(config, Demands::default()).await.unwrap(),
        limits: Limits::default(),
        pool: 0.into(),
        store: Store::local(folder.path().join("artifacts")).unwrap(),
        spool: folder.path().to_owned(),
    });
    let mut options = Options::default();
    change(&mut options);
    let records = Records::in_memory().unwrap();
    let gateway = Gateway::new(options, records, Models::default(), interpreter);
    tokio::time::pause();
    Bench {
        gateway,
        _folder: folder,
    }
}

/// Another Cellblock that says which image it has, and gives nothing.
async fn describe(mut messages: Messages) {
    let image = "a".repeat(64);
    let report = Report(Protection::ALL.map(|it| (it, ProtectionStatus::Active)).into());
    let hello = json!({
        "type": "hello", "generation": 1, "frames": cellblock_protocol::GENERATION, "image": image,
        "report": report,
    });
    let manifest = json!({
        "layout": 1, "id": image, "name": "none", "python": "3.13.0", "interpreter": "bin/python3",
        "stdlib": "lib",
        "library_path": null, "system_libraries": [], "packages": [], "preload": [],
        "policy": {"forbid_network_clients": true, "allow": []}, "created": 0, "size": 0, "files": 0,
        "machine": "none",
        "notes": [], "audit": {"packages": 0, "known_clients": 0, "findings": []},
    });
    let control = |message: Value| [&[1][..], message.to_string().as_bytes()].concat().into();
    messages.send(control(hello)).await.unwrap();
    while let Some(Ok(message)) = messages.next().await {
        if let Some((1, asked)) = message.split_first() {
            let asked: Value = serde_json::from_slice(asked).unwrap();
            let answer = json!({"answer": "image", "manifest": manifest});
            let answer = json!({"type": "answer", "id": asked["id"], "answer": answer});
            messages.send(control(answer)).await.unwrap();
        }
    }
}

impl Bench {
    /// Holds a container that a response made for itself, or a client by name.
    fn host(&self, owner: &str, id: &str, auto: bool, room: Option<RoomPermit>) -> HeldContainer {
        let interpreter = self.gateway.interpreter().unwrap();
        let live = LiveContainer {
            auto,
            memory_limit: None,
            network: None,
            beside: None,
            idle: IDLE,
            brief: auto.then_some(BRIEF),
            session: interpreter.session(SessionOptions::default()),
            furnished: AtomicBool::new(room.is_some()),
            lost: Mutex::default(),
            followed: AtomicBool::new(false),
            revived: false,
            state: tokio::sync::Mutex::new(ContainerState {
                room,
                ..ContainerState::default()
            }),
        };
        self.gateway.containers.registry.host(owner, id, live).unwrap()
    }

    async fn with_room(&self, owner: &str, id: &str, auto: bool) -> HeldContainer {
        let room = enter(&self.gateway, owner).await.unwrap();
        self.host(owner, id, auto, Some(room))
    }

    fn ids(&self, owner: &str) -> Vec<String> {
        let own = self.gateway.containers.registry.of(owner);
        own.iter().map(|live| live.id.clone()).collect()
    }

    fn give_way(&self, owner: Option<&str>) -> Option<String> {
        self.gateway
            .containers
            .give_way(owner)
            .map(|live| live.id.clone())
    }
}

#[tokio::test]
async fn a_container_expires_later_once_a_second_response_has_used_it() {
    let bench = bench(|_| {}).await;
    let containers = &bench.gateway.containers;
    drop(bench.with_room("ann", "once", true).await);
    drop(bench.with_room("ann", "twice", true).await);
    drop(bench.with_room("ann", "named", false).await);
    drop(containers.follow("ann", "twice").unwrap());
    advance(BRIEF.saturating_sub(Duration::from_millis(1))).await;
    assert!(containers.has("ann", "once"));
    advance(Duration::from_millis(1)).await;
    assert!(!containers.has("ann", "once"));
    assert!(containers.follow("ann", "once").is_none());
    advance(IDLE.checked_sub(BRIEF + Duration::from_millis(1)).unwrap()).await;
    assert!(containers.has("ann", "twice") && containers.has("ann", "named"));
    advance(Duration::from_millis(1)).await;
    assert!(!containers.has("ann", "twice") && !containers.has("ann", "named"));
    assert_eq!(containers.registry.expired().await.len(), 3);
}

#[tokio::test]
async fn a_container_of_a_response_that_ran_no_code_is_gone_with_it() {
    let bench = bench(|_| {}).await;
    let containers = &bench.gateway.containers;
    let held = bench.host("ann", "unused", true, None);
    let _named = bench.host("ann", "named", false, None);
    advance(IDLE * 2).await;
    assert!(containers.has("ann", "unused"), "it is held");
    drop(held);
    assert!(!containers.has("ann", "unused"));
    assert!(containers.has("ann", "named"));
}

#[tokio::test]
async fn a_container_that_is_closed_gives_its_place_back() {
    let bench = bench(|options| options.containers.max_sandboxes = Some(1)).await;
    let held = bench.with_room("ann", "one", false).await;
    assert!(try_enter(&bench.gateway, "bob").await.is_err());
    bench.gateway.containers.registry.close(&held).await.unwrap();
    let _place = try_enter(&bench.gateway, "bob").await.unwrap();
}

#[tokio::test]
async fn places_are_limited_in_all_and_of_each_owner() {
    let bench = bench(|options| {
        options.containers.max_sandboxes = Some(3);
        options.containers.max_per_key = 2;
    })
    .await;
    let refused = |owner| {
        let entering = try_enter(&bench.gateway, owner);
        async { entering.await.unwrap_err() }
    };
    let first = try_enter(&bench.gateway, "ann").await.unwrap();
    let _second = try_enter(&bench.gateway, "ann").await.unwrap();
    let own = refused("ann").await;
    assert_eq!(
        (own.status(), own.code.as_deref()),
        (429, Some("too_many_containers"))
    );
    assert!(
        own.message
            .starts_with("there are 2 containers already, the most that you can have")
    );
    let _third = try_enter(&bench.gateway, "bob").await.unwrap();
    let all = refused("bob").await;
    assert!(
        all.message
            .starts_with("there are 3 containers already, the most that this gateway can have")
    );
    drop(first);
    let _again = try_enter(&bench.gateway, "bob").await.unwrap();
}

#[tokio::test]
async fn a_quota_that_is_used_up_leaves_no_place() {
    let bench = bench(|options| options.quotas.sandboxes = Some(1)).await;
    let only = try_enter(&bench.gateway, "ann").await.unwrap();
    let quota = try_enter(&bench.gateway, "ann").await.unwrap_err();
    assert_eq!(quota.code.as_deref(), Some("rate_limit_exceeded"));
    let _of_another = try_enter(&bench.gateway, "bob").await.unwrap();
    drop(only);
    let _again = try_enter(&bench.gateway, "ann").await.unwrap();
}

#[tokio::test]
async fn idle_containers_give_way_those_of_one_response_first_and_named_ones_only_when_they_expired() {
    let bench = bench(|_| {}).await;
    for (owner, id, auto) in [
        ("ann", "named", false),
        ("ann", "followed", true),
        ("ann", "older", true),
        ("bob", "newer", true),
        ("ann", "busy", true),
    ] {
        drop(bench.with_room(owner, id, auto).await);
        advance(Duration::from_secs(1)).await;
    }
    let containers = &bench.gateway.containers;
    drop(containers.follow("ann", "followed").unwrap());
    let _busy = containers.registry.hold("ann", "busy").unwrap();
    assert_eq!(bench.give_way(Some("bob")).as_deref(), Some("newer"));
    assert_eq!(bench.give_way(Some("bob")), None);
    assert_eq!(bench.give_way(None).as_deref(), Some("older"));
    assert_eq!(bench.give_way(None).as_deref(), Some("followed"));
    assert_eq!(bench.give_way(None), None);
    advance(IDLE).await;
    assert_eq!(bench.give_way(None).as_deref(), Some("named"));
    assert_eq!(bench.ids("ann"), ["busy"]);
}

#[tokio::test]
async fn of_the_containers_of_one_response_the_latest_are_kept() {
    let bench = bench(|_| {}).await;
    for id in ["one", "two", "three", "four"] {
        drop(bench.with_room("ann", id, true).await);
        advance(Duration::from_secs(1)).await;
    }
    drop(bench.with_room("ann", "named", false).await);
    let containers = &bench.gateway.containers;
    drop(containers.follow("ann", "two").unwrap());
    let taken = containers.take_surplus(1);
    let taken: Vec<_> = taken.iter().map(|live| live.id.as_str()).collect();
    assert_eq!(taken, ["one", "three"]);
    assert_eq!(containers.take_surplus(1).len(), 0);
    let mut left = bench.ids("ann");
    left.sort();
    assert_eq!(left, ["four", "named", "two"]);
}

#[tokio::test]
async fn code_waits_until_a_container_is_idle_and_then_takes_its_place() {
    let bench = bench(|options| {
        options.containers.max_sandboxes = Some(1);
        options.containers.wait_timeout = IDLE * 4;
    })
    .await;
    let held = bench.with_room("ann", "first", true).await;
    let mut waiting = Box::pin(enter(&bench.gateway, "bob"));
    for _ in 0..3 {
        advance(IDLE).await;
        assert!((&mut waiting).now_or_never().is_none());
    }
    drop(held);
    let _place = waiting.await.unwrap();
    assert_eq!(bench.gateway.containers.count(), 0);
}

#[tokio::test]
async fn code_waits_for_a_container_in_use_and_not_for_a_quota_that_sessions_use_up() {
    let bench = bench(|options| options.quotas.sandboxes = Some(1)).await;
    let held = bench.with_room("ann", "busy", true).await;
    let long = bench.gateway.options.containers.quota_wait_timeout * 5;
    let (place, ()) = tokio::join!(enter(&bench.gateway, "ann"), async {
        tokio::time::sleep(long).await;
        drop(held);
    });
    drop(place.unwrap());

    let _session = bench.gateway.quotas.sandbox("ann").await.unwrap();
    let began = tokio::time::Instant::now();
    let (first, second) = tokio::join!(enter(&bench.gateway, "ann"), enter(&bench.gateway, "ann"));
    for refused in [first, second] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code.as_deref(), Some("rate_limit_exceeded"));
        assert!(refused.message.contains("`sandboxes`"), "{}", refused.message);
    }
    assert!(began.elapsed() < long, "{:?}", began.elapsed());
}

#[tokio::test]
async fn code_of_one_owner_waits_in_order_and_one_that_leaves_holds_nobody_up() {
    let bench = bench(|options| options.containers.max_per_key = 1).await;
    let place = enter(&bench.gateway, "ann").await.unwrap();
    let entering = || Box::pin(enter(&bench.gateway, "ann"));
    let (mut gone, mut second, mut third) = (entering(), entering(), entering());
    for waiting in [&mut gone, &mut second, &mut third] {
        assert!(waiting.now_or_never().is_none());
    }
    // Another owner's does not wait behind them.
    let _other = enter(&bench.gateway, "bob").await.unwrap();
    drop(gone);
    drop(place);
    let (second, ()) = tokio::join!(second, async {
        assert!((&mut third).now_or_never().is_none());
    });
    let second = second.unwrap();
    assert!((&mut third).now_or_never().is_none());
    drop(second);
    let _third = third.await.unwrap();
}
