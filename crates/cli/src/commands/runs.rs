//! `cellblock runs`: what was run, by a server and by `cellblock run`.

use cellblock_gateway::runs::{Chain, OwnedRun, RecordedRuns, RunExport};
use cellblock_image::Home;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_interpreter::replay::{Replay, ReplayReport, ReplayResult, ReplayTerms};
use cellblock_interpreter::run_record::RunRecord;
use serde_json::{Value, json};

use super::image;
use crate::args::runs::{RunsArgs, RunsCommand};
use crate::artifact_store;
use crate::cancel::Cancel;
use crate::config::{LoadedConfig, Sources};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::progress::Display;
use crate::render::json::{self, print};
use crate::render::{FAINT, STRONG, Screen, date, styled};
use crate::sanitize;

/// Characters of code in a line of the list.
const CODE: usize = 60;

/// Does it, prints, and says how it ended.
pub(crate) async fn run(args: RunsArgs) -> ExitCode {
    let json = args.json;
    match Box::pin(act(args)).await {
        Ok(code) => code,
        Err(error) => json::failed(&error, json),
    }
}

async fn act(args: RunsArgs) -> Result<ExitCode> {
    let home = Home::find()?;
    let loaded = Sources::of_process(args.config, None)
        .with_records(args.records)
        .load()?;
    let records = loaded.records(home.root())?.open().await?;
    let runs = RecordedRuns::new(records, loaded.settings.runs);
    let mut screen = Screen::new();
    match args.command {
        RunsCommand::List { session, limit } => {
            let found = runs.newest(session, limit).await?;
            if args.json {
                print(&json!({ "runs": found }));
            } else {
                screen.show(&table(&found));
            }
        }
        RunsCommand::Show { run } => {
            let found = runs.get(&run).await?.ok_or_else(|| unknown(&run))?;
            if args.json {
                print(&json!({ "run": found }));
            } else {
                screen.show(&sanitize::text(&pretty(&found)));
            }
        }
        RunsCommand::Replay { run } => {
            let chain = runs.chain(&run).await?.ok_or_else(|| unknown(&run))?;
            let report = replay(&home, &loaded, &runs, &run, &chain).await?;
            runs.flush().await;
            if args.json {
                print(&json!({ "replay": report }));
            } else {
                screen.show(&told(&report));
            }
            return Ok(match report.result {
                ReplayResult::Equal => ExitCode::Success,
                ReplayResult::Differs => ExitCode::Raised,
                ReplayResult::Impossible => ExitCode::Refused,
            });
        }
        RunsCommand::Export { run } => {
            let chain = runs.chain(&run).await?.ok_or_else(|| unknown(&run))?;
            print(&RunExport::of(chain, &artifact_store::open(&home).await?).await);
        }
    }
    Ok(ExitCode::Success)
}

/// Replays a run in the image that it ran in.
async fn replay(
    home: &Home,
    loaded: &LoadedConfig,
    runs: &RecordedRuns,
    run: &str,
    chain: &Chain,
) -> Result<ReplayReport> {
    let target = match (&chain.gap, chain.records.last()) {
        (None, Some(target)) => target,
        (gap, _) => return Ok(ReplayReport::impossible(run, gap.iter().cloned().collect())),
    };
    let mut cancel = Cancel::listen()?;
    let interpreter = cancel.unless(interpreter(home, loaded, target)).await?;
    let cells = loaded.cells()?;
    let terms = ReplayTerms {
        snippets: cells.snippets,
        max_timeout: None,
        max_network: NetworkPolicy::Loopback,
        min_guard: target.setup.guard,
        sink: runs.sink(&chain.owner),
    };
    let replay = match Replay::plan(&interpreter, &chain.records, terms).await {
        Ok(replay) => replay,
        Err(reasons) => return Ok(ReplayReport::impossible(run, reasons)),
    };
    let replayed = async { Ok::<_, Error>(replay.run().await?) };
    cancel.unless(replayed).await
}

async fn interpreter(home: &Home, loaded: &LoadedConfig, target: &RunRecord) -> Result<Interpreter> {
    let display = Display::on_stderr();
    let limits: Option<Limits> = serde_json::from_value(Value::Object(target.limits.clone())).ok();
    let interpreter = Interpreter::builder()
        .image(image::ready(home, &target.image.digest, None, &display).await?)
        .limits(limits.unwrap_or_default())
        .single_session()
        .demands(loaded.settings.protections.demands())
        .store(artifact_store::open(home).await?)
        .build()
        .await?;
    Ok(interpreter)
}

fn unknown(run: &str) -> Error {
    Error::Refused(format!(
        "there is no run `{}`; `cellblock runs list` lists those that are kept",
        sanitize::line(run)
    ))
}

fn pretty(run: &OwnedRun) -> String {
    serde_json::to_string_pretty(run).unwrap_or_default()
}

fn table(all: &[OwnedRun]) -> String {
    if all.is_empty() {
        return "no runs; `cellblock run` and the sessions of a server record them".to_owned();
    }
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn line(run: &OwnedRun) -> String {
    let record = &run.run.record;
    let text = |field: &str| record[field].as_str().unwrap_or_default();
    let code: String = text("code")
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(CODE)
        .collect();
    let about = format!(
        "{}, {}, {}, {:.0} ms, of {}: {code}",
        date(run.run.created_at),
        text("session"),
        text("outcome"),
        record["durations"]["run_ms"].as_f64().unwrap_or(0.0),
        run.owner
    );
    format!(
        "{}  {}",
        styled(STRONG, &sanitize::line(text("id"))),
        styled(FAINT, &sanitize::line(&about))
    )
}

/// Describes a report for a person.
fn told(report: &ReplayReport) -> String {
    let mut lines = vec![match report.result {
        ReplayResult::Equal => format!("equal: {} made the same again", report.run),
        ReplayResult::Differs => format!("differs: {} made something else", report.run),
        ReplayResult::Impossible => format!("{} cannot be replayed", report.run),
    }];
    lines.extend(report.reasons.iter().map(|reason| format!("  {reason}")));
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    lines.extend(report.differences.iter().map(|it| {
        format!(
            "  {}: recorded {}, replayed {}",
            it.what,
            shown(&it.recorded),
            shown(&it.replayed)
        )
    }));
    sanitize::text(&lines.join("\n"))
}
