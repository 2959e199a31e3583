//! One run: input files in, code, output files out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cellblock_interpreter::Cell;
use cellblock_interpreter::cell::Language;
use cellblock_interpreter::execution::Execution;
use serde_json::{Value, json};

use super::access::Caller;
use super::conversation::RunSandbox;
use super::error::Problem;
use super::exec::InputFile;
use super::names;
use super::outputs::Outputs;
use super::state::State;
use super::storage::StoredFile;

/// Working directory; its other name is `/mnt/data`.
pub(super) const WORKSPACE: &str = "/workspace";
/// Name that a program with arguments has.
const PROGRAM: &str = "main";
/// Maximum number of files of a working directory that are compared before and after a run.
const LISTED: u32 = 10_000;

/// A stored file with the name that it has in the working directory.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) name: String,
    pub(super) session: String,
    pub(super) file: StoredFile,
    /// Description that the client gave of it, which it reads again.
    pub(super) given: InputFile,
}

/// A run.
#[derive(Debug)]
pub(super) struct RunJob<'a> {
    pub(super) state: &'a State,
    pub(super) caller: &'a Caller,
    pub(super) room: &'a RunSandbox,
    pub(super) inputs: &'a [Input],
    pub(super) timeout: Duration,
}

/// Size and time of each file of a working directory.
pub(super) type FileStamps = BTreeMap<String, (u64, i64)>;

impl RunJob<'_> {
    /// Drives work to its end when it is its turn and the caller may run something. It is
    /// interrupted once `over` completes.
    pub(super) async fn alone(
        &self,
        over: impl Future<Output = ()>,
        work: impl Future<Output = Result<Value, Problem>>,
    ) -> Result<Value, Problem> {
        let turn = self.room.held.turn().await?;
        let _permit = self.state.host.cell(&self.caller.owner).await?;
        turn.until(over, work).await
    }

    /// Runs cells, of which the last is the client's.
    pub(super) async fn run(&self, cells: Vec<Cell>) -> Result<Value, Problem> {
        let started = Instant::now();
        let before = self.prepare().await?;
        let execution = self.execute(cells).await?;
        self.answer(&before, execution, started.elapsed()).await
    }

    /// Makes a sandbox ready: without variables of an earlier run, and with the input files.
    pub(super) async fn prepare(&self) -> Result<FileStamps, Problem> {
        let (session, kept) = (&self.room.held.session, &self.room.held.kept);
        if !kept.begin() {
            session.reset().await?;
        }
        let there = self.listed().await?;
        for input in self.inputs {
            // Code may have changed it since, which is what it finds again.
            if there.contains_key(&input.name) && kept.had(&input.name, &input.file.id) {
                continue;
            }
            let store = self.state.host.interpreter.store();
            let content = store.file(input.file.artifact).await.map_err(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "read a stored file");
                Problem::missing(format!(
                    "file `{}` is no longer kept; upload it again",
                    input.name
                ))
            })?;
            let path = format!("{WORKSPACE}/{}", input.name);
            session.put_file(path, content).await?;
            kept.place(&input.name, &input.file.id);
        }
        self.listed().await
    }

    /// Runs cells one after the other, as long as they complete.
    pub(super) async fn execute(&self, cells: Vec<Cell>) -> Result<Execution, Problem> {
        let session = &self.room.held.session;
        let mut last = None;
        for cell in cells {
            let cell = cell.with_timeout(self.timeout);
            let execution = session.execute(cell).await?;
            let completed = execution.outcome.exit_code() == 0;
            last = Some(execution);
            if !completed {
                break;
            }
        }
        last.ok_or_else(|| Problem::invalid("`code` is missing"))
    }

    /// Stores what a run has made, and says what came of it.
    pub(super) async fn answer(
        &self,
        before: &FileStamps,
        execution: Execution,
        took: Duration,
    ) -> Result<Value, Problem> {
        let after = self.listed().await.unwrap_or_else(|_| before.clone());
        let mut outputs = Outputs::new(self);
        outputs.collect(&execution, before, &after);
        let mut answer = outputs.answer;
        let (stderr, message) = super::outputs::words(&execution);
        let set = &mut answer;
        set.insert("stdout".to_owned(), json!(super::outputs::printed(&execution)));
        set.insert("stderr".to_owned(), json!(stderr));
        set.insert("code".to_owned(), json!(execution.outcome.exit_code()));
        set.insert("signal".to_owned(), Value::Null);
        set.insert("message".to_owned(), json!(message));
        set.insert("status".to_owned(), json!(super::outputs::status(&execution)));
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        set.insert("wall_time".to_owned(), json!(took));
        if self.room.stays {
            let status = if self.room.reused { "reused" } else { "new" };
            set.insert("runtime_session_id".to_owned(), json!(self.room.held.id));
            set.insert("runtime_status".to_owned(), json!(status));
        }
        Ok(Value::Object(answer))
    }

    async fn listed(&self) -> Result<FileStamps, Problem> {
        let listing = self.room.held.session.list_files(WORKSPACE, LISTED).await?;
        let files = listing.files.into_iter().filter_map(|file| {
            let name = file.path.strip_prefix(WORKSPACE)?.strip_prefix('/')?.to_owned();
            Some((name, (file.bytes, file.modified_unix_ms)))
        });
        Ok(files.collect())
    }
}

/// Finds stored files; of two with the same name the later one counts.
pub(super) fn input_files(
    state: &State,
    caller: &Caller,
    files: &[InputFile],
) -> Result<Vec<Input>, Problem> {
    let mut inputs: Vec<Input> = Vec::new();
    for given in files {
        names::check_id(&given.id)?;
        names::check_id(&given.storage_session_id)?;
        let reader = caller.reader(&given.resource())?;
        let file = state.storage.get(&given.storage_session_id, &given.id, &reader)?;
        let name = match given.name.as_deref() {
            Some(name) if !name.is_empty() => names::file_name(name)?,
            _ => file.name.clone(),
        };
        inputs.retain(|it| it.name != name);
        inputs.push(Input {
            name,
            session: given.storage_session_id.clone(),
            file,
            given: given.clone(),
        });
    }
    Ok(inputs)
}

/// Returns the cells of a program. R takes no arguments as other languages do, so a cell before sets them.
pub(super) fn cells(language: Language, code: String, arguments: &[String]) -> Vec<Cell> {
    let cell = |code: String| {
        Cell {
            // In other languages, also what nobody wants to see is a value.
            echo: language == Language::Python,
            ..Cell::new(code)
        }
        .in_language(language)
    };
    if arguments.is_empty() {
        return vec![cell(code)];
    }
    if language == Language::R {
        let all: Vec<_> = arguments.iter().map(|it| json!(it).to_string()).collect();
        let set = format!(
            "commandArgs <- function(trailingOnly = FALSE) c({})",
            all.join(", ")
        );
        let set = Cell {
            collect_files: false,
            ..cell(set)
        };
        return vec![set, cell(code)];
    }
    let name = std::iter::once(PROGRAM.to_owned());
    vec![cell(code).with_argv(name.chain(arguments.iter().cloned()).collect())]
}

/// Returns the maximum time of a run.
pub(super) fn timeout(state: &State, milliseconds: Option<f64>) -> Result<Duration, Problem> {
    let most = state.host.max_cell_timeout;
    let Some(given) = milliseconds else {
        return Ok(most);
    };
    let timeout = Duration::try_from_secs_f64(given / 1000.0).ok();
    let timeout = timeout.filter(|it| !it.is_zero());
    // The client's own limit may be beyond the server's, which then counts.
    timeout.map(|it| it.min(most)).ok_or_else(|| {
        Problem::invalid(format!(
            "invalid timeout `{given}`: must be greater than 0 milliseconds"
        ))
    })
}
