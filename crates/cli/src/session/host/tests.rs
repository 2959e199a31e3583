//! A host over tools that are none, and clients that behave and misbehave.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use cellblock_image::Home;
use cellblock_interpreter::Session;
use cellblock_interpreter::session::hibernate::OnIdle;
use cellblock_interpreter::toolset::ToolEvent;
use cellblock_interpreter::workbench;
use cellblock_sandbox::backend::BackendKind;
use cellblock_sandbox::limits::NetworkPolicy;
use cellblock_testkit::{ORDINARY_UID, require};
use rustix::process::Uid;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use tokio::sync::watch;

use super::answers::SessionService;
use super::*;
use crate::exit_code::ExitCode;
use crate::session::client::{HostExchange, HostMessage, describe};
use crate::session::place::{HeldLock, Places};
use crate::session::plan::{SessionDataset, SessionPlan, SessionProfile};
use crate::session::toolbox::Toolbox;
use crate::session::wire::{self, AddedDataset, HostAnswer, HostCommand, HostFrame};

const LONG: Duration = Duration::from_mins(10);
const LIMIT: Duration = Duration::from_secs(30);

/// Log of the calls that the tools received.
#[derive(Debug)]
struct CallLog {
    running: AtomicUsize,
    interrupts: watch::Sender<usize>,
    closed: AtomicUsize,
}

/// Tools: `echo` answers its arguments, `speak` writes first, `hang` ends when it is interrupted,
/// `fail` cannot.
#[derive(Debug)]
struct FakeToolbox {
    log: Arc<CallLog>,
    events: broadcast::Sender<ToolEvent>,
}

impl Toolbox for FakeToolbox {
    async fn call(&self, tool: &str, arguments: Value) -> Result<Value> {
        assert_eq!(
            self.log.running.fetch_add(1, Ordering::SeqCst),
            0,
            "calls take turns"
        );
        let result = match tool {
            "speak" => {
                for word in ["one", "two"] {
                    let _ = self.events.send(ToolEvent::Stdout(word.into()));
                }
                let _ = self.events.send(ToolEvent::Stderr(b"three".to_vec()));
                Ok(arguments)
            }
            "hang" => {
                let mut interrupts = self.log.interrupts.subscribe();
                let _ = interrupts.changed().await;
                Ok(json!({ "interrupted": true }))
            }
            "fail" => Err(Error::Refused("out of order".to_owned())),
            _ => Ok(arguments),
        };
        self.log.running.fetch_sub(1, Ordering::SeqCst);
        result
    }

    fn interrupt(&self) {
        self.log.interrupts.send_modify(|count| *count += 1);
    }

    fn events(&self) -> broadcast::Receiver<ToolEvent> {
        self.events.subscribe()
    }

    async fn add_dataset(&self, dataset: &SessionDataset) -> Result<AddedDataset> {
        Ok(AddedDataset {
            path: format!("/tmp/data/{}", dataset.name),
            notes: Vec::new(),
        })
    }

    fn prompt(&self) -> String {
        "prompt".to_owned()
    }

    fn session(&self) -> Option<&Session> {
        None
    }

    async fn fork(&self, _plans: &[SessionPlan], _reseed: bool) -> Result<Vec<Self>> {
        Ok(Vec::new())
    }

    async fn close(&self) -> cellblock_interpreter::Result<()> {
        self.log.closed.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A host that runs.
struct RunningHost {
    _home: tempfile::TempDir,
    _held: HeldLock,
    place: SessionPlace,
    log: Arc<CallLog>,
    host: JoinHandle<Result<Vec<UnixStream>>>,
}

fn host(idle: Duration) -> RunningHost {
    let home = tempfile::tempdir().unwrap();
    let places = Places::of(&Home::at(home.path()).unwrap()).unwrap();
    let (place, held) = places.create().unwrap();
    let plan = SessionPlan {
        toolset: workbench::KIND,
        profile: SessionProfile::Default,
        image: "i".to_owned(),
        image_name: "i".to_owned(),
        memory_bytes: None,
        requirements: Vec::new(),
        datasets: Vec::new(),
        out: "/nonexistent".into(),
        idle,
        on_idle: OnIdle::End,
        demands: BTreeMap::new(),
        backend: BackendKind::Process,
        network: NetworkPolicy::None,
        egress: Vec::new(),
        emulation: false,
        started: 0,
    };
    let log = Arc::new(CallLog {
        running: AtomicUsize::new(0),
        interrupts: watch::Sender::new(0),
        closed: AtomicUsize::new(0),
    });
    let fake = FakeToolbox {
        log: Arc::clone(&log),
        events: broadcast::channel(16).0,
    };
    let listener = listen(&place).unwrap();
    RunningHost {
        _home: home,
        _held: held,
        place,
        log,
        host: tokio::spawn(serve(listener, SessionService::new(fake, plan))),
    }
}

fn call(tool: &str, arguments: Value) -> HostCommand {
    HostCommand::Call {
        tool: tool.to_owned(),
        arguments,
        watch: false,
    }
}

impl RunningHost {
    async fn ask(&self, ask: &HostCommand) -> Result<HostAnswer> {
        timeout(LIMIT, async {
            HostExchange::ask(&self.place, ask).await?.answer().await
        })
        .await
        .unwrap()
    }

    async fn runs(&self) {
        let runs = async {
            while self.log.running.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, runs).await.unwrap();
    }

    /// Waits for the end; gives how many are to be told of it.
    async fn ended(self) -> usize {
        let told = timeout(LIMIT, self.host).await.unwrap().unwrap().unwrap();
        assert_eq!(self.log.closed.load(Ordering::SeqCst), 1);
        told.len()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_at_once_are_all_answered_and_take_turns() {
    let hosted = Arc::new(host(LONG));
    let clients: Vec<_> = (0..20)
        .map(|number| {
            let hosted = Arc::clone(&hosted);
            tokio::spawn(async move { hosted.ask(&call("echo", json!({ "n": number }))).await.unwrap() })
        })
        .collect();
    for (number, client) in clients.into_iter().enumerate() {
        let result = json!({ "n": number });
        assert_eq!(client.await.unwrap(), HostAnswer::Result { result });
    }
    assert_eq!(describe(&hosted.place).await.unwrap().calls, 20);
}

#[tokio::test]
async fn output_comes_before_the_result_and_only_to_who_wants_it() {
    let hosted = host(LONG);
    let mut asked = HostExchange::ask(
        &hosted.place,
        &HostCommand::Call {
            tool: "speak".to_owned(),
            arguments: json!({}),
            watch: true,
        },
    )
    .await
    .unwrap();
    let mut heard = Vec::new();
    loop {
        match asked.next().await.unwrap() {
            HostMessage::Stdout(bytes) | HostMessage::Stderr(bytes) => {
                heard.push(String::from_utf8(bytes).unwrap());
            }
            HostMessage::HostAnswer(answer) => {
                assert_eq!(answer, HostAnswer::Result { result: json!({}) });
                break;
            }
        }
    }
    assert_eq!(heard, ["one", "two", "three"]);
    let mut asked = HostExchange::ask(&hosted.place, &call("speak", json!({})))
        .await
        .unwrap();
    assert!(matches!(
        asked.next().await.unwrap(),
        HostMessage::HostAnswer(HostAnswer::Result { .. })
    ));
}

#[tokio::test]
async fn the_call_of_a_client_that_leaves_is_stopped_and_the_next_has_its_turn() {
    let hosted = host(LONG);
    let asked = HostExchange::ask(&hosted.place, &call("hang", json!({})))
        .await
        .unwrap();
    hosted.runs().await;
    drop(asked);
    let answer = hosted.ask(&call("echo", json!({ "next": true }))).await.unwrap();
    assert_eq!(
        answer,
        HostAnswer::Result {
            result: json!({ "next": true })
        }
    );
    assert!(*hosted.log.interrupts.borrow() > 0);
}

#[tokio::test]
async fn a_stop_ends_what_runs_and_tells_who_waits() {
    let hosted = host(LONG);
    let mut running = HostExchange::ask(&hosted.place, &call("hang", json!({})))
        .await
        .unwrap();
    hosted.runs().await;
    let mut waiting = HostExchange::ask(&hosted.place, &call("echo", json!({})))
        .await
        .unwrap();
    let _stop = HostExchange::ask(&hosted.place, &HostCommand::Stop)
        .await
        .unwrap();
    for asked in [&mut running, &mut waiting] {
        let error = timeout(LIMIT, asked.answer()).await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the session ended before the call did");
        assert_eq!(error.exit_code(), ExitCode::Backend);
    }
    assert_eq!(hosted.ended().await, 1);
}

#[tokio::test]
async fn a_host_ends_when_nobody_comes_and_not_while_somebody_waits() {
    let hosted = host(Duration::from_millis(50));
    let asked = HostExchange::ask(&hosted.place, &call("hang", json!({})))
        .await
        .unwrap();
    hosted.runs().await;
    assert!(
        timeout(Duration::from_millis(300), async {
            while !hosted.host.is_finished() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .is_err(),
        "it ended while a call was running"
    );
    drop(asked);
    assert_eq!(hosted.ended().await, 0);
}

#[tokio::test]
async fn what_is_no_question_is_refused_and_the_host_goes_on() {
    let hosted = host(LONG);
    let envelope = |generation: u32, ask: Value| json!({ "generation": generation, "ask": ask }).to_string();
    for (message, told) in [
        ("{".to_owned(), "read the question: "),
        ("[]".to_owned(), "read the question: "),
        (
            envelope(wire::GENERATION, json!({"do": "leave"})),
            "read the question: ",
        ),
        (
            envelope(wire::GENERATION + 1, json!({"do": "stop"})),
            "this host was started by another version of cellblock, ",
        ),
    ] {
        let mut stream = hosted
            .place
            .at_socket(|path| {
                let stream = std::os::unix::net::UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                UnixStream::from_std(stream)
            })
            .unwrap();
        wire::send(&mut stream, &HostFrame::Message(message.clone().into()))
            .await
            .unwrap();
        let Some(HostFrame::Message(answer)) =
            timeout(LIMIT, wire::receive(&mut stream)).await.unwrap().unwrap()
        else {
            panic!("no answer to {message}");
        };
        let HostAnswer::Failure { failure } = wire::read(&answer).unwrap() else {
            panic!("{message} was answered");
        };
        assert!(
            failure.messages[0].starts_with(told),
            "{message}: {:?}",
            failure.messages
        );
        assert_eq!(failure.code, ExitCode::Refused);
    }
    let mut stream = hosted
        .place
        .at_socket(|path| {
            let stream = std::os::unix::net::UnixStream::connect(path)?;
            stream.set_nonblocking(true)?;
            UnixStream::from_std(stream)
        })
        .unwrap();
    stream.write_all(b"m\xff\xff\xff\xff").await.unwrap();
    assert!(matches!(
        timeout(LIMIT, wire::receive(&mut stream)).await.unwrap(),
        Ok(Some(HostFrame::Message(_)))
    ));
    assert_eq!(
        hosted.ask(&HostCommand::Prompt).await.unwrap(),
        HostAnswer::Prompt {
            text: "prompt".to_owned()
        }
    );
}

#[tokio::test]
async fn another_user_who_gets_as_far_as_the_socket_is_not_listened_to() {
    require!(Root);
    let hosted = host(LONG);
    let place = hosted.place.clone();
    let outsider = move || {
        place.at_socket(|path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
            let folder = path.parent().unwrap_or(path);
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
            // Of this thread alone, which ends with it.
            let nobody = Uid::from_raw(ORDINARY_UID);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody)?;
            let mut stream = std::os::unix::net::UnixStream::connect(path)?;
            let mut heard = Vec::new();
            // The host may have hung up before all was said, or heard.
            let _ = stream.write_all(&[b'm', 2, 0, 0, 0, b'{', b'}']);
            let _ = stream.read_to_end(&mut heard);
            Ok(heard)
        })
    };
    let heard = tokio::task::spawn_blocking(|| std::thread::spawn(outsider).join());
    let heard = timeout(LIMIT, heard).await.unwrap().unwrap().unwrap();
    assert_eq!(heard.unwrap(), b"");
    // The same from its owner is answered.
    assert!(hosted.ask(&HostCommand::Prompt).await.is_ok());
}

#[tokio::test]
async fn what_a_tool_cannot_do_is_told_with_its_exit_code() {
    let hosted = host(LONG);
    let error = hosted.ask(&call("fail", json!({}))).await.unwrap_err();
    assert_eq!(
        (error.chain(), error.exit_code()),
        (vec!["out of order".to_owned()], ExitCode::Refused)
    );
}

#[tokio::test]
async fn datasets_that_came_later_are_among_those_described() {
    let hosted = host(LONG);
    let dataset = SessionDataset {
        name: "late".to_owned(),
        path: "/late.csv".into(),
        as_csv: false,
    };
    let added = hosted
        .ask(&HostCommand::AddDataset {
            dataset: dataset.clone(),
        })
        .await
        .unwrap();
    let HostAnswer::AddedDataset { added } = added else {
        panic!("{added:?}");
    };
    assert_eq!(added.path, "/tmp/data/late");
    let description = describe(&hosted.place).await.unwrap();
    assert_eq!(description.plan.datasets, [dataset]);
}
