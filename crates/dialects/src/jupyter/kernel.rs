//! A kernel beside its session: what it is, who is connected to it, and what it has run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::cell::Language;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::queue::Queue;
use super::wire::{Message, VERSION, now};
use crate::uuid::uuid;

/// Messages that may wait for a client to take them.
const WAITING: usize = 1024;
/// Maximum time for a client to make room for a message; then its connection ends.
const STALL: Duration = Duration::from_secs(30);
/// Maximum number of inputs in a kernel's history.
const MAX_HISTORY: usize = 1000;
/// Maximum size of the inputs of a kernel's history.
const MAX_HISTORY_BYTES: usize = 4 << 20;

/// A kind of kernel.
#[derive(Debug)]
pub(super) struct KernelSpec {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) language: Language,
    mimetype: &'static str,
    extension: &'static str,
    lexer: &'static str,
}

/// Every kind; the first is the default.
static ALL: [KernelSpec; 3] = [
    KernelSpec {
        name: "python3",
        title: "Python 3 (Cellblock)",
        language: Language::Python,
        mimetype: "text/x-python",
        extension: ".py",
        lexer: "ipython3",
    },
    KernelSpec {
        name: "bash",
        title: "Bash (Cellblock)",
        language: Language::Bash,
        mimetype: "text/x-sh",
        extension: ".sh",
        lexer: "bash",
    },
    KernelSpec {
        name: "javascript",
        title: "JavaScript (Cellblock)",
        language: Language::Javascript,
        mimetype: "text/javascript",
        extension: ".js",
        lexer: "javascript",
    },
];

/// Activity of a kernel, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    Starting,
    Idle,
    Busy,
    Dead,
}

/// Data that is kept with a session.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) spec: &'static KernelSpec,
    pub(super) queue: Queue,
    /// The session in headers of its messages.
    session: String,
    inner: Mutex<KernelInner>,
}

#[derive(Debug)]
struct KernelInner {
    activity: Activity,
    last_activity: String,
    count: u64,
    /// Number of restarts.
    life: u64,
    history: VecDeque<(u64, String)>,
    history_bytes: usize,
    clients: BTreeMap<u64, mpsc::Sender<Arc<Message>>>,
    last_client: u64,
}

/// A connection's place among a kernel's clients.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) number: u64,
    pub(super) sender: mpsc::Sender<Arc<Message>>,
    pub(super) messages: mpsc::Receiver<Arc<Message>>,
}

impl KernelSpec {
    /// Returns the one of a name; without one, Python's.
    pub(super) fn find(name: Option<&str>) -> Option<&'static Self> {
        let name = name.unwrap_or(ALL[0].name);
        // As some clients name it.
        let name = if name == "python" { ALL[0].name } else { name };
        ALL.iter().find(|spec| spec.name == name)
    }

    pub(super) fn names() -> String {
        ALL.each_ref().map(|spec| format!("`{}`", spec.name)).join(", ")
    }

    /// Every kind, as `/api/kernelspecs` lists them.
    pub(super) fn all() -> Value {
        let specs = ALL.iter().map(|spec| (spec.name.to_owned(), spec.model()));
        json!({"default": ALL[0].name, "kernelspecs": specs.collect::<Map<_, _>>()})
    }

    pub(super) fn model(&self) -> Value {
        json!({
            "name": self.name,
            "spec": {
                "argv": [],
                "env": {},
                "display_name": self.title,
                "language": self.language.name(),
                "interrupt_mode": "message",
                "metadata": {},
            },
            "resources": {},
        })
    }

    /// The content of `kernel_info_reply`.
    pub(super) fn info(&self, python: &str) -> Value {
        let version = if self.language == Language::Python {
            python
        } else {
            ""
        };
        json!({
            "status": "ok",
            "protocol_version": VERSION,
            "implementation": "cellblock",
            "implementation_version": env!("CARGO_PKG_VERSION"),
            "banner": format!("{} {}", self.title, version).trim(),
            "debugger": false,
            "help_links": [],
            "supported_features": [],
            "language_info": {
                "name": self.language.name(),
                "version": version,
                "mimetype": self.mimetype,
                "file_extension": self.extension,
                "pygments_lexer": self.lexer,
                "codemirror_mode": {"name": self.language.name(), "version": 3},
                "nbconvert_exporter": if self.language == Language::Python { "python" } else { "script" },
            },
        })
    }
}

impl Activity {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Dead => "dead",
        }
    }
}

impl Kernel {
    pub(super) fn new(spec: &'static KernelSpec, queue: Queue) -> Self {
        Self {
            spec,
            queue,
            session: uuid(),
            inner: Mutex::new(KernelInner {
                activity: Activity::Starting,
                last_activity: now(),
                count: 0,
                life: 0,
                history: VecDeque::new(),
                history_bytes: 0,
                clients: BTreeMap::new(),
                last_client: 0,
            }),
        }
    }

    fn inner(&self) -> MutexGuard<'_, KernelInner> {
        self.inner.lock()
    }

    /// The model of a kernel in answers.
    pub(super) fn model(&self, id: &str) -> Value {
        let inner = self.inner();
        json!({
            "id": id,
            "name": self.spec.name,
            "last_activity": inner.last_activity,
            "execution_state": inner.activity.name(),
            "connections": inner.clients.len(),
        })
    }

    /// Adds a client.
    pub(super) fn connect(&self) -> Client {
        let (sender, messages) = mpsc::channel(WAITING);
        let mut inner = self.inner();
        inner.last_client += 1;
        let number = inner.last_client;
        inner.clients.insert(number, sender.clone());
        Client {
            number,
            sender,
            messages,
        }
    }

    pub(super) fn disconnect(&self, number: u64) {
        self.inner().clients.remove(&number);
    }

    /// Makes a message of the kernel.
    pub(super) fn message(
        &self,
        channel: &str,
        kind: &str,
        parent: &Map<String, Value>,
        content: Value,
    ) -> Message {
        let header = json!({
            "msg_id": uuid(),
            "msg_type": kind,
            "session": self.session,
            "username": "cellblock",
            "date": now(),
            "version": VERSION,
        });
        let object = |value| match value {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        Message {
            channel: channel.to_owned(),
            header: object(header),
            parent_header: parent.clone(),
            metadata: Map::new(),
            content: object(content),
        }
    }

    /// Sends a message to every client. One that does not read for too long is disconnected.
    pub(super) async fn publish(&self, kind: &str, parent: &Map<String, Value>, content: Value) {
        let message = Arc::new(self.message("iopub", kind, parent, content));
        let clients = self.inner().clients.clone();
        for (number, client) in clients {
            if !send(&client, Arc::clone(&message)).await {
                self.disconnect(number);
            }
        }
    }

    /// Answers a client's request.
    pub(super) async fn reply(&self, to: &mpsc::Sender<Arc<Message>>, request: &Message, content: Value) {
        let kind = request.kind().replace("_request", "_reply");
        let channel = if request.channel == "control" {
            "control"
        } else {
            "shell"
        };
        let message = self.message(channel, &kind, &request.header, content);
        // It may have disconnected.
        send(to, Arc::new(message)).await;
    }

    /// Notes what the kernel does, and tells every client.
    pub(super) async fn status(&self, activity: Activity, parent: &Map<String, Value>) {
        {
            let mut inner = self.inner();
            inner.activity = activity;
            inner.last_activity = now();
        }
        let content = json!({"execution_state": activity.name()});
        self.publish("status", parent, content).await;
    }

    /// Notes that it has begun, as somebody has had an answer.
    pub(super) fn settle(&self) {
        let mut inner = self.inner();
        if inner.activity == Activity::Starting {
            inner.activity = Activity::Idle;
        }
    }

    pub(super) fn activity(&self) -> Activity {
        self.inner().activity
    }

    /// Number of restarts until now.
    pub(super) fn life(&self) -> u64 {
        self.inner().life
    }

    /// Number of the last input.
    pub(super) fn count(&self) -> u64 {
        self.inner().count
    }

    /// Counts an input and keeps it; returns its number.
    pub(super) fn keep(&self, code: &str) -> u64 {
        let mut inner = self.inner();
        inner.count += 1;
        let count = inner.count;
        inner.history_bytes += code.len();
        inner.history.push_back((count, code.to_owned()));
        while inner.history.len() > MAX_HISTORY || inner.history_bytes > MAX_HISTORY_BYTES {
            let Some((_, oldest)) = inner.history.pop_front() else {
                break;
            };
            inner.history_bytes -= oldest.len();
        }
        count
    }

    /// Forgets what was run before a restart.
    pub(super) fn restart(&self) {
        let mut inner = self.inner();
        inner.life += 1;
        inner.count = 0;
        inner.history.clear();
        inner.history_bytes = 0;
    }

    /// The last inputs, as `history_reply` has them.
    pub(super) fn history(&self, last: usize, pattern: Option<&str>) -> Value {
        let inner = self.inner();
        let pattern = pattern.map(|it| it.trim_matches('*'));
        let matching = inner
            .history
            .iter()
            .filter(|(_, code)| pattern.is_none_or(|it| code.contains(it)));
        let mut found: Vec<_> = matching.map(|(number, code)| json!([0, number, code])).collect();
        found.drain(..found.len().saturating_sub(last));
        found.into()
    }
}

async fn send(client: &mpsc::Sender<Arc<Message>>, message: Arc<Message>) -> bool {
    matches!(timeout(STALL, client.send(message)).await, Ok(Ok(())))
}
