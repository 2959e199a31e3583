//! Splits a script into cells at its `# %%` lines, as notebook-minded editors do.

/// A part of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptPart {
    /// Its code, with the marker line as its first, which is a comment.
    pub(crate) code: String,
    /// The number of its first line in the script, from 1.
    pub(crate) line: u32,
}

/// Splits a script. Parts without code are left out, but there is always one.
///
/// A marker is a line that begins with `# %%` or `#%%`. Windows line ends and a byte order mark are
/// taken out; lines keep their numbers.
pub(crate) fn split(script: &str) -> Vec<ScriptPart> {
    let script = script
        .strip_prefix('\u{feff}')
        .unwrap_or(script)
        .replace("\r\n", "\n");
    let mut parts = vec![ScriptPart {
        code: String::new(),
        line: 1,
    }];
    for (line, number) in script.split_inclusive('\n').zip(1..) {
        if is_marker(line) {
            parts.push(ScriptPart {
                code: String::new(),
                line: number,
            });
        }
        if let Some(part) = parts.last_mut() {
            part.code.push_str(line);
        }
    }
    if parts.iter().any(ScriptPart::has_code) {
        parts.retain(ScriptPart::has_code);
    } else {
        parts = vec![ScriptPart {
            code: script,
            line: 1,
        }];
    }
    parts
}

fn is_marker(line: &str) -> bool {
    let Some(rest) = line.strip_prefix('#') else {
        return false;
    };
    let Some(title) = rest.trim_start_matches(' ').strip_prefix("%%") else {
        return false;
    };
    // `#%%time` is a comment about a notebook's magic, not a marker.
    title.is_empty() || title.starts_with(char::is_whitespace)
}

/// Returns whether code is one triple-quoted string, which describes a script and is not a value to
/// display.
fn is_docstring(code: &str) -> bool {
    let code = code.trim();
    ["\"\"\"", "'''"].iter().any(|quotes| {
        let text = code
            .strip_prefix(quotes)
            .and_then(|rest| rest.strip_suffix(quotes));
        text.is_some_and(|text| !text.contains(quotes))
    })
}

impl ScriptPart {
    fn has_code(&self) -> bool {
        let is_code = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
        let code: Vec<_> = self.code.lines().filter(is_code).collect();
        let is_description = self.line == 1 && is_docstring(&code.join("\n"));
        !(code.is_empty() || is_description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_and_codes(script: &str) -> Vec<(u32, String)> {
        split(script)
            .into_iter()
            .map(|part| (part.line, part.code))
            .collect()
    }

    #[test]
    fn a_script_without_markers_is_one_cell() {
        assert_eq!(lines_and_codes("x = 1\nx\n"), [(1, "x = 1\nx\n".into())]);
    }

    #[test]
    fn each_marker_begins_a_cell_and_lines_keep_their_numbers() {
        let script = "import math\n\n# %% area\nr = 2\n#%%\nmath.pi * r";
        assert_eq!(
            lines_and_codes(script),
            [
                (1, "import math\n\n".into()),
                (3, "# %% area\nr = 2\n".into()),
                (5, "#%%\nmath.pi * r".into()),
            ]
        );
    }

    #[test]
    fn leading_comments_are_not_a_cell() {
        let script = "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# %%\nx = 1\n# %% empty\n\n";
        assert_eq!(lines_and_codes(script), [(3, "# %%\nx = 1\n".into())]);
    }

    #[test]
    fn the_docstring_of_a_script_is_not_a_cell() {
        let script = "#!/usr/bin/env python\n\"\"\"What\n\nit does.\n\"\"\"\n\n# %%\nx = 1\n";
        assert_eq!(lines_and_codes(script), [(7, "# %%\nx = 1\n".into())]);
        let two = "\"\"\"a\"\"\"; x = \"\"\"b\"\"\"\n# %%\nx\n";
        assert_eq!(lines_and_codes(two).len(), 2);
    }

    #[test]
    fn windows_line_ends_and_a_byte_order_mark_do_not_move_lines() {
        assert_eq!(
            lines_and_codes("\u{feff}x = 1\r\n# %%\r\ny = 2\r\n"),
            [(1, "x = 1\n".into()), (2, "# %%\ny = 2\n".into())]
        );
    }

    #[test]
    fn indented_and_similar_comments_are_not_markers() {
        let script = "if True:\n    # %% no\n    x = 1\n#%%time\n# 5 %% 2\n## %%\n";
        assert_eq!(lines_and_codes(script).len(), 1);
    }

    #[test]
    fn an_empty_script_is_one_empty_cell() {
        assert_eq!(lines_and_codes(""), [(1, String::new())]);
        assert_eq!(
            lines_and_codes("# %%\n# nothing\n"),
            [(1, "# %%\n# nothing\n".into())]
        );
    }
}
