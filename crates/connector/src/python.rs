//! Functions of a Python module, or a bundle of Parsimony, in a process of its own.
//!
//! The process runs `python/bundle.py`, which imports the module and speaks the messages of the
//! type `command`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind, Redaction};
use cellblock_interpreter::image::layer::Requirement;
use cellblock_interpreter::image::{Home, ImageError, Sink, host_packages};
use futures_util::FutureExt as _;
use serde_json::{Map, json};

use crate::command::{CommandConnector, CommandService, CommandServiceOptions, INHERITED, PrepareProgram};
use crate::given::GivenValues;
use crate::mistake::OptionMistake;
use crate::options::ConnectorOptions;
use crate::process::ProgramLaunch;

/// The program that offers a module.
const PROGRAM: &str = include_str!("../python/bundle.py");

/// Values that a module gets from the operator.
#[derive(Clone, Debug, Default)]
pub struct PythonValues {
    /// Environment variables.
    pub environment: GivenValues,
    /// Arguments of its functions, which code does not see.
    pub bound: GivenValues,
}

impl CommandConnector {
    /// Compiles a connector over a Python module, which is below `folder` or installed. Packages
    /// are installed in Cellblock's directory, or in `home`. Starts nothing.
    pub fn python(
        name: &str,
        options: &ConnectorOptions,
        values: PythonValues,
        folder: &Path,
        home: Option<PathBuf>,
    ) -> Result<Self, Vec<OptionMistake>> {
        let mut mistakes = Vec::new();
        let module = options.module.clone().unwrap_or_default();
        if !is_module(&module) {
            let (path, text): (&[&str], _) = match &options.module {
                None => (
                    &[],
                    "missing key `module`: the module of the functions, such as `macro` or \
                     `macro:CONNECTORS`",
                ),
                Some(_) => (
                    &["module"],
                    "must be the name of a module, with or without a name in it, such as `macro:CONNECTORS`",
                ),
            };
            mistakes.push(OptionMistake::new(path, text));
        }
        let mut packages: Vec<Requirement> = Vec::new();
        for package in &options.packages {
            match package.parse() {
                Ok(package) => packages.push(package),
                Err(error) => mistakes.push(OptionMistake::new(&["packages"], format!("{error}"))),
            }
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let PythonValues { environment, bound } = values;
        let python = interpreter(options.python.as_deref().unwrap_or("python3"), folder);
        let command = [&python.display().to_string(), "-u", "-c", PROGRAM, &module];
        let launch = ProgramLaunch {
            command: command.map(str::to_owned).to_vec(),
            inherited: &INHERITED,
            environment: environment.values.into_iter().collect(),
            folder: Some(folder.to_owned()),
        };
        let label = name.to_owned();
        let prepare: PrepareProgram = Arc::new(move || {
            let (launch, label, home) = (launch.clone(), label.clone(), home.clone());
            let (python, packages) = (python.clone(), packages.clone());
            async move {
                if packages.is_empty() {
                    return Ok(launch);
                }
                let install = tokio::task::spawn_blocking(move || installed(home, &python, &packages));
                let installed = install.await.unwrap_or_else(|error| Err(error.into()));
                let folder = installed.map_err(|error| {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        connector = label,
                        error,
                        "the packages of a connector cannot be installed"
                    );
                    let text = "its `packages` cannot be installed; the log has the reason";
                    ConnectorError::new(ConnectorErrorKind::Provider { status: None }, text)
                })?;
                Ok(with_packages(launch, &folder))
            }
            .boxed()
        });
        let secrets = environment.secrets.iter().chain(&bound.secrets);
        let service = CommandServiceOptions::new(name, options, Redaction::new(secrets));
        let greeting = Map::from_iter([("bind".to_owned(), json!(bound.values))]);
        Ok(Self::over(
            name,
            options,
            CommandService::new(service, greeting, prepare),
        ))
    }
}

/// Returns whether this is `module` or `module:NAME`, each with or without dots.
fn is_module(text: &str) -> bool {
    let (module, name) = text.split_once(':').unwrap_or((text, "x"));
    let is_word = |word: &str| {
        let letter = |c: char| c == '_' || c.is_alphanumeric();
        word.chars().all(letter) && word.starts_with(|c: char| letter(c) && !c.is_numeric())
    };
    [module, name].iter().all(|path| path.split('.').all(is_word))
}

/// Returns the interpreter: a name on `PATH`, or a path that counts from a folder.
fn interpreter(written: &str, folder: &Path) -> PathBuf {
    if !written.contains('/') {
        return written.into();
    }
    let path = folder.join(written);
    std::path::absolute(&path).unwrap_or(path)
}

fn installed(home: Option<PathBuf>, python: &Path, packages: &[Requirement]) -> Result<PathBuf, ImageError> {
    let home = home.map_or_else(Home::find, |home| Home::at(&home))?;
    let sink = Sink::new(|progress| tracing::debug!(?progress, "installing the packages of a connector"));
    host_packages(&home, python, packages, &sink)
}

/// Adds installed packages to the search path.
fn with_packages(mut launch: ProgramLaunch, folder: &Path) -> ProgramLaunch {
    let mut path = folder.display().to_string();
    launch.environment.retain(|(name, value)| {
        let own = name == "PYTHONPATH";
        if own {
            path = format!("{value}:{path}");
        }
        !own
    });
    launch.environment.push(("PYTHONPATH".to_owned(), path));
    launch
}
