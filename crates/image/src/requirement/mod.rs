//! One requirement of a cell: a name, extras, versions and a marker, and nothing that could lead
//! elsewhere.
//!
//! This is PEP 508 without its URLs. Options, paths and editable installs are not part of it, so
//! that a string that parses can be written into a requirements file without changing what uv does.

mod marker;
mod scan;

use std::fmt;
use std::str::FromStr;

use scan::Scan;

/// Maximum length of a requirement.
const LONGEST: usize = 512;

/// A requirement in its canonical form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    name: String,
    extras: Vec<String>,
    versions: Vec<String>,
    marker: Option<String>,
}

/// An invalid requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{requirement}` is not a usable requirement: {problem}. Write a package name, optionally with extras \
     and versions, such as `rich` or `networkx>=3.2,<4`"
)]
pub struct RequirementError {
    requirement: String,
    problem: String,
}

impl RequirementError {
    fn new(text: &str, problem: impl Into<String>) -> Self {
        let mut shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
        if text.chars().nth(80).is_some() {
            shown.push('…');
        }
        Self {
            requirement: shown,
            problem: problem.into(),
        }
    }
}

impl Requirement {
    /// Returns the distribution's normalized name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.extras.is_empty() {
            write!(f, "[{}]", self.extras.join(","))?;
        }
        f.write_str(&self.versions.join(","))?;
        self.marker.as_ref().map_or(Ok(()), |it| write!(f, " ; {it}"))
    }
}

impl FromStr for Requirement {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<Self, RequirementError> {
        let wrong = |problem: String| RequirementError::new(text, problem);
        if text.len() > LONGEST {
            return Err(wrong(format!(
                "it has {} bytes, the limit is {LONGEST}",
                text.len()
            )));
        }
        if let Some(bad) = text.chars().find(|c| !matches!(c, ' '..='~')) {
            return Err(wrong(format!(
                "it contains the character {bad:?}; only printable ASCII is allowed"
            )));
        }
        let trimmed = text.trim();
        if trimmed.starts_with('-') {
            return Err(wrong("options of an installer are not allowed".to_owned()));
        }
        if trimmed.contains("://") || trimmed.contains('@') {
            return Err(wrong(
                "a URL is not allowed, packages come from the package index only".to_owned(),
            ));
        }
        if trimmed.starts_with(['.', '/', '~']) || trimmed.contains(['/', '\\']) {
            return Err(wrong(
                "a path is not allowed, packages come from the package index only".to_owned(),
            ));
        }
        let requirement = parse(trimmed).map_err(wrong)?;
        // Spaces are added around the comparisons of a marker.
        let written = requirement.to_string().len();
        if written > LONGEST {
            return Err(wrong(format!(
                "its canonical form has {written} bytes, the limit is {LONGEST}"
            )));
        }
        Ok(requirement)
    }
}

fn parse(text: &str) -> Result<Requirement, String> {
    let mut scan = Scan::new(text);
    let name = name(&mut scan).ok_or("it does not start with a package name")?;
    let mut extras = Vec::new();
    if scan.eat("[") {
        while !scan.eat("]") {
            if !extras.is_empty() && !scan.eat(",") {
                return Err("its extras are not separated by commas and closed by `]`".to_owned());
            }
            extras.push(self::name(&mut scan).ok_or("an extra is not a name")?);
        }
    }
    let parenthesised = scan.eat("(");
    let mut versions = Vec::new();
    while scan.peek().is_some_and(|it| it != ';' && it != ')') {
        if !versions.is_empty() && !scan.eat(",") {
            return Err(format!(
                "`{}` follows a version; separate versions by commas",
                scan.rest()
            ));
        }
        versions.push(version(&mut scan)?);
    }
    if parenthesised && !scan.eat(")") {
        return Err("it has an unclosed parenthesis".to_owned());
    }
    let marker = if scan.eat(";") {
        Some(marker::parse(&mut scan)?)
    } else {
        None
    };
    if scan.peek().is_some() {
        return Err(format!("unexpected `{}` at the end", scan.rest()));
    }
    extras.sort();
    extras.dedup();
    versions.sort();
    versions.dedup();
    Ok(Requirement {
        name,
        extras,
        versions,
        marker,
    })
}

/// Reads letters and digits, with dots, dashes and underscores between them.
fn name(scan: &mut Scan<'_>) -> Option<String> {
    let word = scan.take(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    (ends(word.chars().next()) && ends(word.chars().next_back())).then(|| normalise(word))
}

fn version(scan: &mut Scan<'_>) -> Result<String, String> {
    if scan.eat("===") {
        return Err("`===` is not allowed; use `==`".to_owned());
    }
    let operator = ["~=", "==", "!=", "<=", ">=", "<", ">"]
        .into_iter()
        .find(|it| scan.eat(it))
        .ok_or_else(|| format!("`{}` does not start with one of ~= == != <= >= < >", scan.rest()))?;
    let word = scan.take(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '!' | '*'));
    let plain = match operator {
        "==" | "!=" => word.strip_suffix(".*").unwrap_or(word),
        _ => word,
    };
    let first = plain.strip_prefix('v').unwrap_or(plain);
    let ends = plain
        .chars()
        .next_back()
        .is_some_and(|c| c.is_ascii_alphanumeric());
    if !first.starts_with(|c: char| c.is_ascii_digit()) || !ends || plain.contains('*') {
        return Err(format!("`{operator}{word}` is not a version to compare with"));
    }
    Ok(format!("{operator}{word}"))
}

/// The name by which the packaging world compares distributions.
pub(crate) fn normalise(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    for part in name.split(['-', '_', '.']).filter(|it| !it.is_empty()) {
        if !normal.is_empty() {
            normal.push('-');
        }
        normal.push_str(&part.to_ascii_lowercase());
    }
    normal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normal(text: &str) -> String {
        text.parse::<Requirement>()
            .map_or_else(|error| error.to_string(), |it| it.to_string())
    }

    #[test]
    fn requirements_have_one_canonical_form() {
        let cases = [
            ("six", "six"),
            ("  Typing_Extensions  ", "typing-extensions"),
            ("networkx >= 3.2 , <4", "networkx<4,>=3.2"),
            ("Flask[async, Dotenv]==3.0.*", "flask[async,dotenv]==3.0.*"),
            ("uvicorn[]", "uvicorn"),
            ("a (>=1.0,!=1.5)", "a!=1.5,>=1.0"),
            ("torch==2.1.0+cpu", "torch==2.1.0+cpu"),
            ("x~=1!2.0rc1", "x~=1!2.0rc1"),
            (
                "tomli>=2; python_version<'3.11' and (os_name==\"posix\" or extra not   in 'a')",
                "tomli>=2 ; python_version < '3.11' and (os_name == 'posix' or extra not in 'a')",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(normal(text), expected);
            assert_eq!(normal(expected), expected, "written again");
        }
    }

    #[test]
    fn requirements_that_could_lead_elsewhere_are_rejected_with_the_reason() {
        let cases = [
            ("-r other.txt", "options of an installer are not allowed"),
            ("--index-url=x", "options of an installer are not allowed"),
            ("six @ https://example.org/six.whl", "a URL is not allowed"),
            ("git+ssh://example.org/x", "a URL is not allowed"),
            ("./local", "a path is not allowed"),
            ("../local.whl", "a path is not allowed"),
            ("/etc/passwd", "a path is not allowed"),
            ("six\n--index-url x", "it contains the character '\\n'"),
            ("six --hash=sha256:00", "does not start with one of"),
            ("six==1 --pre", "follows a version"),
            ("six==1 \\", "a path is not allowed"),
            ("six==${HOME}", "is not a version to compare with"),
            ("six === 1", "`===` is not allowed"),
            ("six # hello", "does not start with one of"),
            ("six=1", "does not start with one of"),
            ("", "it does not start with a package name"),
            ("_six", "it does not start with a package name"),
            ("six;", "its marker"),
            ("six; ${HOME} == 'x'", "its marker"),
            ("six; os_name == 'a' trailing", "unexpected `trailing` at the end"),
            ("sіx", "only printable ASCII"),
        ];
        for (text, expected) in cases {
            let error = text.parse::<Requirement>().expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains('\n'), "{text}");
        }
        let long = format!("a{}", "=".repeat(600))
            .parse::<Requirement>()
            .unwrap_err()
            .to_string();
        assert!(long.contains("it has 601 bytes, the limit is 512"), "{long}");
        let longer = format!("z;{}", ["os_name=='a'"; 32].join(" or "));
        assert!(longer.len() <= 512);
        let longer = normal(&longer);
        assert!(
            longer.contains("its canonical form has 576 bytes, the limit is 512"),
            "{longer}"
        );
    }

    #[test]
    fn a_thousand_nested_parentheses_are_an_error_without_a_stack_overflow() {
        let deep = format!("a; {}", "(".repeat(500));
        assert!(normal(&deep).contains("more than"), "{}", normal(&deep));
    }

    proptest! {
        #[test]
        fn any_string_is_read_or_rejected(text in ".{0,600}") {
            let _ = text.parse::<Requirement>();
        }

        #[test]
        fn an_accepted_requirement_is_one_harmless_line_that_reads_back_equal(
            text in "[ -~]{0,12}([a-z0-9._-]{0,8}(\\[[a-z,]{0,6}\\])?[ \
                     (]?([=<>~!]{1,2}[0-9.*a-z+!]{0,8},?){0,3}[)]?)(;[ ]?[a-z_' =<>()0-9.]{0,40})?"
        ) {
            if let Ok(requirement) = text.parse::<Requirement>() {
                let written = requirement.to_string();
                let special = ['\n', '\r', '$', '#', '@', '/', '\\', '%'];
                prop_assert!(!written.starts_with('-') && !written.contains(special), "{written}");
                prop_assert!(!written.contains(" -"), "{}", written);
                prop_assert_eq!(written.parse::<Requirement>().expect("it was written by us"), requirement);
            }
        }

        #[test]
        fn a_name_with_versions_is_always_accepted(
            name in "[a-z][a-z0-9]{0,8}", operator in "~=|==|!=|<=|>=|<|>",
            version in "[0-9]{1,3}(\\.[0-9]{1,3}){1,3}"
        ) {
            let text = format!("{name}{operator}{version}");
            prop_assert_eq!(text.parse::<Requirement>().expect("a plain requirement").to_string(), text);
        }
    }
}
