//! Steps of a build, with the variables and the working directory that each has. Nothing of a plan runs
//! before all of it is known to be possible.

use std::collections::BTreeMap;

use super::super::error::{Answer, Problem, shortened};
use super::super::paths::HOME;
use super::builds::BuildReason;
use super::request::StepRequest;
use crate::bounded::MAX_DESCRIPTION;

/// Programs that need root, which sandboxes do not have.
const ROOT_PROGRAMS: [&str; 16] = [
    "addgroup", "adduser", "apk", "apt", "apt-get", "dnf", "dpkg", "groupadd", "microdnf", "mount", "pacman",
    "rpm", "su", "sudo", "useradd", "yum",
];
/// Words before the program of a command.
const BEFORE: [&str; 9] = ["!", "do", "else", "env", "exec", "if", "then", "time", "while"];

/// Steps to perform, and what is left for sandboxes of the template.
#[derive(Debug)]
pub(super) struct BuildPlan {
    pub(super) steps: Vec<PlannedStep>,
    pub(super) envs: BTreeMap<String, String>,
    pub(super) workdir: String,
}

/// A step, with its name in the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlannedStep {
    pub(super) name: String,
    pub(super) text: String,
    /// Whether a client wants root for it.
    pub(super) is_root: bool,
    pub(super) workdir: String,
    pub(super) envs: BTreeMap<String, String>,
    pub(super) action: StepAction,
}

/// Action of a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StepAction {
    /// A command of a shell.
    Run(String),
    /// Files of an upload.
    Copy {
        hash: String,
        source: String,
        destination: String,
        mode: Option<u32>,
    },
    /// A folder is made, if it is missing.
    Enter,
    /// Nothing is done in the sandbox.
    Note,
}

/// State that steps change.
#[derive(Debug)]
struct PlanState {
    envs: BTreeMap<String, String>,
    /// Bytes of the variables. Each step has a copy of them.
    env_bytes: usize,
    workdir: String,
    is_root: bool,
}

impl BuildPlan {
    /// Plans all steps, which begin with these variables and directory.
    ///
    /// # Errors
    ///
    /// Returns the first step that is not possible, and why.
    pub(super) fn new(
        steps: &[StepRequest],
        envs: BTreeMap<String, String>,
        workdir: String,
    ) -> Result<Self, BuildReason> {
        let mut state = PlanState {
            env_bytes: envs.iter().map(|(name, value)| name.len() + value.len()).sum(),
            envs,
            workdir,
            is_root: false,
        };
        // Those of a template come from a volume that the client can write.
        state.check_size().map_err(|problem| BuildReason {
            message: format!("the base: {}", problem.0.message),
            step: "base".to_owned(),
        })?;
        let mut planned = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            // As clients count: their first step is the base.
            let name = (index + 1).to_string();
            let next = state.step(&name, step).map_err(|problem| BuildReason {
                message: format!("step {name}: {}", problem.0.message),
                step: name.clone(),
            })?;
            planned.push(next);
        }
        Ok(Self {
            steps: planned,
            envs: state.envs,
            workdir: kept_workdir(&state.workdir),
        })
    }
}

impl PlanState {
    fn step(&mut self, name: &str, step: &StepRequest) -> Answer<PlannedStep> {
        let args: Vec<&str> = step.args.iter().map(String::as_str).collect();
        let mut is_root = self.is_root;
        let action = match (step.kind.as_str(), args.as_slice()) {
            ("RUN", [command, user @ ..]) => {
                if let Some(user) = user.first() {
                    is_root = root(user)?;
                }
                check_command(command)?;
                StepAction::Run((*command).to_owned())
            }
            ("COPY", [source, destination, rest @ ..]) => {
                let owner = rest.first().copied().unwrap_or_default();
                if !owner.is_empty() {
                    is_root = root(owner)?;
                }
                self.copy(source, destination, rest.get(1).copied(), step)?
            }
            ("ENV", pairs) if pairs.len() % 2 == 0 => {
                for pair in pairs.chunks(2) {
                    if let [name, value] = pair {
                        self.set(name, value)?;
                    }
                }
                StepAction::Note
            }
            ("WORKDIR", [path]) => {
                let path = resolve(&expand(path, &self.envs)?, &self.workdir);
                self.workdir = path;
                match self.workdir.as_str() {
                    "/" => StepAction::Note,
                    path => {
                        check_place("the working directory", path)?;
                        StepAction::Enter
                    }
                }
            }
            ("USER", [user]) => {
                self.is_root = root(user)?;
                is_root = self.is_root;
                StepAction::Note
            }
            ("RUN" | "COPY" | "ENV" | "WORKDIR" | "USER", _) => {
                return Err(Problem::invalid(format!(
                    "`{}` has {} arguments, which is not a number that it can have",
                    step.kind,
                    args.len()
                )));
            }
            (other, _) => {
                return Err(Problem::invalid(format!(
                    "`type`: {other:?} is not a step; use RUN, COPY, ENV, WORKDIR or USER",
                    other = shortened(other)
                )));
            }
        };
        // Values of variables may be secrets.
        let words = if step.kind == "ENV" {
            args.iter().step_by(2).copied().collect::<Vec<_>>().join(" ")
        } else {
            args.join(" ")
        };
        Ok(PlannedStep {
            name: name.to_owned(),
            text: format!("{} {}", step.kind, words.trim_end()),
            is_root,
            workdir: self.workdir.clone(),
            envs: self.envs.clone(),
            action,
        })
    }

    fn copy(
        &self,
        source: &str,
        destination: &str,
        mode: Option<&str>,
        step: &StepRequest,
    ) -> Answer<StepAction> {
        let hash = step.files_hash.as_ref();
        let hash = hash.ok_or_else(|| Problem::invalid("`filesHash` of a step that copies is missing"))?;
        let destination = expand(destination, &self.envs)?;
        let is_folder = matches!(destination.rsplit('/').next(), Some("" | "." | ".."));
        let mut target = resolve(&destination, &self.workdir);
        check_place("the destination", &target)?;
        if is_folder {
            target.push('/');
        }
        let mode = match mode.unwrap_or_default() {
            "" => None,
            digits => Some(
                u32::from_str_radix(digits, 8)
                    .ok()
                    .filter(|mode| *mode <= 0o777)
                    .ok_or_else(|| {
                        Problem::invalid(format!(
                            "the mode {:?} is not one of permissions; use octal digits up to 0777",
                            shortened(digits)
                        ))
                    })?,
            ),
        };
        Ok(StepAction::Copy {
            hash: hash.as_str().to_owned(),
            source: source.to_owned(),
            destination: target,
            mode,
        })
    }

    fn set(&mut self, name: &str, value: &str) -> Answer<()> {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(Problem::invalid(format!(
                "{:?} is not the name of a variable, or its value contains a NUL character",
                shortened(name)
            )));
        }
        let value = expand(value, &self.envs)?;
        self.env_bytes += value.len();
        match self.envs.insert(name.to_owned(), value) {
            Some(before) => self.env_bytes -= before.len(),
            None => self.env_bytes += name.len(),
        }
        self.check_size()
    }

    /// Rejects variables that no program could have.
    fn check_size(&self) -> Answer<()> {
        if self.env_bytes > MAX_DESCRIPTION {
            return Err(Problem::invalid(format!(
                "the variables have {} bytes together, the limit is {MAX_DESCRIPTION}; set fewer or \
                 shorter ones",
                self.env_bytes
            )));
        }
        Ok(())
    }
}

/// Returns whether a user is root. Sandboxes have one user, and files belong to that one.
fn root(user: &str) -> Answer<bool> {
    let parts: Vec<_> = user.split(':').collect();
    if parts.iter().all(|it| ["user", ""].contains(it)) {
        return Ok(false);
    }
    if parts.iter().all(|it| ["root", "0", "user"].contains(it)) {
        return Ok(true);
    }
    let why = "programs and files of a sandbox belong to `user`; leave the user out";
    Err(Problem::unenforced("user", &user, why))
}

/// Rejects a command that cannot succeed without root.
fn check_command(command: &str) -> Answer<()> {
    if command.contains('\0') {
        return Err(Problem::invalid("the command contains a NUL character"));
    }
    let parts = command.split(['\n', ';', '&', '|', '(', ')', '{', '}']);
    let program = |part: &str| {
        let mut words = part.split_whitespace();
        let first = words.find(|word| {
            let is_variable = word.contains('=') && !word.starts_with(['-', '/', '=']);
            !is_variable && !BEFORE.contains(word)
        });
        first.map(|word| word.rsplit('/').next().unwrap_or_default().to_owned())
    };
    let needs_root = parts
        .filter_map(program)
        .find(|it| ROOT_PROGRAMS.contains(&it.as_str()));
    match needs_root {
        None => Ok(()),
        Some(program) => Err(Problem::invalid(format!(
            "`{program}` needs root, which sandboxes do not have; install packages with `pip install` or \
             `npm install`, and let the operator build others into the server's image with `cellblock image \
             build`"
        ))),
    }
}

/// Rejects a path at which a sandbox of the template would have nothing, or nothing can be written.
fn check_place(what: &str, path: &str) -> Answer<()> {
    let is_below = |root: &str| {
        path.strip_prefix(root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if is_below(HOME) || is_below("/tmp") {
        return Ok(());
    }
    Err(Problem::invalid(format!(
        "{what} `{path}` cannot be written; use a folder below `{HOME}`, which a template keeps, or `/tmp`, \
         which it does not",
        path = shortened(path)
    )))
}

/// Returns the working directory of sandboxes: one that a template keeps, or the home.
fn kept_workdir(path: &str) -> String {
    let rest = path.strip_prefix(HOME);
    let is_kept = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_kept { path } else { HOME }.to_owned()
}

/// Returns the absolute path of one as seen from a directory.
fn resolve(path: &str, directory: &str) -> String {
    let path = if path.starts_with(['/', '~']) {
        path.to_owned()
    } else {
        format!("{directory}/{path}")
    };
    super::super::paths::absolute(&path)
}

/// Replaces `$NAME` and `${NAME}` by values of variables; unknown ones are empty.
fn expand(text: &str, envs: &BTreeMap<String, String>) -> Answer<String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        // A backslash keeps the next character as it is.
        if let Some(before) = before.strip_suffix('\\') {
            expanded.push_str(before);
            expanded.push('$');
            rest = after;
            continue;
        }
        expanded.push_str(before);
        let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let (name, next) = if let Some(braced) = after.strip_prefix('{') {
            let closed = braced.split_once('}');
            closed.ok_or_else(|| Problem::invalid(format!("{:?}: `${{` has no `}}`", shortened(text))))?
        } else {
            after.split_at(after.find(|it| !is_part(it)).unwrap_or(after.len()))
        };
        if name.is_empty() {
            expanded.push('$');
        } else if !name.chars().all(is_part) {
            return Err(Problem::invalid(format!(
                "`${{{}}}` is not supported; use `${{NAME}}`",
                shortened(name)
            )));
        }
        expanded.push_str(envs.get(name).map_or("", String::as_str));
        if expanded.len() > MAX_DESCRIPTION {
            return Err(Problem::invalid(format!(
                "a value with variables has more than {MAX_DESCRIPTION} bytes, which is the limit"
            )));
        }
        rest = next;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(steps: &[(&str, &[&str])]) -> Result<BuildPlan, BuildReason> {
        let steps: Vec<StepRequest> = steps
            .iter()
            .map(|(kind, args)| {
                let step = json!({"type": kind, "args": args, "filesHash": "h"});
                serde_json::from_value(step).unwrap()
            })
            .collect();
        let envs = BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]);
        BuildPlan::new(&steps, envs, HOME.to_owned())
    }

    #[test]
    fn steps_have_the_variables_and_the_directory_of_those_before_them() {
        let plan = plan(&[
            ("USER", &["root"]),
            ("WORKDIR", &["/"]),
            ("WORKDIR", &["/home/user/app"]),
            ("ENV", &["A", "1", "PATH", "/x:${PATH}:$A", "B", "\\$A"]),
            ("COPY", &["a.py", "src/.", "", "0755"]),
            ("RUN", &["pip install x", "root"]),
            ("USER", &["user"]),
        ])
        .unwrap();
        assert_eq!((plan.workdir.as_str(), plan.steps.len()), ("/home/user/app", 7));
        assert_eq!(
            (plan.envs["PATH"].as_str(), plan.envs["B"].as_str()),
            ("/x:/bin:1", "$A")
        );
        assert_eq!(
            plan.steps[4].action,
            StepAction::Copy {
                hash: "h".to_owned(),
                source: "a.py".to_owned(),
                destination: "/home/user/app/src/".to_owned(),
                mode: Some(0o755),
            }
        );
        assert!(plan.steps[5].is_root && !plan.steps[6].is_root);
        assert_eq!(plan.steps[3].text, "ENV A PATH B");
    }

    #[test]
    fn a_step_that_is_not_possible_is_named_with_what_to_do_instead() {
        for (step, words) in [
            (
                ("RUN", &["X=1 apt-get install -y vim"] as &[&str]),
                "`apt-get` needs root",
            ),
            (("RUN", &["true && sudo ls"]), "`sudo` needs root"),
            (("RUN", &["ls", "postgres"]), "\"postgres\" is not supported"),
            (("RUN", &[]), "has 0 arguments"),
            (("COPY", &["a", "/app/"]), "`/app` cannot be written"),
            (
                ("COPY", &["a", "/home/user/../../etc/x"]),
                "`/etc/x` cannot be written",
            ),
            (("COPY", &["a", "b", "", "4755"]), "is not one of permissions"),
            (("WORKDIR", &["/app"]), "the working directory `/app`"),
            (("ENV", &["A", "${B:-1}"]), "`${B:-1}` is not supported"),
            (("ENV", &["A"]), "has 1 arguments"),
            (("USER", &["nobody"]), "\"nobody\" is not supported"),
            (("ADD", &["x"]), "\"ADD\" is not a step"),
        ] {
            let failed = plan(&[("ENV", &[]), step]).unwrap_err();
            assert_eq!(failed.step, "2");
            assert!(failed.message.contains(words), "{}", failed.message);
        }
    }

    #[test]
    fn all_variables_of_a_template_together_are_bounded() {
        let half = "x".repeat(MAX_DESCRIPTION / 2);
        let same: &[&str] = &["A", &half];
        assert_eq!(plan(&[("ENV", same), ("ENV", same)]).unwrap().envs["A"], half);
        let failed = plan(&[("ENV", same), ("ENV", &["B", "$A"])]).unwrap_err();
        assert_eq!(failed.step, "2");
        assert!(
            failed.message.contains("the variables have"),
            "{}",
            failed.message
        );
        let inherited = BTreeMap::from([("A".to_owned(), half.repeat(2))]);
        let failed = BuildPlan::new(&[], inherited, HOME.to_owned()).unwrap_err();
        assert_eq!(failed.step, "base");
    }

    #[test]
    fn words_that_are_arguments_need_no_root() {
        plan(&[(
            "RUN",
            &["pip install apt; echo sudo | grep su; (cd x && ls mount)"],
        )])
        .unwrap();
    }
}
