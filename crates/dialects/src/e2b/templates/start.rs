//! Start of what a template says: its packages, its directory, and when its programs are ready.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::StatusCode;
use cellblock_interpreter::Session;
use cellblock_interpreter::session::{CommandEnd, SandboxProgram};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::super::error::{Answer, Problem, shortened};
use super::super::paths::HOME;

/// Folder of packages and programs that steps install, below the home.
const LOCAL: &str = "/home/user/.local";
/// Time within which a ready command has to succeed.
const READY: Duration = Duration::from_mins(2);
/// Pause between two runs of a ready command.
const PAUSE: Duration = Duration::from_millis(200);
/// Bytes of its output that an error repeats.
const SHOWN: usize = 500;

/// Returns the variables with which `pip` and `npm` install into the home, where a template keeps it.
pub(super) fn variables(path: &str) -> BTreeMap<String, String> {
    let all = [
        ("PATH", format!("{LOCAL}/bin:{path}")),
        ("PYTHONUSERBASE", LOCAL.to_owned()),
        ("NPM_CONFIG_PREFIX", LOCAL.to_owned()),
        ("NODE_PATH", format!("{LOCAL}/lib/node_modules")),
    ];
    all.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Returns code that lets a kernel find the packages of a template, and begin in its directory.
pub(in super::super) fn setup(workdir: &str) -> String {
    let code = format!(
        "import os, site, sys\n\
         version = f'{{sys.version_info[0]}}.{{sys.version_info[1]}}'\n\
         site.addsitedir(f'{LOCAL}/lib/python{{version}}/site-packages')\n\
         os.chdir({} if os.path.isdir({0}) else {})\n",
        json!(workdir),
        json!(HOME),
    );
    // Its names are not the cells'. A string of JSON is one of Python.
    format!("exec({}, {{}})\n", json!(code))
}

/// Returns the program that runs a command as E2B's clients do.
pub(super) fn shell(command: &str) -> [String; 4] {
    ["/bin/bash", "-l", "-c", command].map(str::to_owned)
}

/// Returns whether a ready command only waits, as clients write it for a start command without one. In a
/// new sandbox it would say nothing about the start command that runs there.
pub(in super::super) fn is_pause(command: &str) -> bool {
    let words: Vec<_> = command.split_whitespace().collect();
    matches!(words.as_slice(), ["sleep", time] if time.parse::<f64>().is_ok())
}

/// Waits until the ready command of a template succeeds.
pub(in super::super) async fn await_ready(
    session: &Session,
    command: &str,
    workdir: &str,
    envs: &BTreeMap<String, String>,
) -> Answer<()> {
    let enter = "cd \"$0\" && exec /bin/bash -l -c \"$1\"";
    let argv = ["/bin/bash", "-c", enter, workdir, command].map(str::to_owned);
    let deadline = Instant::now() + READY;
    loop {
        let program = SandboxProgram {
            argv: argv.to_vec(),
            env: envs.clone(),
            requirements: Vec::new(),
            // The last run begins just before the deadline, and no timeout may be zero.
            timeout: deadline.saturating_duration_since(Instant::now()).max(PAUSE),
            stream_bytes: SHOWN,
        };
        let ran = session.run_program(program).await?;
        if ran.end == CommandEnd::Exited(0) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let last = format!("{}\n{}", ran.stdout.text, ran.stderr.text);
            return Err(Problem::new(
                StatusCode::GATEWAY_TIMEOUT,
                format!(
                    "the ready command `{}` did not succeed within {} s; let it exit with 0 when the start \
                     command is ready. Its last output: {:?}",
                    shortened(command),
                    READY.as_secs(),
                    last.trim()
                ),
            ));
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ready_command_that_only_waits_is_recognized() {
        for (command, is_so) in [
            ("sleep 20", true),
            (" sleep 0.5 ", true),
            ("sleep 1 && true", false),
            ("curl x", false),
            ("sleep $N", false),
            ("", false),
        ] {
            assert_eq!(is_pause(command), is_so, "{command:?}");
        }
    }

    #[test]
    fn the_directory_of_a_template_is_a_text_in_the_setup_code() {
        let code = setup("/home/user/a'b\"c{d}");
        assert!(code.starts_with("exec(\"import os, site, sys") && code.ends_with(", {})\n"));
        assert!(
            code.contains(r#"os.chdir(\"/home/user/a'b\\\"c{d}\" if"#),
            "{code}"
        );
    }
}
