//! Functions of a Python module, or a bundle of Parsimony, in a process of its own.
//!
//! The process runs `python/bundle.py`, which imports the module and speaks the messages of the
//! type `command`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cellblock_interpreter::connector::{ConnectorError, Redaction};
use cellblock_interpreter::image::layer::Requirement;
use cellblock_interpreter::image::{Home, ImageError, Sink, host_packages};
use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::command::{CommandConnector, INHERITED, PrepareProgram, ProgramOptions};
use crate::given::GivenValues;
use crate::options::{GivenValue, TypeOptions};
use crate::process::ProgramLaunch;
use crate::recipe::{ConnectorRecipe, ConnectorResult, OptionMistake, checked};

/// The program that offers a module.
const PROGRAM: &str = include_str!("../python/bundle.py");

/// Options of the type `python` only.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PythonOptions {
    /// Python module with the functions, such as `macro`, or a bundle, list or dict in it, such as
    /// `macro:CONNECTORS`. It is installed, or beside the configuration.
    pub module: Option<String>,
    /// Python packages that are installed for the module, such as `parsimony-fred` or `pandas>=2.2,<3`.
    pub packages: Vec<String>,
    /// Interpreter of the module, version 3.11 or newer: a name on `PATH`, or a path; by default, `python3`.
    pub python: Option<String>,
    /// Arguments of the module's functions that code neither sees nor sets: text, or a secret by
    /// `{env: NAME}` or `{file: PATH}`.
    pub bind: BTreeMap<String, GivenValue>,
}

impl ConnectorRecipe for TypeOptions<PythonOptions, ProgramOptions> {
    fn connector(&self, name: &str, folder: Option<&Path>) -> ConnectorResult {
        let mut mistakes = self.calls.mistakes();
        let environment = self.shared.environment(folder, &mut mistakes);
        let bound = GivenValues::read("bind", &self.own.bind, folder, &mut mistakes);
        let folder = folder.unwrap_or(Path::new(""));
        checked(
            mistakes,
            CommandConnector::python(name, self, environment, &bound, folder, None),
        )
    }
}

impl CommandConnector {
    /// Compiles a connector over a Python module, which is below `folder` or installed. It gets the
    /// variables of `environment`, and its functions the arguments `bound`. Packages are installed
    /// in Cellblock's directory, or in `home`. Starts nothing.
    pub fn python(
        name: &str,
        options: &TypeOptions<PythonOptions, ProgramOptions>,
        environment: GivenValues,
        bound: &GivenValues,
        folder: &Path,
        home: Option<PathBuf>,
    ) -> Result<Self, Vec<OptionMistake>> {
        let own = &options.own;
        let mut mistakes = Vec::new();
        let module = own.module.clone().unwrap_or_default();
        if !is_module(&module) {
            let (path, text): (&[&str], _) = match &own.module {
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
        for package in &own.packages {
            match package.parse() {
                Ok(package) => packages.push(package),
                Err(error) => mistakes.push(OptionMistake::new(&["packages"], format!("{error}"))),
            }
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let python = interpreter(own.python.as_deref().unwrap_or("python3"), folder);
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
                    ConnectorError::provider(text)
                })?;
                Ok(with_packages(launch, &folder))
            }
            .boxed()
        });
        let secrets = environment.secrets.iter().chain(&bound.secrets);
        let greeting = Map::from_iter([("bind".to_owned(), json!(bound.values))]);
        Ok(Self::over(
            name,
            options,
            Redaction::new(secrets),
            greeting,
            prepare,
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
