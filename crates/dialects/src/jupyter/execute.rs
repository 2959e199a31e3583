//! `execute_request`: runs code and tells clients what it writes and shows while it does.

use std::time::Duration;

use cellblock_interpreter::Output;
use cellblock_interpreter::cell::{Cell, Language};
use cellblock_interpreter::execution::{DisplayEvent, Event, Execution, Outcome};
use cellblock_interpreter::session::RunningCell;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::queue::Job;
use crate::decoder::TextDecoder;
use crate::fault::DialectFault;
use crate::host::DialectHost;
use crate::notebook::{ends_with_expression, raised};
use crate::shown::{NotebookException, ShownOutput, shown};

/// Time for which the last output is held back: it is the result if the cell ends after it.
const HELD_BACK: Duration = Duration::from_millis(100);
/// Maximum number of expressions that a request can ask for.
const MAX_EXPRESSIONS: usize = 32;

/// Result of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodeEnd {
    Fine,
    /// It failed, and what waits behind it is not to run.
    StopOthers,
}

/// Runs a request's code, and replies to it.
pub(super) async fn execute(host: &DialectHost, job: &Job) -> CodeEnd {
    let kernel = &job.held.kept;
    let request = &job.request;
    let code = request.text("code").unwrap_or_default();
    let silent = request.flag("silent", false);
    let count = if request.flag("store_history", !silent) && !silent {
        kernel.keep(code)
    } else {
        kernel.count()
    };
    if !silent {
        let content = json!({"code": code, "execution_count": count});
        kernel.publish("execute_input", &request.header, content).await;
    }
    let ran = CodeRun { job, silent, count }.run(host, code).await;
    let raised = match ran {
        Ok(Ok(())) => {
            let expressions = expressions(host, job).await;
            let content = json!({
                "status": "ok",
                "execution_count": count,
                "payload": [],
                "user_expressions": expressions,
            });
            kernel.reply(&job.client, request, content).await;
            return CodeEnd::Fine;
        }
        Ok(Err(raised)) => raised,
        Err(fault) => NotebookException::new("SandboxError", fault.message),
    };
    kernel.publish("error", &request.header, raised.fields()).await;
    let mut content = raised.fields();
    content["status"] = "error".into();
    content["execution_count"] = count.into();
    content["payload"] = json!([]);
    content["user_expressions"] = json!({});
    kernel.reply(&job.client, request, content).await;
    if request.flag("stop_on_error", true) {
        CodeEnd::StopOthers
    } else {
        CodeEnd::Fine
    }
}

/// One run of code.
struct CodeRun<'a> {
    job: &'a Job,
    silent: bool,
    count: u64,
}

impl CodeRun<'_> {
    async fn run(
        &self,
        host: &DialectHost,
        code: &str,
    ) -> Result<Result<(), NotebookException>, DialectFault> {
        let held = &self.job.held;
        let kernel = &held.kept;
        let turn = held.turn().await?;
        let owner = cellblock_interpreter::hosting::Owner::new(held.owner.clone());
        let permit = host.cell(&owner).await?;
        let cell = Cell {
            collect_files: false,
            ..Cell::new(code).in_language(kernel.spec.language)
        };
        let running = held
            .session
            .start_cell(cell.with_timeout(host.max_cell_timeout))
            .await?;
        let may_have_result = kernel.spec.language != Language::Python || ends_with_expression(code);
        let ending = host.ending.cancelled();
        let execution = turn
            .until(ending, self.follow(host, running, may_have_result))
            .await?;
        drop((permit, turn));
        if let Some(note) = execution
            .note
            .as_deref()
            .filter(|_| execution.outcome == Outcome::Completed)
        {
            self.stream("stderr", &format!("{note}\n")).await;
        }
        Ok(raised(&execution).map_or(Ok(()), Err))
    }

    /// Tells clients what happens, to the cell's end.
    async fn follow(
        &self,
        host: &DialectHost,
        running: RunningCell,
        may_have_result: bool,
    ) -> Result<Execution, DialectFault> {
        let (mut events, result) = running.split();
        let [mut stdout, mut stderr] = [TextDecoder::default(), TextDecoder::default()];
        let told = async {
            let mut last = None;
            loop {
                let event = if last.is_some() {
                    let next = timeout(HELD_BACK, events.recv()).await;
                    let Ok(next) = next else {
                        self.show(host, last.take(), "display_data").await;
                        continue;
                    };
                    next
                } else {
                    events.recv().await
                };
                let Some(event) = event else { break };
                self.show(host, last.take(), "display_data").await;
                match event {
                    Event::Stdout(bytes) => self.stream("stdout", &stdout.push(&bytes)).await,
                    Event::Stderr(bytes) => self.stream("stderr", &stderr.push(&bytes)).await,
                    Event::Output(Output::Exception(_)) => {}
                    Event::Output(output) if may_have_result => last = Some(output),
                    Event::Output(output) => self.show(host, Some(output), "display_data").await,
                    Event::Display(display) => self.display(host, &display).await,
                    Event::Clear { wait } => self.publish("clear_output", json!({ "wait": wait })).await,
                }
            }
            last
        };
        let (last, execution) = tokio::join!(told, result);
        let execution = execution?;
        let kind = if execution.outcome == Outcome::Completed {
            "execute_result"
        } else {
            "display_data"
        };
        self.show(host, last, kind).await;
        Ok(execution)
    }

    async fn stream(&self, name: &str, text: &str) {
        if !text.is_empty() {
            self.publish("stream", json!({"name": name, "text": text})).await;
        }
    }

    async fn show(&self, host: &DialectHost, output: Option<Output>, kind: &str) {
        // Silent code has no result; what it displays and writes is sent.
        let Some(output) = output.filter(|_| !(self.silent && kind == "execute_result")) else {
            return;
        };
        if let ShownOutput::Value(data) = shown(host.interpreter.store(), &output).await {
            let mut content = json!({"data": data, "metadata": {}});
            if kind == "execute_result" {
                content["execution_count"] = self.count.into();
            } else {
                content["transient"] = json!({});
            }
            self.publish(kind, content).await;
        }
    }

    /// Shows a value that code can replace, or replaces one.
    async fn display(&self, host: &DialectHost, display: &DisplayEvent) {
        if let ShownOutput::Value(data) = shown(host.interpreter.store(), &display.output).await {
            let kind = if display.update {
                "update_display_data"
            } else {
                "display_data"
            };
            let transient = json!({"display_id": display.id});
            self.publish(
                kind,
                json!({"data": data, "metadata": {}, "transient": transient}),
            )
            .await;
        }
    }

    async fn publish(&self, kind: &str, content: Value) {
        let kernel = &self.job.held.kept;
        kernel.publish(kind, &self.job.request.header, content).await;
    }
}

/// Evaluates the expressions that a request names.
async fn expressions(host: &DialectHost, job: &Job) -> Value {
    let asked = job
        .request
        .content
        .get("user_expressions")
        .and_then(Value::as_object);
    let mut answers = Map::new();
    for (name, expression) in asked.into_iter().flatten().take(MAX_EXPRESSIONS) {
        let expression = expression.as_str().unwrap_or_default();
        let failed = |raised: &NotebookException| {
            let mut fields = raised.fields();
            fields["status"] = "error".into();
            fields
        };
        let answer = match job.held.session.execute(Cell::expression(expression)).await {
            Err(error) => failed(&NotebookException::new(
                "SandboxError",
                DialectFault::from(error).message,
            )),
            Ok(execution) => match (raised(&execution), execution.outputs.first()) {
                (Some(raised), _) => failed(&raised),
                (None, output) => {
                    let data = match output {
                        Some(output) => shown(host.interpreter.store(), output).await,
                        None => ShownOutput::Value(Map::new()),
                    };
                    match data {
                        ShownOutput::Value(data) => json!({"status": "ok", "data": data, "metadata": {}}),
                        ShownOutput::Error(raised) => failed(&raised),
                    }
                }
            },
        };
        answers.insert(name.clone(), answer);
    }
    answers.into()
}
