//! Servers that violate the protocol: each violation is an error of the backend, without a panic,
//! an endless wait or unlimited memory.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use cellblock_remote::RemoteBackend;
use cellblock_sandbox::Limits;
use cellblock_sandbox::backend::{Backend, ProcessEnd};
use cellblock_sandbox::error::{Blame, Effect};
use cellblock_sandbox::jail::protection::{Demands, Report};
use cellblock_testkit::{Messages, WebSockets};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};

use crate::support::{KEY, Site, block_on, config, ended, site};

/// A server's responses by the first word of the request.
type Answers = fn(&str, &Truth) -> Vec<Bytes>;

/// The response of an honest server.
#[derive(Clone, Debug)]
struct Truth {
    hello: Value,
    manifest: Value,
}

async fn truth() -> Truth {
    let Site { backend, .. } = &site().await;
    let report: Report = backend.report();
    let manifest = serde_json::to_value(crate::support::manifest().await).unwrap();
    Truth {
        hello: json!({
            "type": "hello", "generation": 1, "frames": cellblock_protocol::GENERATION,
            "image": manifest["id"],
            "report": report,
        }),
        manifest,
    }
}

fn control(message: &Value) -> Bytes {
    [&[1][..], message.to_string().as_bytes()].concat().into()
}

fn answer(answer: impl Into<Option<Value>>) -> Bytes {
    control(&json!({"type": "answer", "id": 1, "answer": answer.into()}))
}

fn data(stream: u32, bytes: &[u8]) -> Bytes {
    let mut message = BytesMut::new();
    message.put_u8(2);
    message.put_u32(stream);
    message.extend_from_slice(bytes);
    message.freeze()
}

/// A server with given responses. The number of a request is inserted by hand: each connection
/// makes only a few.
async fn lying(truth: Truth, answers: Answers) -> WebSockets {
    WebSockets::start(KEY, move |messages| speak(messages, truth.clone(), answers))
        .await
        .unwrap()
}

async fn speak(mut messages: Messages, truth: Truth, answers: Answers) {
    for message in answers("hello", &truth) {
        if messages.send(message).await.is_err() {
            return;
        }
    }
    while let Some(Ok(message)) = messages.next().await {
        if message.first() != Some(&1) {
            continue;
        }
        let asked: Value = serde_json::from_slice(&message[1..]).unwrap();
        let word = asked["ask"]["ask"].as_str().unwrap_or_default();
        for answer in answers(word, &truth) {
            // Responses repeat the number of their request.
            let answer = match answer.split_first() {
                Some((1, json)) => match serde_json::from_slice::<Value>(json) {
                    Ok(mut json) if json["type"] == "answer" => {
                        json["id"] = asked["id"].clone();
                        control(&json)
                    }
                    _ => answer,
                },
                _ => answer,
            };
            if messages.send(answer).await.is_err() {
                return;
            }
        }
    }
}

fn honest(word: &str, truth: &Truth) -> Vec<Bytes> {
    match word {
        "hello" => vec![control(&truth.hello)],
        "describe" => vec![answer(json!({"answer": "image", "manifest": truth.manifest}))],
        "create" => vec![answer(json!({"answer": "sandbox", "id": "\u{1b}[2Jroom"}))],
        "start_kernel" => vec![answer(json!({"answer": "kernel", "pid": 7}))],
        _ => Vec::new(),
    }
}

async fn start(server: &WebSockets) -> cellblock_sandbox::Result<RemoteBackend> {
    RemoteBackend::start(config(&server.url()), Demands::default()).await
}

#[test]
fn an_invalid_introduction_is_an_error_that_explains_it() {
    block_on(async {
        let truth = truth().await;
        let other_generation: Answers = |_, truth| {
            let mut hello = truth.hello.clone();
            hello["generation"] = json!(99);
            vec![control(&hello)]
        };
        let other_image: Answers = |word, truth| match word {
            "describe" => {
                let mut manifest = truth.manifest.clone();
                manifest["id"] = json!("0".repeat(64));
                vec![answer(json!({"answer": "image", "manifest": manifest}))]
            }
            _ => honest(word, truth),
        };
        let no_manifest: Answers = |word, truth| match word {
            "describe" => vec![answer(json!({"answer": "image", "manifest": {"layout": 1}}))],
            _ => honest(word, truth),
        };
        let cases: [(Answers, &str); 8] = [
            (
                other_generation,
                "the remote broke the protocol: its protocol generation is 99.",
            ),
            (
                other_image,
                "the remote broke the protocol: its description is of another image",
            ),
            (
                no_manifest,
                "the remote broke the protocol: its manifest cannot be read: ",
            ),
            (
                |_, _| vec![Bytes::from_static(b"\x01{}")],
                "the remote broke the protocol: a message that cannot be read",
            ),
            (
                |_, _| vec![answer(json!({"answer": "done"}))],
                "the remote broke the protocol: its first message was not `hello`",
            ),
            (
                |_, _| vec![Bytes::from_static(b"nonsense")],
                "the connection to the other side was lost: the peer broke the protocol: it sent a \
                 message of kind 110",
            ),
            (
                |_, _| vec![Bytes::from(vec![1; 3 << 20])],
                "the connection to the other side was lost: Space limit exceeded",
            ),
            (
                |word, truth| match word {
                    "describe" => vec![answer(json!({"answer": "usage", "usage": {}}))],
                    _ => honest(word, truth),
                },
                "",
            ),
        ];
        for (answers, reason) in cases {
            let server = lying(truth.clone(), answers).await;
            let error = start(&server).await.unwrap_err();
            assert!(error.to_string().starts_with(reason), "{reason}: {error}");
            assert_eq!(error.blame(), Blame::Backend, "{error}");
        }
    });
}

#[test]
fn waiting_for_a_silent_server_is_limited() {
    block_on(async {
        let server = lying(truth().await, |_, _| Vec::new()).await;
        let error = start(&server).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the connection to the other side was lost: no message was received for 8 s; the \
             sandbox has ended"
        );
    });
}

/// Returns the end of a kernel whose server sends these messages on its stream.
async fn kernel_of(truth: &Truth, answers: Answers) -> (ProcessEnd, cellblock_sandbox::Error) {
    let server = lying(truth.clone(), answers).await;
    let backend = start(&server).await.unwrap();
    let sandbox = backend.create(&Limits::default()).await.unwrap();
    assert!(!sandbox.id().contains('\u{1b}'));
    // The connection may end before the kernel is known to have started.
    let ending = match sandbox.start_kernel().await {
        Ok(kernel) => ended(&kernel).await,
        Err(_) => ProcessEnd::Unknown,
    };
    let error = tokio::time::timeout(Duration::from_secs(20), sandbox.usage());
    (ending, error.await.unwrap().unwrap_err())
}

#[test]
fn invalid_records_of_a_kernel_end_the_connection() {
    block_on(async {
        let truth = truth().await;
        let cases: [(Answers, &str); 3] = [
            (
                |word, truth| {
                    let mut said = honest(word, truth);
                    if word == "start_kernel" {
                        said.push(data(1, &[9, 0, 0, 0, 0]));
                    }
                    said
                },
                "a record of kind 9 with 0 bytes",
            ),
            (
                |word, truth| {
                    let mut said = honest(word, truth);
                    if word == "start_kernel" {
                        said.push(data(1, &[0, 0xff, 0xff, 0xff, 0xff]));
                    }
                    said
                },
                "a record of 4294967295 bytes, the limit is 65536",
            ),
            (
                |word, truth| {
                    let mut said = honest(word, truth);
                    if word == "start_kernel" {
                        // More than the window, without a reader.
                        let mut record = vec![1, 0, 0, 0x80, 0];
                        record.resize(record.len() + 0x8000, b'x');
                        said.extend((0..40).map(|_| data(1, &record)));
                    }
                    said
                },
                "more than the permitted 262144 bytes of a stream",
            ),
        ];
        for (answers, reason) in cases {
            let (ending, error) = kernel_of(&truth, answers).await;
            assert_eq!(ending, ProcessEnd::Unknown);
            assert!(error.to_string().contains(reason), "{error}");
            assert_eq!(error.effect(), Effect::Destroys);
        }
    });
}

#[test]
fn a_layer_with_an_invalid_id_is_never_part_of_a_path() {
    block_on(async {
        let server = lying(truth().await, |word, truth| match word {
            "layer" => vec![answer(json!({"answer": "layer", "id": "../../workspace"}))],
            _ => honest(word, truth),
        })
        .await;
        let backend = start(&server).await.unwrap();
        let error = backend.layer(&["six".to_owned()]).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the remote broke the protocol: it sent an unexpected response"
        );
    });
}

#[test]
fn a_server_whose_image_has_changed_is_not_used() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static HELLOS: AtomicU32 = AtomicU32::new(0);
    block_on(async {
        let server = lying(truth().await, |word, truth| match word {
            "hello" if HELLOS.fetch_add(1, Ordering::Relaxed) > 0 => {
                let mut hello = truth.hello.clone();
                hello["image"] = json!("0".repeat(64));
                vec![control(&hello)]
            }
            _ => honest(word, truth),
        })
        .await;
        let backend = start(&server).await.unwrap();
        let error = backend.create(&Limits::default()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the remote broke the protocol: its image has changed since the start; restart to use the new one"
        );
    });
}
