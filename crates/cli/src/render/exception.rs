//! Draws an exception: its causes as Python prints them, then the user's own line with what was
//! raised there, and then members of a group.

use std::fmt::Write as _;
use std::ops::Range;

use cellblock_interpreter::output::{Exception, ExceptionFrame};
use unicode_width::UnicodeWidthStr;

use super::table::counted;
use super::{BAD, FAINT, styled};
use crate::sanitize;

/// Callers that are shown; of a deep recursion the outermost.
const CALLERS: usize = 8;
/// Lines with which the kernel, as Python, joins an exception to the one before it.
const JOINTS: [&str; 2] = [
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
];
/// Beginning of the line before the first member of a group.
const FIRST_MEMBER: &str = "  ---- 1 of ";

/// Parts of a traceback.
struct TracebackParts<'a> {
    /// The exceptions before it, with the line that joins the last of them.
    chain: &'a str,
    /// The exception itself.
    own: &'a str,
    /// Members of a group.
    members: &'a str,
}

impl<'a> TracebackParts<'a> {
    fn of(exception: &'a Exception) -> Self {
        let whole = exception.traceback.as_str();
        let is_joint = |line: &str| JOINTS.contains(&line.trim_end_matches('\n'));
        // Members of members are indented further. Before a joint, it is an earlier exception that has them.
        let members_at = last_line(whole, |line| line.starts_with(FIRST_MEMBER))
            .map(|line| line.start)
            .filter(|at| last_line(&whole[*at..], is_joint).is_none())
            .unwrap_or(whole.len());
        let (before, members) = whole.split_at(members_at);
        // The message may repeat the traceback of another process, so the chain ends before it.
        let head_at = before.rfind(&head(exception)).unwrap_or(before.len());
        let own_at = last_line(&before[..head_at], is_joint).map_or(0, |line| line.end);
        let (chain, own) = before.split_at(own_at);
        Self {
            chain,
            own: own.trim_start_matches('\n'),
            members,
        }
    }
}

/// The line in which Python says what was raised.
fn head(exception: &Exception) -> String {
    match exception.message.as_str() {
        "" => exception.exception.clone(),
        message => format!("{}: {message}", exception.exception),
    }
}

/// Returns the place of the last line of this kind.
fn last_line(text: &str, is_it: impl Fn(&str) -> bool) -> Option<Range<usize>> {
    let (mut end, mut last) = (0, None);
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        if is_it(line) {
            last = Some(start..end);
        }
    }
    last
}

/// Draws an exception.
///
/// ```text
/// Traceback (most recent call last):
///   File "report.py", line 10, in share
///     return known[part]
/// KeyError: 3
///
/// During handling of the above exception, another exception occurred:
///
/// ZeroDivisionError: division by zero
///   --> report.py:12, in share
///    |
/// 12 | return part / whole
///    | ^^^^^^^^^^^^^^^^^^^
///   called from report.py:20: share(3, 0)
/// ```
pub(crate) fn draw(exception: &Exception) -> String {
    let parts = TracebackParts::of(exception);
    let mut drawn = String::new();
    if !parts.chain.is_empty() {
        let _ = write!(drawn, "{}\n\n", sanitize::text(parts.chain).trim_end());
    }
    drawn.push_str(&styled(BAD, &sanitize::line(&exception.exception)));
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
        None => draw_traceback(exception, parts.own, &mut drawn),
    }
    for note in &exception.notes {
        let _ = write!(drawn, "\n{}", sanitize::text(note).trim_end());
    }
    // Notes of the kernel stand after the members.
    for line in parts.members.lines().take_while(|line| line.starts_with("  ")) {
        let _ = write!(drawn, "\n{}", sanitize::text(line).trim_end());
    }
    drawn
}

/// Returns the text that Python adds to the message of a printed exception, such as `. Did you mean:
/// 'print'?`.
fn suggestion(exception: &Exception) -> &str {
    let head = format!("{}: {}", exception.exception, exception.message);
    let added = TracebackParts::of(exception)
        .own
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
        let line = format!("  … {}", counted(callers.len() - CALLERS, "more caller"));
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
fn draw_traceback(exception: &Exception, traceback: &str, into: &mut String) {
    let traceback = sanitize::text(traceback);
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
    fn causes_are_shown_before_the_exception() {
        let frames = vec![frame(4, "<module>", "raise ValueError('no share') from error")];
        let mut error = exception(frames);
        error.exception = "ValueError".into();
        error.message = "no share".into();
        error.notes.clear();
        error.traceback = "Traceback (most recent call last):\n  File \"report.py\", line 2, in \
                           <module>\n    1 / 0\n    ~~^~~\n\
                           ZeroDivisionError: division by zero\n\
                           \nThe above exception was the direct cause of the following exception:\n\n\
                           Traceback (most recent call last):\n  File \"report.py\", line 4, in \
                           <module>\n    raise ValueError('no share') from error\nValueError: no share\n"
            .into();
        insta::assert_snapshot!(plain(&error), @r#"
        Traceback (most recent call last):
          File "report.py", line 2, in <module>
            1 / 0
            ~~^~~
        ZeroDivisionError: division by zero

        The above exception was the direct cause of the following exception:

        ValueError: no share
          --> report.py:4
          |
        4 | raise ValueError('no share') from error
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#);
    }

    #[test]
    fn a_message_that_repeats_a_traceback_is_not_a_cause() {
        let mut error = exception(vec![frame(1, "<module>", "run()")]);
        error.exception = "RuntimeError".into();
        error.message = format!("a worker failed:\n{}\nKeyError: 1", JOINTS[0]);
        error.notes.clear();
        error.traceback = format!(
            "Traceback (most recent call last):\n  File \"report.py\", line 1, in <module>\n    run()\n{}\n",
            head(&error)
        );
        assert!(plain(&error).starts_with("RuntimeError: a worker failed:\n"));
        assert_eq!(plain(&error).matches(JOINTS[0]).count(), 1);
    }

    #[test]
    fn members_of_a_group_are_shown_after_it() {
        let mut error = exception(vec![frame(1, "<module>", "raise group")]);
        error.exception = "ExceptionGroup".into();
        error.message = "several (2 sub-exceptions)".into();
        error.notes.clear();
        error.traceback = "Traceback (most recent call last):\n  File \"report.py\", line 1, in \
                           <module>\n    raise group\n\
                           ExceptionGroup: several (2 sub-exceptions)\n\
                           \x20 ---- 1 of 2 ----\n\x20 ValueError: one\n\
                           \x20 ---- 2 of 2 ----\n\x20 TypeError: two\nnote: a hint\n"
            .into();
        insta::assert_snapshot!(plain(&error), @r"
        ExceptionGroup: several (2 sub-exceptions)
          --> report.py:1
          |
        1 | raise group
          | ^^^^^^^^^^^
          ---- 1 of 2 ----
          ValueError: one
          ---- 2 of 2 ----
          TypeError: two
        ");
    }

    #[test]
    fn suggestions_of_python_are_shown_with_the_message() {
        let mut error = exception(vec![frame(1, "<module>", "prnt(1)")]);
        error.exception = "NameError".into();
        error.message = "name 'prnt' is not defined".into();
        error.notes.clear();
        error.traceback = "Traceback (most recent call last):\n  File \"report.py\", line 1, in \
                           <module>\n    prnt(1)\n    ^^^^\n\
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
