//! The results of a program, as a face showed them.

use crate::program::ProgramResult;

/// Counts of what a face showed, and the text that its reader sees.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaceSummary {
    /// Pictures that are charts.
    pub(crate) charts: usize,
    /// Names of files that the code wrote.
    pub(crate) files: Vec<String>,
    /// Everything that a reader sees as text.
    pub(crate) text: String,
    /// The type of the exception that the face names, if it has a place for it.
    pub(crate) exception: Option<String>,
}

impl FaceSummary {
    /// Says what is different from what was expected.
    pub(crate) fn compare(&self, expected: &ProgramResult) -> Result<(), String> {
        let (charts, saved) = match expected {
            ProgramResult::Chart { saved } => (1, *saved),
            ProgramResult::Table(_) | ProgramResult::Exception(_) => (0, false),
        };
        if self.charts != charts {
            return Err(format!(
                "{} charts were shown, not {charts}: {self:?}",
                self.charts
            ));
        }
        let is_saved = self.files.iter().any(|it| it.ends_with("saved.png"));
        if is_saved != saved {
            return Err(format!(
                "the file that the code saves: {is_saved}, not {saved}: {self:?}"
            ));
        }
        match expected {
            ProgramResult::Chart { .. } if self.exception.is_some() => Err(format!("an exception: {self:?}")),
            ProgramResult::Table(column) if self.text.matches(column).count() != 1 => {
                Err(format!("the column `{column}` is not shown once: {self:?}"))
            }
            ProgramResult::Exception(kind) if self.exception.as_deref() != Some(kind) => {
                Err(format!("the exception is not {kind}: {self:?}"))
            }
            ProgramResult::Exception(kind) if !self.text.contains(kind) => {
                Err(format!("the text lacks {kind}: {self:?}"))
            }
            _ => Ok(()),
        }
    }
}

/// The type of the exception in the last line of a traceback.
pub(crate) fn raised(text: &str) -> Option<String> {
    let line = text.lines().rfind(|it| it.contains("Error: "))?;
    Some(line.split_once(": ")?.0.to_owned())
}
