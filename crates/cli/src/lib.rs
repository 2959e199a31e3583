//! The `cellblock` command: Python for AI agents, in a sandbox that nothing leaves.

mod args;
mod artifact_store;
mod cancel;
mod cells;
mod commands;
mod config;
mod env_vars;
mod error;
mod exit_code;
mod features;
mod input_arg;
mod logging;
mod out_dir;
mod policy;
mod progress;
#[cfg(test)]
mod reference;
mod render;
mod sanitize;
mod script;
mod session;
mod session_error;
mod session_id;
mod style;
mod threads;
mod toolset;
mod warm;

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use cellblock_image::stop_builds;
use clap::error::ErrorKind;

use crate::args::session::{SessionArgs, SessionCommand};
use crate::args::warm::{WarmArgs, WarmCommand};
use crate::args::{CliArgs, Command};
use crate::exit_code::ExitCode;
use crate::render::json::{self, FailureReport};

/// Maximum time in which a build that is stopped may remove what is half done.
pub(crate) const BUILD_END: Duration = Duration::from_secs(10);
/// Maximum time for which a background task, such as a look-up of names, may delay the end of the process.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// Runs the command with this process's arguments.
pub fn main() -> std::process::ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let code = match args::repeated::parse(&arguments) {
        Ok(cli) => start(cli),
        Err(error) => refuse(&error, &arguments),
    };
    code.into()
}

fn start(cli: CliArgs) -> ExitCode {
    if let Command::Session(SessionArgs {
        command: SessionCommand::Host { session },
    }) = &cli.command
    {
        return commands::session::host::run(session);
    }
    if let Command::Warm(WarmArgs {
        command: WarmCommand::Host { id },
    }) = &cli.command
    {
        return commands::warm::host::run(id);
    }
    if let Command::BootMachine(args) = &cli.command {
        return commands::inside::boot(args);
    }
    let export = if matches!(cli.command, Command::Serve(_)) {
        logging::serve()
    } else {
        logging::start();
        None
    };
    // A machine that is restored while it runs must have no threads that wait for one another: in
    // some copies of gVisor's none of them looked for the host.
    let single = matches!(cli.command, Command::Inside(_));
    let runtime = match threads::runtime(single) {
        Ok(runtime) => runtime,
        Err(error) => {
            error::tell(&error);
            return error.exit_code();
        }
    };
    let code = runtime.block_on(async {
        match cli.command {
            Command::Run(args) => Box::pin(commands::run::run(*args)).await,
            Command::Serve(args) => Box::pin(commands::serve::run(args)).await,
            Command::Key(args) => commands::key::run(args).await,
            Command::Config(args) => commands::config::run(args.command).await,
            Command::Mcp(args) => commands::mcp::run(*args).await,
            Command::Connector(args) => commands::connector::run(args).await,
            Command::Dataset(args) => commands::dataset::run(args).await,
            Command::Skill(args) => commands::skill::run(args).await,
            Command::Volume(args) => commands::volume::run(args).await,
            Command::Runs(args) => Box::pin(commands::runs::run(args)).await,
            Command::Tools(args) => commands::tools::run(args.command).await,
            Command::Session(args) => commands::session::run(args.command).await,
            Command::Warm(args) => commands::warm::run(args.command).await,
            Command::Image(args) => commands::image::run(args.command).await,
            Command::Artifact(args) => commands::artifact::run(args).await,
            Command::Inside(args) => commands::inside::run(*args).await,
            Command::BootMachine(args) => commands::inside::boot(&args),
            Command::Doctor(args) => commands::doctor::run(args).await,
        }
    });
    // What was given up has not ended by itself: a build goes on until it is stopped.
    stop_builds(BUILD_END);
    runtime.shutdown_timeout(SHUTDOWN);
    if let Some(export) = export {
        export.finish(SHUTDOWN);
    }
    code
}

/// Answers a command line that is not one, or that asks for help.
fn refuse(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if !asked && arguments.iter().any(|argument| argument == "--json") {
        let text = error.render().to_string();
        let message = text.strip_prefix("error: ").unwrap_or(&text);
        let message = message.split("\n\n").next().unwrap_or(message);
        json::print(&FailureReport::usage(message.trim().to_owned()));
        return ExitCode::Refused;
    }
    // Nobody is left to tell when the stream is gone.
    let _ = error.print();
    let _ = std::io::stdout().flush();
    if asked {
        ExitCode::Success
    } else {
        ExitCode::Refused
    }
}
