//! A launcher that is this test, at the other end of a socket pair.

use std::io::{Read as _, Write as _};
use std::os::fd::AsFd;

use cellblock_guest::launcher::control::LauncherRequest;
use proptest::prelude::*;

use super::*;

/// The launcher's side. `ended` is sent when its process has ended.
#[derive(Debug)]
struct FakeLauncher {
    control: ControlSocket,
    ended: oneshot::Sender<()>,
}

impl FakeLauncher {
    async fn tells(&self, event: LauncherEvent) {
        self.control.send(&event, &[]).await.unwrap();
    }

    async fn replies(&self, id: u64, result: Result<LauncherReply, String>) {
        self.tells(LauncherEvent::Reply { id, result }).await;
    }

    async fn asked(&self) -> (LauncherRequest, Vec<OwnedFd>) {
        self.control.receive().await.unwrap().unwrap()
    }
}

fn played() -> (OwnedFd, FakeLauncher, oneshot::Receiver<()>) {
    let (ours, theirs) = fds::packet_pair().unwrap();
    let (ended, has_ended) = oneshot::channel();
    let control = ControlSocket::new(theirs).unwrap();
    (ours, FakeLauncher { control, ended }, has_ended)
}

/// Returns the result of starting a launcher whose first packet is this, or that ends at once.
async fn first(event: Option<LauncherEvent>) -> Result<Launcher> {
    let (ours, played, _) = played();
    if let Some(event) = event {
        played.tells(event).await;
    }
    drop(played);
    Launcher::behind(ours, LauncherProcess::default(), async {}).await
}

async fn started() -> (Launcher, FakeLauncher) {
    let (ours, played, ended) = played();
    let report = Report::default();
    played.tells(LauncherEvent::Started { report }).await;
    let ended = async {
        let _ = ended.await;
    };
    let launcher = Launcher::behind(ours, LauncherProcess::default(), ended).await;
    (launcher.unwrap(), played)
}

fn usage(room: &str) -> Operation {
    Operation::Usage {
        room: room.to_owned(),
    }
}

fn is_gone<T>(result: Result<T>) -> bool {
    result.is_err_and(|error| error.to_string() == gone())
}

fn gone() -> String {
    crate::Error::from(SandboxErrorKind::LauncherGone).to_string()
}

#[tokio::test]
async fn a_launcher_that_does_not_start_says_why() {
    let refused = |missing_protection| {
        Some(LauncherEvent::Refused {
            error: "no namespaces".to_owned(),
            missing_protection,
        })
    };
    for (event, told) in [
        (refused(true), "no namespaces"),
        (refused(false), "no namespaces"),
        (Some(LauncherEvent::TemplateEnded), "unexpected first packet"),
        (None, "it exited immediately"),
    ] {
        let error = first(event).await.unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    let missing = first(refused(true)).await.unwrap_err();
    assert_eq!(
        missing.to_string(),
        crate::Error::missing_protection("no namespaces").to_string()
    );
}

#[tokio::test]
async fn descriptors_go_both_ways() {
    let (launcher, played) = started().await;
    let (mut reader, writer) = std::io::pipe().unwrap();
    let sent = [writer.as_fd()];
    let asking = launcher.ask(usage("r"), &sent, "ask");
    let answering = async {
        let (request, descriptors) = played.asked().await;
        let [writer] = <[OwnedFd; 1]>::try_from(descriptors).unwrap();
        let reply = LauncherEvent::Reply {
            id: request.id,
            result: Ok(LauncherReply::Done),
        };
        played.control.send(&reply, &[writer]).await.unwrap();
    };
    let (answer, ()) = tokio::join!(asking, answering);
    let (reply, descriptors) = answer.unwrap();
    assert!(matches!(reply, LauncherReply::Done));
    let [back] = <[OwnedFd; 1]>::try_from(descriptors).unwrap();
    // The same pipe, which ends when its last writer is closed.
    drop(writer);
    std::fs::File::from(back).write_all(b"through").unwrap();
    let mut read = String::new();
    reader.read_to_string(&mut read).unwrap();
    assert_eq!(read, "through");
}

#[tokio::test]
async fn a_request_that_the_launcher_refuses_fails_with_its_reason() {
    let (launcher, played) = started().await;
    let asking = launcher.ask(usage("r"), &[], "ask for usage");
    let answering = async {
        let (request, descriptors) = played.asked().await;
        assert!(descriptors.is_empty());
        played.replies(request.id, Err("no room `r`".to_owned())).await;
    };
    let (answer, ()) = tokio::join!(asking, answering);
    let error = answer.unwrap_err().to_string();
    assert!(
        error.contains("ask for usage") && error.contains("no room `r`"),
        "{error}"
    );
}

#[tokio::test]
async fn nobody_waits_for_a_request_that_is_forgotten_and_its_reply_harms_no_other() {
    let (launcher, played) = started().await;
    let room = "r".to_owned();
    launcher.forget(Operation::DestroyRoom { room });
    let (forgotten, _) = played.asked().await;
    assert!(matches!(forgotten.operation, Operation::DestroyRoom { room } if room == "r"));
    played.replies(forgotten.id, Ok(LauncherReply::Done)).await;
    let asking = launcher.ask(usage("other"), &[], "ask");
    let answering = async {
        let (request, _) = played.asked().await;
        assert_ne!(request.id, forgotten.id);
        played
            .replies(request.id, Ok(LauncherReply::Kernel { kernel: 5 }))
            .await;
    };
    let (answer, ()) = tokio::join!(asking, answering);
    assert!(matches!(answer.unwrap().0, LauncherReply::Kernel { kernel: 5 }));
}

#[tokio::test]
async fn the_death_of_the_launcher_is_heard_by_all_who_wait_and_all_who_come_later() {
    let (launcher, played) = started().await;
    let mut end = launcher.kernel_end(1);
    let asking = launcher.ask(usage("r"), &[], "ask");
    let dying = async {
        played.asked().await;
        assert!(!launcher.is_gone());
        // Its process is still ending.
        let FakeLauncher { control, ended } = played;
        drop(control);
        ended
    };
    let (answer, warmed, ended) = tokio::join!(asking, launcher.warmed(), dying);
    assert!(is_gone(answer));
    assert!(is_gone(warmed));
    let ending = *end.wait_for(Option::is_some).await.unwrap();
    assert_eq!(ending, Some(ProcessEnd::Unknown));
    assert!(launcher.is_gone());
    assert!(is_gone(launcher.ask(usage("r"), &[], "ask").await));
    launcher.forget(usage("r"));
    drop(ended);
}

#[tokio::test]
async fn the_end_of_a_kernel_is_heard_whether_it_is_asked_for_before_or_after() {
    let (launcher, played) = started().await;
    let exited = |kernel, code: i32| LauncherEvent::KernelEnded {
        kernel,
        status: code << 8,
    };
    let mut before = launcher.kernel_end(1);
    for event in [exited(2, 22), exited(1, 11)] {
        played.tells(event).await;
    }
    let heard = *before.wait_for(Option::is_some).await.unwrap();
    assert_eq!(heard, Some(ProcessEnd::Exited(11)));
    // Reported before the other one.
    assert_eq!(*launcher.kernel_end(2).borrow(), Some(ProcessEnd::Exited(22)));
    // The number of one that has been heard of is free again.
    assert_eq!(*launcher.kernel_end(1).borrow(), None);
}

#[tokio::test]
async fn a_template_is_warm_or_says_why_not() {
    let (launcher, played) = started().await;
    assert_eq!(launcher.failed_modules(), [""; 0]);
    let reason = "no interpreter".to_owned();
    played.tells(LauncherEvent::TemplateFailed { reason }).await;
    let error = launcher.warmed().await;
    // It may have been replaced since.
    let failed = vec!["pandas: no such module".to_owned()];
    played.tells(LauncherEvent::TemplateEnded).await;
    let ready = LauncherEvent::TemplateReady {
        failed: failed.clone(),
        import_ms: 7,
    };
    played.tells(ready).await;
    assert!(error.unwrap_err().to_string().contains("no interpreter"));
    let mut warm = launcher.warm.clone();
    let now = |warm: &Option<WarmResult>| warm.as_ref().is_some_and(Result::is_ok);
    drop(warm.wait_for(now).await.unwrap());
    launcher.warmed().await.unwrap();
    assert_eq!(launcher.failed_modules(), failed);
}

#[tokio::test]
async fn a_launcher_that_is_dropped_loses_its_socket() {
    let (launcher, played) = started().await;
    drop(launcher);
    let end = played.control.receive::<LauncherRequest>().await.unwrap();
    assert!(end.is_none());
}

/// Reply of a launcher to requests: the reply to one of them, again to one that has its reply, or to none.
#[derive(Clone, Debug)]
enum LauncherAnswer {
    Next(usize),
    Again(usize),
    Unknown(u64),
}

fn answers() -> impl Strategy<Value = Vec<LauncherAnswer>> {
    let answer = prop_oneof![
        4 => any::<usize>().prop_map(LauncherAnswer::Next),
        1 => any::<usize>().prop_map(LauncherAnswer::Again),
        1 => (100..u64::MAX).prop_map(LauncherAnswer::Unknown),
    ];
    proptest::collection::vec(answer, 0..20)
}

proptest! {
    /// Whatever the order of the replies, and whatever else comes: everybody gets the reply to
    /// their own request, or hears that the launcher is gone.
    #[test]
    fn every_request_gets_its_own_reply(asked in 0..8_usize, answers in answers()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (launcher, played) = started().await;
            let rooms: Vec<_> = (0..asked).map(|number| number.to_string()).collect();
            let asking = rooms.iter().map(|room| launcher.ask(usage(room), &[], "ask"));
            let asking = futures_util::future::join_all(asking);
            let answering = async {
                let mut open = Vec::new();
                for _ in 0..asked {
                    let (request, _) = played.asked().await;
                    let Operation::Usage { room } = request.operation else { panic!("another request") };
                    open.push((request.id, room.parse::<u64>().unwrap()));
                }
                let mut closed = Vec::new();
                for answer in answers {
                    let (id, kernel) = match answer {
                        LauncherAnswer::Next(at) if !open.is_empty() => {
                            let next = open.swap_remove(at % open.len());
                            closed.push(next.0);
                            next
                        }
                        LauncherAnswer::Again(at) if !closed.is_empty() => (closed[at % closed.len()], 99),
                        LauncherAnswer::Unknown(id) => (id, 99),
                        LauncherAnswer::Next(_) | LauncherAnswer::Again(_) => continue,
                    };
                    played.replies(id, Ok(LauncherReply::Kernel { kernel })).await;
                }
                drop(played);
                open
            };
            let (replies, unanswered) = tokio::join!(asking, answering);
            for (number, reply) in (0..).zip(replies) {
                let answered = !unanswered.iter().any(|(_, room)| *room == number);
                match reply {
                    Ok((LauncherReply::Kernel { kernel }, _)) => assert!(answered && kernel == number),
                    other => assert!(!answered && is_gone(other)),
                }
            }
        });
    }
}
