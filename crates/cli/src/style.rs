//! Styles of text on a terminal.

use anstyle::{AnsiColor, Style};

/// Style of text to notice first.
pub(crate) const STRONG: Style = Style::new().bold();
/// Style of details in the background.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// The error.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Style of notes.
pub(crate) const NOTE: Style = AnsiColor::Yellow.on_default().bold();
/// Style of success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();

/// Text in a style; where colour is not wanted the writer takes the style out.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
