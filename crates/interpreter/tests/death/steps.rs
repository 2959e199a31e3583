//! The steps of a cell's life, each brought about by something that can be seen.

use std::path::Path;
use std::time::Duration;

use cellblock_interpreter::execution::Event;
use cellblock_interpreter::session::RunningCell;
use cellblock_interpreter::{Error, Execution, Input, Session};
use tokio::task::JoinHandle;

/// A step of a cell's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellStep {
    /// The spare room is ready, and no cell has run in it.
    Room,
    /// The first cell was asked for: its room is taken, its kernel forked.
    Fork,
    /// A cell runs and says nothing.
    Quiet,
    /// A cell writes all the time.
    Streams,
    /// A cell shows something large, which is on its way.
    Frame,
    /// An input is copied and bound.
    Bind,
    /// A cell is over, and its files are copied.
    Collect,
    /// A cell was interrupted and does not end.
    Grace,
    /// No cell runs.
    Idle,
    /// The session is being closed.
    Destroy,
}

/// Activity at a step.
#[derive(Debug)]
pub(crate) enum StepActivity {
    Nothing,
    Cell(RunningCell),
    Request(JoinHandle<Result<Option<Execution>, Error>>),
}

impl CellStep {
    pub(crate) const ALL: [Self; 10] = [
        Self::Room,
        Self::Fork,
        Self::Quiet,
        Self::Streams,
        Self::Frame,
        Self::Bind,
        Self::Collect,
        Self::Grace,
        Self::Idle,
        Self::Destroy,
    ];

    /// Returns the moments to try if no event marks one: milliseconds after the last event.
    pub(crate) const fn delays(self) -> &'static [u64] {
        match self {
            Self::Fork => &[0, 1, 3, 6, 10],
            Self::Frame | Self::Collect => &[0, 20],
            Self::Bind => &[0, 10, 60],
            Self::Destroy => &[0, 2],
            Self::Room | Self::Quiet | Self::Streams | Self::Grace | Self::Idle => &[0],
        }
    }

    /// Whether a kernel has run a cell before the step.
    pub(crate) const fn has_kernel(self) -> bool {
        !matches!(self, Self::Room | Self::Fork)
    }

    /// Whether a cell runs from the step on until something ends it.
    pub(crate) const fn is_endless(self) -> bool {
        matches!(self, Self::Quiet | Self::Streams | Self::Frame | Self::Grace)
    }

    /// Brings the session to the step.
    pub(crate) async fn reach(self, session: &Session, folder: &Path) -> StepActivity {
        if self.has_kernel() {
            let kept = session.execute("kept = 1").await.unwrap();
            assert_eq!(kept.outcome.name(), "completed");
        }
        match self {
            Self::Room | Self::Idle => StepActivity::Nothing,
            Self::Fork => request(session, async |session| session.execute("6 * 7").await.map(Some)),
            Self::Quiet => StepActivity::Cell(until_said(session, QUIET, 1).await),
            Self::Streams => StepActivity::Cell(until_said(session, STREAMS, 5).await),
            Self::Frame => StepActivity::Cell(until_said(session, FRAME, 1).await),
            Self::Collect => {
                let mut running = session.start_cell(FILES).await.unwrap();
                // The cell's events end when the cell does.
                while running.events.recv().await.is_some() {}
                StepActivity::Cell(running)
            }
            Self::Grace => {
                let mut running = until_said(session, DEAF, 1).await;
                session.interrupt();
                let said = running.events.recv().await;
                assert!(matches!(said, Some(Event::Stdout(said)) if said == b"asked\n"));
                StepActivity::Cell(running)
            }
            Self::Bind => {
                let path = folder.join("input.json");
                if !path.exists() {
                    std::fs::write(&path, format!("\"{}\"", "x".repeat(24 << 20))).unwrap();
                }
                let input = Input::file("bound", &path);
                request(session, async move |session| {
                    session.bind(input).await.map(|_| None)
                })
            }
            Self::Destroy => request(session, async |session| session.close().await.map(|()| None)),
        }
    }
}

const QUIET: &str = "import time\nprint('ready', flush=True)\ntime.sleep(1000)";
const STREAMS: &str = "import time\nwhile True:\n    print('x' * 100)\n    time.sleep(0.001)";
const FRAME: &str = "class Large:\n    def _repr_mimebundle_(self, **_):\n        \
                     return {'application/octet-stream': self.content}\nlarge = Large()\n\
                     large.content = bytes(192 << 20)\nimport time\nprint('ready', flush=True)\n\
                     display(large)\ntime.sleep(1000)";
const FILES: &str = "with open('/workspace/large', 'wb') as file:\n    file.write(bytes(48 << 20))";
const DEAF: &str = "import os, signal, time\nsignal.signal(signal.SIGINT, lambda *_: os.write(1, \
                    b'asked\\n'))\n\
                    print('ready', flush=True)\nwhile True:\n    time.sleep(1)";

async fn until_said(session: &Session, code: &str, times: usize) -> RunningCell {
    let mut running = session.start_cell(code).await.unwrap();
    for _ in 0..times {
        let said = running.events.recv().await;
        assert!(matches!(said, Some(Event::Stdout(_))), "{said:?} after {code}");
    }
    running
}

fn request<F>(session: &Session, run: impl FnOnce(Session) -> F) -> StepActivity
where
    F: Future<Output = Result<Option<Execution>, Error>> + Send + 'static,
{
    StepActivity::Request(tokio::spawn(run(session.clone())))
}

impl StepActivity {
    /// Waits for what came of it.
    pub(crate) async fn end(self) -> Result<Option<Execution>, Error> {
        let end = async {
            match self {
                Self::Nothing => Ok(None),
                Self::Cell(running) => running.finish().await.map(Some),
                Self::Request(task) => task.await.unwrap(),
            }
        };
        tokio::time::timeout(Duration::from_mins(1), end).await.unwrap()
    }
}
