//! A statement with parameters `:name`, which become the database's own placeholders. Values are
//! never spliced.

use std::fmt::Write as _;

use super::target::Dialect;

/// A statement as it was written, up to its `;`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    dialect: Dialect,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Parameter(String),
}

/// A statement as the database prepares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StatementText {
    pub(super) sql: String,
    /// The parameter of each placeholder.
    pub(super) placeholders: Vec<String>,
}

impl Statement {
    /// Finds the parameters, and that there is one statement. The database checks this again, by
    /// its own rules.
    pub(super) fn new(text: &str, dialect: Dialect) -> Result<Self, String> {
        let mut scan = Scan { text, dialect, at: 0 };
        let mut pieces = Vec::new();
        let (mut start, mut end) = (0, text.len());
        while let Some(found) = scan.next_found()? {
            match found {
                ScanMatch::Parameter(from) => {
                    pieces.push(Piece::Text(text[start..from].to_owned()));
                    pieces.push(Piece::Parameter(text[from + 1..scan.at].to_owned()));
                    start = scan.at;
                }
                ScanMatch::End(at) => {
                    if !scan.only_comments_follow() {
                        return Err(
                            "has two statements; a call runs one, without a `;` before another".to_owned(),
                        );
                    }
                    end = at;
                    break;
                }
            }
        }
        pieces.push(Piece::Text(text[start..end].to_owned()));
        let statement = Self { dialect, pieces };
        let empty = |piece: &Piece| matches!(piece, Piece::Text(text) if text.trim().is_empty());
        if statement.pieces.iter().all(empty) {
            return Err("is empty; write a statement such as `select …`".to_owned());
        }
        Ok(statement)
    }

    /// Returns the names of its parameters, without repetition.
    pub(super) fn parameters(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for piece in &self.pieces {
            if let Piece::Parameter(name) = piece
                && !names.contains(&name.as_str())
            {
                names.push(name.as_str());
            }
        }
        names
    }

    /// Returns what the database prepares.
    pub(super) fn rendered(&self) -> StatementText {
        let names = self.parameters();
        let (mut sql, mut placeholders) = (String::new(), Vec::new());
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => sql += text,
                Piece::Parameter(name) => {
                    let number = names.iter().position(|it| it == name).unwrap_or_default() + 1;
                    // Writing to a string cannot fail.
                    let _ = match self.dialect {
                        Dialect::Sqlite => write!(sql, ":{name}"),
                        Dialect::Postgres => write!(sql, "${number}"),
                        Dialect::Mysql => write!(sql, "?"),
                    };
                    if self.dialect == Dialect::Mysql {
                        placeholders.push(name.clone());
                    }
                }
            }
        }
        if self.dialect != Dialect::Mysql {
            placeholders = names.into_iter().map(str::to_owned).collect();
        }
        StatementText { sql, placeholders }
    }
}

enum ScanMatch {
    /// A parameter that begins here, and ends at the scan's place.
    Parameter(usize),
    /// A `;`.
    End(usize),
}

/// Reads a statement without its quotes and comments.
struct Scan<'a> {
    text: &'a str,
    dialect: Dialect,
    at: usize,
}

impl Scan<'_> {
    fn next_found(&mut self) -> Result<Option<ScanMatch>, String> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            let from = self.at;
            if self.skips_comment() {
                continue;
            }
            self.at += 1;
            match byte {
                b'\'' => self.quoted(b'\'', self.has_backslashes(from)),
                b'"' => self.quoted(b'"', self.dialect == Dialect::Mysql),
                b'`' if self.dialect != Dialect::Postgres => self.quoted(b'`', false),
                b'[' if self.dialect == Dialect::Sqlite => self.to("]"),
                b'$' if self.dialect == Dialect::Postgres => self.dollar_quoted(from),
                b'?' if self.dialect == Dialect::Mysql => {
                    return Err("has a `?`; write a parameter as `:name`".to_owned());
                }
                b';' => return Ok(Some(ScanMatch::End(from))),
                b':' if bytes.get(self.at) == Some(&b':') => self.at += 1,
                b':' if self.begins_parameter(from) => {
                    let name = self.text[self.at..].find(|letter: char| !is_word(letter));
                    self.at = name.map_or(self.text.len(), |length| self.at + length);
                    return Ok(Some(ScanMatch::Parameter(from)));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn only_comments_follow(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if self.skips_comment() {
                continue;
            }
            if !byte.is_ascii_whitespace() && *byte != b';' {
                return false;
            }
            self.at += 1;
        }
        true
    }

    fn before(&self, at: usize) -> Option<char> {
        self.text[..at].chars().next_back()
    }

    /// A `:` after a word or a bracket is that of a slice, such as `days[1:last]`.
    fn begins_parameter(&self, from: usize) -> bool {
        let after = self.text[self.at..].chars().next();
        let before = self.before(from);
        after.is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_')
            && !before.is_some_and(|letter| is_word(letter) || matches!(letter, ')' | ']'))
    }

    /// Whether a text that begins here has escapes with `\`.
    fn has_backslashes(&self, from: usize) -> bool {
        match self.dialect {
            Dialect::Sqlite => false,
            Dialect::Mysql => true,
            Dialect::Postgres => {
                let before = self.text[..from].strip_suffix(['e', 'E']);
                before.is_some_and(|before| !before.ends_with(is_word))
            }
        }
    }

    /// Goes on after a quoted text. A doubled quote is two such texts.
    fn quoted(&mut self, quote: u8, backslashes: bool) {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            if *byte == quote {
                return;
            }
            if *byte == b'\\' && backslashes {
                self.at += 1;
            }
        }
        self.at = self.text.len();
    }

    /// Goes on after the next such text.
    fn to(&mut self, end: &str) {
        let found = self.text.get(self.at..).and_then(|rest| rest.find(end));
        self.at = found.map_or(self.text.len(), |length| self.at + length + end.len());
    }

    /// Goes on after a text such as `$tag$…$tag$`, if one begins here.
    fn dollar_quoted(&mut self, from: usize) {
        let Some(length) = self.text[self.at..].find('$') else {
            return;
        };
        let tag = &self.text[self.at..self.at + length];
        let is_tag = tag.chars().all(is_word) && !tag.starts_with(|letter: char| letter.is_ascii_digit());
        if !is_tag || self.before(from).is_some_and(is_word) {
            return;
        }
        let end = self.text[from..=self.at + length].to_owned();
        self.at += length + 1;
        self.to(&end);
    }

    /// Goes on after a comment, if one begins here.
    fn skips_comment(&mut self) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        let line = match rest {
            [b'#', ..] => self.dialect == Dialect::Mysql,
            // To MySQL, `--1` is a number.
            [b'-', b'-', after, ..] => self.dialect != Dialect::Mysql || after.is_ascii_whitespace(),
            [b'-', b'-'] => true,
            _ => false,
        };
        if line {
            self.to("\n");
            return true;
        }
        if !rest.starts_with(b"/*") {
            return false;
        }
        self.at += 2;
        let mut depth = 1;
        while depth > 0 && self.at < self.text.len() {
            let rest = &self.text.as_bytes()[self.at..];
            if rest.starts_with(b"*/") {
                depth -= 1;
                self.at += 2;
            } else if rest.starts_with(b"/*") && self.dialect == Dialect::Postgres {
                depth += 1;
                self.at += 2;
            } else {
                self.at += 1;
            }
        }
        true
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str, dialect: Dialect) -> (String, Vec<String>) {
        let rendered = Statement::new(text, dialect).unwrap().rendered();
        (rendered.sql, rendered.placeholders)
    }

    #[test]
    fn parameters_are_found_outside_quotes_comments_and_casts() {
        let text = "select ':a', \":b\", :c::date, '', 'it''s :d', $$:e$$, $x$ :f $$ $x$, E'\\':g', \
                    days[1:last] -- :h\n\
                    /* :i /* :j */ :k */ from t where x=:l and y in (:c, :m_1); -- the end\n ";
        let (sql, names) = rendered(text, Dialect::Postgres);
        assert_eq!(names, ["c", "l", "m_1"]);
        assert!(
            sql.contains("$1::date") && sql.contains("x=$2 and y in ($1, $3)"),
            "{sql}"
        );
        assert!(sql.contains("$x$ :f $$ $x$") && !sql.contains(';'), "{sql}");

        let text = "select ':a\\':b', \":c\\\"\", `:d`, :e, 1--1, :e # :f\n, 2 -- :g\n /* :h /* */ , :i";
        let (sql, names) = rendered(text, Dialect::Mysql);
        assert_eq!(names, ["e", "e", "i"]);
        assert_eq!(sql.matches('?').count(), 3);

        let (sql, names) = rendered("select [:a], \":b\", ':c\\', :d, `:e` --:f", Dialect::Sqlite);
        assert_eq!(names, ["d"]);
        assert!(sql.contains("':c\\', :d"));
    }

    #[test]
    fn two_statements_and_none_are_rejected() {
        for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::Mysql] {
            for text in ["select 1; select 2", "select ';'; -- a\n drop table t"] {
                let error = Statement::new(text, dialect).unwrap_err();
                assert!(error.contains("two statements"), "{error}");
            }
            for text in ["", " ; ", "\n"] {
                assert!(
                    Statement::new(text, dialect).unwrap_err().contains("empty"),
                    "{text}"
                );
            }
            for text in ["select ';'", "select 1;", "select 1; ; /* ; */ -- ;"] {
                assert!(Statement::new(text, dialect).is_ok(), "{text}");
            }
        }
        assert!(
            Statement::new("select ?", Dialect::Mysql)
                .unwrap_err()
                .contains("`:name`")
        );
        // Nothing that is not closed makes the scan leave the text.
        for text in [
            "select '",
            "select 'a\\",
            "select $$",
            "/*",
            "select \"é",
            "select $é$",
            ":",
            "--",
        ] {
            for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::Mysql] {
                let _ = Statement::new(text, dialect);
            }
        }
    }
}
