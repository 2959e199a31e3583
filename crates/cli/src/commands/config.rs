//! `cellblock config`: what a server's configuration says.

use std::path::PathBuf;

use cellblock_gateway::Models;

use crate::args::config::ConfigCommand;
use crate::config::{self, ConfigError, Loaded, Sources};
use crate::error::{self, Error};
use crate::exit_code::ExitCode;
use crate::render::Screen;

/// Does it, prints, and says how it ended.
pub(crate) fn run(command: ConfigCommand) -> ExitCode {
    match act(command) {
        Ok(text) => {
            Screen::new().show(text.trim_end());
            ExitCode::Success
        }
        Err(error) => {
            let error = Error::Config(error);
            error::tell(&error);
            error.exit_code()
        }
    }
}

fn act(command: ConfigCommand) -> Result<String, ConfigError> {
    match command {
        ConfigCommand::Check { file } => {
            let loaded = load(file)?;
            loaded.models(Models::default())?;
            loaded.site()?;
            loaded.mcp()?;
            Ok(match &loaded.file {
                Some(file) => format!("{}: nothing is wrong", file.display()),
                None => "there is no file; nothing is wrong with the environment and the defaults".to_owned(),
            })
        }
        ConfigCommand::Show { file } => Ok(load(file)?.show()),
        ConfigCommand::Schema => Ok(config::schema()),
    }
}

fn load(file: Option<PathBuf>) -> Result<Loaded, ConfigError> {
    Sources::of_process(file, None).load()
}
