//! Cells that a session runs.

use std::time::Duration;

use cellblock_protocol::json_size;
pub use cellblock_protocol::{CellMode, Guard, Language, Rescue};

use crate::connector::IntendedWrite;
use crate::error::{Error, Result};

/// Maximum size of code with its name and arguments, in bytes as JSON: the kernel reads all of it at once.
pub const MAX_CODE: usize = 3 << 20;

/// One piece of code, and how to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own, of which any may be set"
)]
pub struct Cell {
    /// The code.
    pub code: String,
    /// The file name that tracebacks show; by default `<cell N>`.
    pub name: Option<String>,
    /// The number of the code's first line in that file.
    pub line: u32,
    /// The language of the code. Only Python can be an expression or a dry run, and be called with
    /// aliases; a session with a guard runs nothing else.
    pub language: Language,
    /// The arguments that the code finds, as in `sys.argv`, beginning with the script's name; if
    /// empty, the name of its file alone.
    pub argv: Vec<String>,
    /// Statements, or one expression.
    pub mode: CellMode,
    /// Whether the value of a trailing expression is displayed.
    pub echo: bool,
    /// Whether names that it binds are kept.
    pub store: bool,
    /// Maximum time; by default the session's limit.
    pub timeout: Option<Duration>,
    /// Additional packages, as requirement strings.
    pub requirements: Vec<String>,
    /// Whether new and changed files of the sandbox are collected afterwards.
    pub collect_files: bool,
    /// Producer of what it makes; see [`Cell::produced_by`].
    pub producer: Option<String>,
    /// Whether it is only checked: its syntax, what the guard says of it, and the functions of
    /// connectors that it names. The session stays as it is, and the execution's number is 0.
    pub dry_run: bool,
    /// Whether the session ends with it, so that `atexit` handlers run at its end.
    pub last: bool,
    /// Calls that change something and that were approved: it makes no others. `None` if nobody was
    /// asked.
    pub approved: Option<Vec<IntendedWrite>>,
}

impl Cell {
    /// A cell of statements whose last expression is displayed.
    pub fn new(code: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            name: None,
            line: 1,
            language: Language::Python,
            argv: Vec::new(),
            mode: CellMode::Exec,
            echo: true,
            store: true,
            timeout: None,
            requirements: Vec::new(),
            collect_files: true,
            producer: None,
            dry_run: false,
            last: false,
            approved: None,
        }
    }

    /// Sets its language.
    #[must_use]
    pub const fn in_language(mut self, language: Language) -> Self {
        self.language = language;
        self
    }

    /// One expression, whose value is the only output.
    pub fn expression(code: impl Into<String>) -> Self {
        Self {
            mode: CellMode::Eval,
            collect_files: false,
            ..Self::new(code)
        }
    }

    /// Fails for code that is too large, and for a combination that no kernel serves.
    pub(crate) fn check(&self) -> Result<()> {
        let texts = self.name.iter().chain([&self.code]).chain(&self.argv);
        check_size("code", texts.map(String::as_str))?;
        let asked = match self {
            Self {
                language: Language::Python,
                ..
            } => return Ok(()),
            Self { dry_run: true, .. } => "a dry run",
            Self {
                mode: CellMode::Eval, ..
            } => "an expression",
            _ => return Ok(()),
        };
        Err(Error::Argument {
            name: "language",
            missing: false,
            reason: format!(
                "{asked} has to be Python, not `{}`; run the code as a cell",
                self.language.name()
            ),
        })
    }

    /// Names the file that the code comes from, and the line on which it begins there.
    #[must_use]
    pub fn from_file(mut self, name: impl Into<String>, line: u32) -> Self {
        self.name = Some(name.into());
        self.line = line;
        self
    }

    /// Gives it arguments, beginning with the script's name.
    #[must_use]
    pub fn with_argv(mut self, argv: Vec<String>) -> Self {
        self.argv = argv;
        self
    }

    /// Bounds its time.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Attributes the variables that it makes to a producer, such as the path of a notebook. See
    /// [`lineage`](crate::lineage).
    #[must_use]
    pub fn produced_by(mut self, producer: impl Into<String>) -> Self {
        self.producer = Some(producer.into());
        self
    }

    /// Asks for packages.
    #[must_use]
    pub fn with_requirements<S: Into<String>>(mut self, requirements: impl IntoIterator<Item = S>) -> Self {
        self.requirements = requirements.into_iter().map(Into::into).collect();
        self
    }
}

impl<S: Into<String>> From<S> for Cell {
    fn from(code: S) -> Self {
        Self::new(code)
    }
}

/// Fails for an argument whose texts are larger than code may be.
///
/// # Errors
///
/// Returns [`Error::Argument`] with the size and the limit.
pub fn check_size<'a>(name: &'static str, texts: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let sizes: serde_json::Result<usize> = texts.into_iter().map(json_size).sum();
    // Every text can be written as JSON.
    let size = sizes.unwrap_or(usize::MAX);
    if size <= MAX_CODE {
        return Ok(());
    }
    let reason = format!(
        "it has {size} bytes as JSON, the limit is {MAX_CODE}; put data into a file or an input, and read it"
    );
    Err(Error::Argument {
        name,
        missing: false,
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_the_kernel_cannot_read_is_refused() {
        let largest = Cell::new("1".repeat(MAX_CODE - 2));
        largest.check().unwrap();
        let error = largest.with_argv(vec![String::new()]).check().unwrap_err();
        assert!(
            error.to_string().starts_with("`code`: it has 3145730 bytes"),
            "{error}"
        );
        assert!(Cell::new("\n".repeat(MAX_CODE / 2)).check().is_err());
    }
}
