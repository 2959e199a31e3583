//! Advice about an exception: options of `cellblock run` that bring in what the code misses.

use std::path::Path;

use cellblock_interpreter::output::Exception;
use cellblock_sandbox::limits::NetworkPolicy;

/// Packages whose modules have other names.
const PACKAGES: [(&str, &str); 9] = [
    ("PIL", "pillow"),
    ("bs4", "beautifulsoup4"),
    ("cv2", "opencv-python-headless"),
    ("dateutil", "python-dateutil"),
    ("docx", "python-docx"),
    ("fitz", "pymupdf"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("yaml", "pyyaml"),
];
/// Modules that do nothing without a network.
const CLIENTS: [&str; 6] = ["aiohttp", "boto3", "httpx", "requests", "urllib3", "yfinance"];
/// Modules of Python that no package brings.
const NO_PACKAGES: [&str; 4] = ["_tkinter", "idlelib", "tkinter", "turtle"];

/// Returns the advice for an exception of a cell, if this computer's current folder or an option
/// has what it misses.
pub(super) fn of(exception: &Exception, network: NetworkPolicy, folder: &Path) -> Option<String> {
    match exception.exception.as_str() {
        "ModuleNotFoundError" => of_module(&exception.message, network, folder),
        "FileNotFoundError" | "IOException" => of_file(&exception.message, folder),
        _ => None,
    }
}

fn of_file(message: &str, folder: &Path) -> Option<String> {
    let mut words = message.split(['\'', '"']).chain(message.split(": ").last());
    let name = words.find(|word| !word.is_empty() && folder.join(word).is_file())?;
    let variable = variable(Path::new(name).file_stem()?.to_str()?);
    let mut input = format!("{variable}={name}");
    if !input
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "=_-./".contains(c))
    {
        input = format!("'{input}'");
    }
    Some(format!(
        "`{name}` is a file of this computer, and the sandbox does not see those; `cellblock run --input \
         {input} …` binds its content to the variable `{variable}`"
    ))
}

fn of_module(message: &str, network: NetworkPolicy, folder: &Path) -> Option<String> {
    let (_, named) = message.split_once("No module named '")?;
    let module = named.split(['.', '\'']).next()?;
    let own = format!("{module}.py");
    if folder.join(&own).is_file() {
        return Some(format!(
            "`{own}` is a file of this computer, and the sandbox does not see those; `cellblock run \
             --setup {own} …` runs it first, and its functions are there without an import"
        ));
    }
    if NO_PACKAGES.contains(&module) {
        return None;
    }
    if CLIENTS.contains(&module) {
        return Some(match network {
            NetworkPolicy::Egress => format!(
                "install `{module}` in the cell, with `!pip install {module}`; `--allow` has to name the \
                 hosts of a package index"
            ),
            _ => format!(
                "`{module}` needs a network, and this sandbox has none; `--network egress --allow HOST` \
                 gives it one, or bind data with `--input NAME=PATH`"
            ),
        });
    }
    let package = PACKAGES.iter().find(|(name, _)| *name == module);
    let package = package.map_or(module, |(_, package)| package);
    Some(format!(
        "the image has no `{module}`; `cellblock run --require {package} …` adds it for this run"
    ))
}

/// Returns a name for a variable that says what the file is called.
fn variable(stem: &str) -> String {
    let name: String = stem
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("_{name}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(exception: &str, message: &str, network: NetworkPolicy) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        for name in ["sales 2024.csv", "1.csv", "helpers.py"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let exception = Exception {
            exception: exception.to_owned(),
            message: message.to_owned(),
            traceback: String::new(),
            line: None,
            frames: Vec::new(),
            notes: Vec::new(),
            truncated: false,
        };
        of(&exception, network, folder.path())
    }

    #[test]
    fn a_file_of_this_computer_is_bound_with_input() {
        for message in [
            "[Errno 2] No such file or directory: 'sales 2024.csv'",
            "No such file or directory (os error 2): sales 2024.csv",
            "IO Error: No files found that match the pattern \"sales 2024.csv\"",
        ] {
            let advice = advice("FileNotFoundError", message, NetworkPolicy::None).unwrap();
            assert!(
                advice.contains("`cellblock run --input 'sales_2024=sales 2024.csv' …`"),
                "{advice}"
            );
        }
        let message = "[Errno 2] No such file or directory: '1.csv'";
        assert!(
            advice("FileNotFoundError", message, NetworkPolicy::None)
                .unwrap()
                .contains("--input _1=1.csv")
        );
        let other = "[Errno 2] No such file or directory: 'other.csv'";
        assert_eq!(advice("FileNotFoundError", other, NetworkPolicy::None), None);
        assert_eq!(advice("ValueError", message, NetworkPolicy::None), None);
    }

    #[test]
    fn a_missing_module_is_required_or_set_up_or_needs_a_network() {
        let module = |name: &str, network| {
            advice(
                "ModuleNotFoundError",
                &format!("No module named '{name}'"),
                network,
            )
            .unwrap_or_default()
        };
        assert!(module("lifelines", NetworkPolicy::None).contains("`cellblock run --require lifelines …`"));
        assert!(module("sklearn.svm", NetworkPolicy::None).contains("--require scikit-learn"));
        assert!(module("helpers", NetworkPolicy::None).contains("--setup helpers.py"));
        assert!(module("requests", NetworkPolicy::None).contains("--network egress --allow HOST"));
        let inside = module("requests", NetworkPolicy::Egress);
        assert!(
            inside.contains("!pip install requests") && !inside.contains("has none"),
            "{inside}"
        );
        assert_eq!(module("tkinter", NetworkPolicy::None), "");
    }
}
