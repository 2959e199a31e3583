//! Environment markers of a requirement: comparisons joined by `and` and `or`.

use super::scan::Scan;

/// Maximum nesting depth of parentheses.
const DEEPEST: usize = 8;

const VARIABLES: [&str; 12] = [
    "python_version",
    "python_full_version",
    "os_name",
    "sys_platform",
    "platform_release",
    "platform_system",
    "platform_version",
    "platform_machine",
    "platform_python_implementation",
    "implementation_name",
    "implementation_version",
    "extra",
];

/// Reads a marker and returns its canonical form.
pub(super) fn parse(scan: &mut Scan<'_>) -> Result<String, String> {
    any(scan, 0)
}

fn any(scan: &mut Scan<'_>, depth: usize) -> Result<String, String> {
    joined(scan, "or", |scan| joined(scan, "and", |scan| atom(scan, depth)))
}

fn joined(
    scan: &mut Scan<'_>,
    word: &str,
    part: impl Fn(&mut Scan<'_>) -> Result<String, String>,
) -> Result<String, String> {
    let mut all = part(scan)?;
    while scan
        .rest()
        .strip_prefix(word)
        .is_some_and(|it| it.starts_with([' ', '(']))
        && scan.eat(word)
    {
        all = format!("{all} {word} {}", part(scan)?);
    }
    Ok(all)
}

fn atom(scan: &mut Scan<'_>, depth: usize) -> Result<String, String> {
    if depth > DEEPEST {
        return Err(format!(
            "its marker nests parentheses more than {DEEPEST} levels deep"
        ));
    }
    if scan.eat("(") {
        let inner = any(scan, depth + 1)?;
        if !scan.eat(")") {
            return Err("its marker has an unclosed parenthesis".to_owned());
        }
        return Ok(format!("({inner})"));
    }
    let left = operand(scan)?;
    let operator = operator(scan)?;
    let right = operand(scan)?;
    Ok(format!("{left} {operator} {right}"))
}

fn operator(scan: &mut Scan<'_>) -> Result<&'static str, String> {
    let symbols = ["~=", "==", "!=", "<=", ">=", "<", ">"];
    if let Some(symbol) = symbols.into_iter().find(|it| scan.eat(it)) {
        return Ok(symbol);
    }
    match scan.take(|c| c.is_ascii_lowercase()) {
        "in" => Ok("in"),
        "not" if scan.take(|c| c.is_ascii_lowercase()) == "in" => Ok("not in"),
        _ => Err("its marker lacks a comparison".to_owned()),
    }
}

fn operand(scan: &mut Scan<'_>) -> Result<String, String> {
    for quote in ["'", "\""] {
        if let Some(rest) = scan.rest().strip_prefix(quote) {
            let text = rest.split(quote).next().unwrap_or_default();
            let plain = |c: char| c.is_ascii_alphanumeric() || " ._+*!<>=~-".contains(c);
            if !text.chars().all(plain) || text.contains(" -") || text.starts_with('-') {
                return Err(
                    "its marker compares with a text that contains characters other than letters, digits \
                     and .-_+*"
                        .to_owned(),
                );
            }
            if !scan.eat(&format!("{quote}{text}{quote}")) {
                return Err("its marker has an unclosed quote".to_owned());
            }
            return Ok(format!("'{text}'"));
        }
    }
    let word = scan.take(|c| c.is_ascii_lowercase() || c == '_');
    if VARIABLES.contains(&word) {
        Ok(word.to_owned())
    } else {
        Err(format!(
            "its marker has `{word}` instead of a text or one of {}",
            VARIABLES.join(", ")
        ))
    }
}
