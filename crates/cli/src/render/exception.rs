//! Draws an exception: the user's own line first, with what was raised there.

use std::fmt::Write as _;

use cellblock_interpreter::output::{Exception, ExceptionFrame};
use unicode_width::UnicodeWidthStr;

use super::{BAD, FAINT, styled};
use crate::sanitize;

/// Callers that are shown; of a deep recursion the outermost.
const CALLERS: usize = 8;

/// Draws an exception.
///
/// ```text
/// ZeroDivisionError: division by zero
///   --> report.py:12, in share
///    |
/// 12 | return part / whole
///    | ^^^^^^^^^^^^^^^^^^^
///   called from report.py:20: share(3, 0)
/// ```
pub(crate) fn draw(exception: &Exception) -> String {
    let mut drawn = styled(BAD, &sanitize::line(&exception.exception));
    if !exception.message.is_empty() {
        let _ = write!(drawn, ": {}", sanitize::text(&exception.message).trim_end());
    }
    drawn.push_str(&sanitize::line(suggestion(exception)));
    match exception.frames.split_last() {
        Some((raised, callers)) => {
            draw_source(raised, &mut drawn);
            draw_callers(callers, &mut drawn);
        }
        // A syntax error has no frames; its traceback is the marked line.
        None => draw_traceback(exception, &mut drawn),
    }
    for note in &exception.notes {
        let _ = write!(drawn, "\n{}", sanitize::text(note).trim_end());
    }
    drawn
}

/// What Python adds to the message where it prints the exception, such as `. Did you mean: 'print'?`.
fn suggestion(exception: &Exception) -> &str {
    let head = format!("{}: {}", exception.exception, exception.message);
    let added = exception
        .traceback
        .rsplit_once(head.as_str())
        .map(|(_, after)| after);
    let added = added.and_then(|after| after.lines().next()).unwrap_or_default();
    // Another message that begins alike is none.
    if added.starts_with(". ") { added } else { "" }
}

fn draw_source(frame: &ExceptionFrame, into: &mut String) {
    let number = frame.line.map(|line| line.to_string()).unwrap_or_default();
    let gutter = " ".repeat(number.len());
    let function = match &frame.function {
        Some(function) if !function.starts_with('<') => format!(", in {}", sanitize::line(function)),
        _ => String::new(),
    };
    let _ = write!(
        into,
        "\n{gutter} {} {}{function}",
        styled(FAINT, "-->"),
        place(frame)
    );
    let source = frame.source.as_deref().map(str::trim).unwrap_or_default();
    if !source.is_empty() {
        let source = sanitize::line(source);
        let bar = styled(FAINT, "|");
        let carets = styled(BAD, &"^".repeat(source.width()));
        let _ = write!(
            into,
            "\n{gutter} {bar}\n{number} {bar} {source}\n{gutter} {bar} {carets}"
        );
    }
}

fn draw_callers(callers: &[ExceptionFrame], into: &mut String) {
    for frame in callers.iter().rev().take(CALLERS) {
        let source = frame.source.as_deref().map(str::trim).unwrap_or_default();
        let line = format!("  called from {}: {}", place(frame), sanitize::line(source));
        let _ = write!(into, "\n{}", styled(FAINT, &line));
    }
    if callers.len() > CALLERS {
        let line = format!("  … {} more callers", callers.len() - CALLERS);
        let _ = write!(into, "\n{}", styled(FAINT, &line));
    }
}

fn place(frame: &ExceptionFrame) -> String {
    let file = sanitize::line(&frame.file);
    match frame.line {
        Some(line) => format!("{file}:{line}"),
        None => file,
    }
}

/// All of a traceback but its last line, which is the head already.
fn draw_traceback(exception: &Exception, into: &mut String) {
    let traceback = sanitize::text(&exception.traceback);
    let lines: Vec<_> = traceback.trim_end().lines().collect();
    let keep = lines
        .len()
        .saturating_sub(usize::from(!exception.message.is_empty()));
    for line in &lines[..keep] {
        let _ = write!(into, "\n{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(line: u32, function: &str, source: &str) -> ExceptionFrame {
        ExceptionFrame {
            file: "report.py".into(),
            line: Some(line),
            function: Some(function.into()),
            source: Some(source.into()),
        }
    }

    fn exception(frames: Vec<ExceptionFrame>) -> Exception {
        Exception {
            exception: "ZeroDivisionError".into(),
            message: "division by zero".into(),
            traceback: String::new(),
            line: frames.last().and_then(|frame| frame.line),
            frames,
            notes: vec!["the whole is empty".into()],
            truncated: false,
        }
    }

    fn plain(exception: &Exception) -> String {
        anstream::adapter::strip_str(&draw(exception)).to_string()
    }

    #[test]
    fn the_raising_line_is_shown_before_its_callers() {
        let frames = vec![
            frame(20, "<module>", "share(3, 0)"),
            frame(12, "share", "    return part / whole"),
        ];
        insta::assert_snapshot!(plain(&exception(frames)), @r"
        ZeroDivisionError: division by zero
           --> report.py:12, in share
           |
        12 | return part / whole
           | ^^^^^^^^^^^^^^^^^^^
          called from report.py:20: share(3, 0)
        the whole is empty
        ");
    }

    #[test]
    fn a_syntax_error_shows_the_marked_line_of_its_traceback() {
        let mut error = exception(Vec::new());
        error.exception = "SyntaxError".into();
        error.message = "'(' was never closed".into();
        error.notes.clear();
        error.traceback =
            "  File \"report.py\", line 3\n    print(1\n         ^\nSyntaxError: '(' was never closed\n"
                .into();
        insta::assert_snapshot!(plain(&error), @r#"
        SyntaxError: '(' was never closed
          File "report.py", line 3
            print(1
                 ^
        "#);
    }

    #[test]
    fn suggestions_of_python_are_shown_with_the_message() {
        let mut error = exception(vec![frame(1, "<module>", "prnt(1)")]);
        error.exception = "NameError".into();
        error.message = "name 'prnt' is not defined".into();
        error.notes.clear();
        error.traceback = "Traceback (most recent call last):\n  File \"report.py\", line 1, in <module>\n    prnt(1)\n    ^^^^\n\
                           NameError: name 'prnt' is not defined. Did you mean: 'print'?\n"
            .into();
        insta::assert_snapshot!(plain(&error), @r"
        NameError: name 'prnt' is not defined. Did you mean: 'print'?
          --> report.py:1
          |
        1 | prnt(1)
          | ^^^^^^^
        ");
        error.traceback = "NameError: name 'prnt' is not defined\n".into();
        assert!(plain(&error).starts_with("NameError: name 'prnt' is not defined\n"));
    }

    #[test]
    fn deep_recursion_is_cut() {
        let frames = vec![frame(1, "f", "f()"); 50];
        assert!(plain(&exception(frames)).contains("… 41 more callers"));
    }

    #[test]
    fn nothing_of_an_exception_reaches_a_terminal_raw() {
        let mut error = exception(vec![frame(1, "f\x1b[2J", "x = '\u{202e}'\x07")]);
        error.message = "\x1b]0;title\x07".into();
        error.exception = "E\r".into();
        error.notes = vec!["\u{9b}A".into()];
        assert!(
            !plain(&error)
                .chars()
                .any(|c| c != '\n' && cellblock_interpreter::text::acts(c)),
            "{error:?}"
        );
    }
}
