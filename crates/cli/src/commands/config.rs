//! `cellblock config`: what a server's configuration says.

use std::path::PathBuf;

use super::serve::plan::Plan;
use crate::args::config::{CheckArgs, ConfigCommand};
use crate::args::serve::ServeArgs;
use crate::config::{self, LoadedConfig, Sources};
use crate::error::{self, Result};
use crate::exit_code::ExitCode;
use crate::render::Screen;

/// Does it, prints, and says how it ended.
pub(crate) async fn run(command: ConfigCommand) -> ExitCode {
    match act(command).await {
        Ok(text) => {
            Screen::new().show(text.trim_end());
            ExitCode::Success
        }
        Err(error) => {
            error::tell(&error);
            error.exit_code()
        }
    }
}

async fn act(command: ConfigCommand) -> Result<String> {
    match command {
        ConfigCommand::Check(CheckArgs { file, serve }) => {
            let serve = ServeArgs {
                config: file.or(serve.config),
                ..serve
            };
            let plan = Plan::of(&serve)?;
            plan.check().await?;
            Ok(plan.loaded.file.map_or_else(
                || "there is no file; nothing is wrong with the environment and the defaults".to_owned(),
                |file| format!("{}: nothing is wrong", file.display()),
            ))
        }
        ConfigCommand::Show { file, config } => Ok(load(file.or(config))?.show()),
        ConfigCommand::Schema => Ok(config::schema()),
    }
}

fn load(file: Option<PathBuf>) -> Result<LoadedConfig> {
    Ok(Sources::of_process(file, None).load()?)
}
