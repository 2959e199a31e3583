//! The model's description of the toolset, generated so that it matches this image and this policy.
//!
//! It is one of four walls against fetching from Python (image, sandbox, prompt, contract), and the
//! only one that explains itself. It names no vendor, so that no source of data is preferred.

use std::fmt::Write as _;
use std::path::Path;

use cellblock_image::{ImageSpec, Manifest};

use super::policy::DerivationPolicy;
use super::tools::{CODE_INTERPRETER, RENDER_CHART};
use crate::alias::AliasStore;
use crate::contract::{ArtifactKind, Attempts, MAX_ARTIFACTS};
use crate::render::CHARS_PER_TOKEN;
use crate::render::plain::line;

mod text;

/// Packages whose modules have other names.
const IMPORTED_AS: [(&str, &str); 11] = [
    ("beautifulsoup4", "bs4"),
    ("fonttools", "fontTools"),
    ("odfpy", "odf"),
    ("pillow", "PIL"),
    ("python-calamine", "python_calamine"),
    ("python-dateutil", "dateutil"),
    ("python-docx", "docx"),
    ("python-pptx", "pptx"),
    ("pyyaml", "yaml"),
    ("scikit-learn", "sklearn"),
    ("vl-convert-python", "vl_convert"),
];

/// Characters of one alias' summary.
const SUMMARY: usize = 200;

/// Settings that the text depends on.
#[derive(Clone, Copy, Debug)]
pub struct PromptSettings<'a> {
    /// Importable libraries in addition to the standard library, by import name: see [`libraries`].
    pub libraries: &'a [String],
    /// Whether a call has to name at least one input.
    pub require_inputs: bool,
    /// Maximum number of calls in a row that may fail.
    pub max_attempts: u32,
    /// Maximum number of artifacts that one call may emit.
    pub max_artifacts: usize,
    /// Maximum time of one call.
    pub cell_seconds: u64,
    /// Aliases that have been fetched so far, the latest last.
    pub aliases: &'a [AliasLine],
    /// Maximum part of the text for the aliases' summaries. Names are listed beyond it.
    pub alias_tokens: usize,
}

impl Default for PromptSettings<'_> {
    fn default() -> Self {
        Self {
            libraries: &[],
            require_inputs: false,
            max_attempts: Attempts::MAX,
            max_artifacts: MAX_ARTIFACTS,
            cell_seconds: 60,
            aliases: &[],
            alias_tokens: 1000,
        }
    }
}

impl<'a> PromptSettings<'a> {
    /// The settings under a policy, for code that may import these libraries.
    pub fn of(policy: &DerivationPolicy, libraries: &'a [String]) -> Self {
        Self {
            libraries,
            require_inputs: policy.contract.require_inputs,
            max_attempts: policy.max_attempts,
            max_artifacts: policy.contract.max_artifacts,
            cell_seconds: policy.cell_timeout.as_secs(),
            ..Self::default()
        }
    }
}

/// A tool result in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasLine {
    /// Its alias.
    pub alias: String,
    /// Description of its contents, such as `365 rows: date, balance`. Anything: it is cleaned and cut.
    pub summary: String,
}

/// Describes each recorded result in a line.
pub fn lines(aliases: &AliasStore) -> Vec<AliasLine> {
    let line = |alias: String| AliasLine {
        summary: aliases.summary(&alias).unwrap_or_default(),
        alias,
    };
    aliases.aliases().into_iter().map(line).collect()
}

/// Returns the libraries that an image's cells may import, as `import` names them: what it loads beforehand,
/// and its packages; of a shipped image, those that it is made for. Network clients are left out even where
/// an image's policy lets them in.
pub fn libraries(manifest: &Manifest) -> Vec<String> {
    let made_for = ImageSpec::shipped(&manifest.name).ok().flatten();
    let is_meant = |package: &str| {
        let requirements = made_for.as_ref().map(|spec| spec.requirements.as_str());
        requirements.is_none_or(|lines| lines.lines().any(|line| named(line) == package))
    };
    let packages = manifest.packages.iter().map(|it| it.name.as_str());
    let packages = packages.filter(|name| is_meant(name)).map(imported_as);
    let preloaded = manifest.preload.iter().map(|module| {
        let top = module.split('.').next().unwrap_or(module);
        top.to_owned()
    });
    let mut libraries = Vec::new();
    for name in preloaded.chain(packages) {
        if !is_client(manifest, &name) && !libraries.contains(&name) {
            libraries.push(name);
        }
    }
    libraries
}

/// Returns the package that a line of requirements names.
fn named(line: &str) -> &str {
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    &line[..end.unwrap_or(line.len())]
}

/// Returns the name by which code imports a package.
fn imported_as(package: &str) -> String {
    let other = IMPORTED_AS.iter().find(|(name, _)| *name == package);
    other.map_or_else(|| package.replace('-', "_"), |(_, module)| (*module).to_owned())
}

/// Whether the image's audit found a network client of this name, by its distribution or by its module.
fn is_client(manifest: &Manifest, name: &str) -> bool {
    manifest.audit.findings.iter().any(|found| {
        let module = Path::new(&found.path).file_stem();
        found.client.replace('-', "_").eq_ignore_ascii_case(name)
            || module.is_some_and(|module| module == name)
    })
}

/// The section about the toolset for a system prompt, as far as it is the same whatever has been fetched.
#[derive(Clone, Debug)]
pub struct Prompt {
    same: String,
    alias_tokens: usize,
}

impl Prompt {
    /// The section for these settings. Their aliases are left out.
    pub fn new(settings: &PromptSettings<'_>) -> Self {
        let sections = [
            text::purpose(),
            text::DATA_FLOW.to_owned(),
            libraries_text(settings.libraries),
            text::HELPERS.to_owned(),
            text::CHANGE_RULES.to_owned(),
            contract_text(settings),
            text::limits(settings),
        ];
        Self {
            same: sections.join("\n\n"),
            alias_tokens: settings.alias_tokens,
        }
    }

    /// The whole section, where this has been fetched so far, the latest last.
    pub fn section(&self, aliases: &[AliasLine]) -> String {
        format!("{}\n\n{}", self.same, aliases_text(aliases, self.alias_tokens))
    }
}

/// The section about the toolset for a system prompt.
pub fn prompt_section(settings: &PromptSettings<'_>) -> String {
    Prompt::new(settings).section(settings.aliases)
}

fn libraries_text(libraries: &[String]) -> String {
    let allowed = if libraries.is_empty() {
        "Python's standard library".to_owned()
    } else {
        let names: Vec<_> = libraries.iter().map(|name| format!("`{}`", line(name))).collect();
        format!("Python's standard library and {}", names.join(", "))
    };
    format!(
        "### Libraries\n\nAllowed: {allowed}. Nothing else is installed.\n{}",
        text::BAN
    )
}

fn contract_text(settings: &PromptSettings<'_>) -> String {
    let inputs = if settings.require_inputs {
        "- `inputs` is required: it gives each tool result that the code reads a local name.\n"
    } else {
        "- `inputs` is optional: it gives tool results local names for dense code. Every alias \
         is bound anyway.\n"
    };
    format!(
        "### Contract\n\nEvery call declares a `postProcessingContract`. It is checked before Python \
         starts and after it ended; what is wrong comes back with the valid values, to be repaired.\n\n\
         - `operation`: what is computed. `reason`: why it takes code.\n\
         - `inputAliases`: the aliases that the code derives from, at least one.\n\
         - `expectedArtifacts`: `\"image\"` for figures saved with `save_figure`, `\"chart\"` for charts \
         emitted with `render_chart`, `[]` when the code only computes. Emit exactly the kinds that are \
         declared, at most {} artifacts.\n{inputs}\n```json\n{}\n```",
        settings.max_artifacts,
        text::EXAMPLE
    )
}

fn aliases_text(aliases: &[AliasLine], tokens: usize) -> String {
    let mut text = "### Tool results so far\n\n".to_owned();
    if aliases.is_empty() {
        text.push_str("None yet. Call the tool that fetches the data first.");
        return text;
    }
    let budget = tokens.saturating_mul(CHARS_PER_TOKEN);
    let mut spent = 0;
    let mut lines = Vec::new();
    let mut named = Vec::new();
    // The latest results are described first, since they are most likely what is worked on.
    for alias in aliases.iter().rev() {
        let summary: String = line(&alias.summary).chars().take(SUMMARY).collect();
        let described = format!("- `{}`: {summary}", line(&alias.alias));
        spent += described.chars().count() + 1;
        if spent <= budget && named.is_empty() {
            lines.push(described);
        } else {
            named.push(format!("`{}`", line(&alias.alias)));
        }
    }
    text.push_str(&lines.join("\n"));
    if !named.is_empty() {
        let before = if lines.is_empty() { "" } else { "\n" };
        // Writing to a string does not fail.
        let _ = write!(text, "{before}- earlier ones: {}", named.join(", "));
    }
    text
}

#[cfg(test)]
mod tests;
