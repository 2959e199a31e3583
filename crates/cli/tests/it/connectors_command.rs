//! `connectors` of the type `command`: code calls functions of a program of the operator.

use anyhow::Result;
use cellblock_testkit::wait::block_until;
use cellblock_testkit::{Cli, fenced, workspace_root};
use rustix::process::Signal;

use crate::support::{answer, check_rejected, folder, run};

const CONFIG: &str = "
connectors:
  house:
    type: command
    command: [python3, house.py]
    env: {MODE: test, HOUSE_KEY: {env: KEY_OF_THE_HOUSE}}
";

#[test]
fn functions_of_a_program_are_called_from_code_and_from_a_shell() -> Result<()> {
    let page = std::fs::read_to_string(workspace_root().join("docs/connector-programs.md"))?;
    let program = fenced(&page, "python")[0].as_bytes();
    let (_folder, path) = folder(&[("cellblock.yaml", CONFIG.as_bytes()), ("house.py", program)])?;
    let code = "got = house.temperatures('kitchen')\n\
                try:\n    house.temperatures('attic')\n\
                except cellblock.EmptyDataError as error:\n    print(error)\n\
                [type(got).__name__, float(got['celsius'].mean())]";
    let finished = run(["--toolset", "notebook", "--json", "-c", code])?
        .folder(&path)
        .env("KEY_OF_THE_HOUSE", "s3cret-of-the-house")
        .run()?;
    let (code, report) = answer(&finished)?;
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(
        report["outputs"][0]["value"], "['DataFrame', 20.75]",
        "{report:#}"
    );
    let printed = report["stdout"].as_str().unwrap_or_default();
    assert!(printed.contains("`attic` is not a room"), "{printed}");
    let finished = Cli::new(["connector", "call", "house.temperatures", "room=cellar"])
        .folder(&path)
        .env("KEY_OF_THE_HOUSE", "s3cret-of-the-house")
        .run()?;
    assert!(
        finished.stdout.contains("12.0"),
        "{}{}",
        finished.stdout,
        finished.stderr
    );
    let finished = Cli::new(["connector", "check", "house"]).folder(&path).run()?;
    assert!(
        finished
            .stderr
            .contains("the environment variable `KEY_OF_THE_HOUSE` is not set"),
        "{}",
        finished.stderr
    );
    Ok(())
}

#[test]
fn functions_of_a_python_module_are_called_from_code() -> Result<()> {
    let config = b"connectors: {macro: {type: python, module: rates, bind: {token: {file: token}}}}\n";
    let module = b"import datetime\n\
                   def rate(day: datetime.date, token: str, factor: float = 2) -> list:\n    \
                   print('called')\n    return [{'day': day, 'rate': factor * day.day, 'token': token}]\n";
    let files: [(&str, &[u8]); 3] = [
        ("cellblock.yaml", config),
        ("rates.py", module),
        ("token", b"t0ken-of-the-bank\n"),
    ];
    let (_folder, path) = folder(&files)?;
    let finished = run([
        "--toolset",
        "notebook",
        "--json",
        "-c",
        "macro.rate('2026-01-03')",
    ])?
    .folder(&path)
    .run()?;
    let (code, report) = answer(&finished)?;
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(
        report["outputs"][0]["value"], "[{'day': '2026-01-03', 'rate': 6, 'token': '[redacted]'}]",
        "{report:#}"
    );
    Ok(())
}

/// Notes its process and one that it starts, and does not notice the end of its stdin.
const DEAF: &[u8] = br#"
import json, os, subprocess, sys, time
request = json.loads(sys.stdin.readline())
print(json.dumps({"id": request["id"], "value": [{"name": "f", "effect": "reads"}]}), flush=True)
sys.stdin.readline()
child = subprocess.Popen(["sleep", "3600"])
with open("new", "w") as pids:
    print(os.getpid(), child.pid, file=pids)
os.rename("new", "pids")
time.sleep(3600)
"#;

#[test]
fn a_program_ends_with_a_run_that_is_terminated() -> Result<()> {
    let config = b"connectors: {house: {type: command, command: [python3, deaf.py]}}\n";
    let (_folder, path) = folder(&[("cellblock.yaml", config), ("deaf.py", DEAF)])?;
    let running = run(["--toolset", "notebook", "-c", "house.f()"])?
        .folder(&path)
        .start()?;
    block_until("the program is called", || path.join("pids").exists());
    let pids = std::fs::read_to_string(path.join("pids"))?;
    running.signal(Signal::TERM)?;
    assert_eq!(running.finish()?.code(), 128 + 15);
    let runs = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    block_until("nothing is left", || !pids.split_whitespace().any(runs));
    Ok(())
}

#[test]
fn mistakes_of_connectors_over_programs_are_reported_with_their_lines() -> Result<()> {
    let cases = [
        ("house: {type: command}", "missing key `command`"),
        (
            "house: {type: command, command: [a], env: {API_KEY: abc}}",
            "`connectors.house.env.API_KEY`: a configuration must not contain secrets",
        ),
        (
            "house: {type: command, command: [a], env: {A: {env: B, file: c}}}",
            "must have `env`, an environment variable, or `file`, and not both",
        ),
        (
            "house: {type: command, command: [a], env: {A: {url: b}}}",
            "must be text, or `{env: NAME}` or `{file: PATH}` with a secret",
        ),
        (
            "house: {type: command, command: [a], start_timeout: 0s}",
            "`connectors.house.start_timeout`: must be greater than 0",
        ),
        ("house: {type: python}", "missing key `module`"),
        (
            "house: {type: python, module: a, packages: ['-e .']}",
            "`connectors.house.packages`: `-e .` is not a usable requirement",
        ),
        (
            "house: {type: python, module: a, bind: {api_key: abc}}",
            "`connectors.house.bind.api_key`: a configuration must not contain secrets",
        ),
        (
            "house: {type: python, module: a, command: [b]}",
            "`connectors.house.command`: has no effect with `type: python`; remove it",
        ),
        (
            "house: {type: command, command: [a], rate: 1/s}",
            "`connectors.house.rate`: has no effect with `type: command`; remove it",
        ),
    ];
    check_rejected(&["config", "check"], &[], &cases)
}
