//! `NAME=PATH`: a variable, and the file whose content is bound to it.

use std::path::PathBuf;

/// A name, and the file whose content is bound to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputArg {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// Reads `NAME=PATH`, or says how to repair it.
pub(crate) fn parse_input(text: &str) -> Result<InputArg, String> {
    let Some((name, path)) = text.split_once('=') else {
        return Err(format!(
            "`{text}` has no `=`; write the variable's name and the file, such as `sales=data/sales.csv`"
        ));
    };
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|c| c.is_alphabetic() || c == '_');
    if !(first && characters.all(|c| c.is_alphanumeric() || c == '_')) {
        return Err(format!(
            "`{name}` is not a valid Python identifier; use letters, digits and `_`, such as `sales_2024`"
        ));
    }
    if path.is_empty() {
        return Err(format!("there is no file after `{name}=`; write `{name}=PATH`"));
    }
    Ok(InputArg {
        name: name.to_owned(),
        path: path.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_a_name_and_a_path() {
        let input = InputArg {
            name: "sales".into(),
            path: "a=b.csv".into(),
        };
        assert_eq!(parse_input("sales=a=b.csv"), Ok(input));
    }

    #[test]
    fn a_broken_input_is_told_with_a_repair() {
        for (text, complaint) in [
            (
                "sales.csv",
                "`sales.csv` has no `=`; write the variable's name and the file, such as \
                 `sales=data/sales.csv`",
            ),
            (
                "2024=x.csv",
                "`2024` is not a valid Python identifier; use letters, digits and `_`, such as `sales_2024`",
            ),
            (
                "=x.csv",
                "`` is not a valid Python identifier; use letters, digits and `_`, such as `sales_2024`",
            ),
            ("sales=", "there is no file after `sales=`; write `sales=PATH`"),
        ] {
            assert_eq!(parse_input(text).unwrap_err(), complaint);
        }
    }
}
