//! The meaning of uv's messages about a failed resolution.

use cellblock_protocol::text::acts;

use super::error::LayerError;
use crate::{ImageError, Package};

/// Maximum length of an explanation; longer ones help nobody.
const LONGEST: usize = 1200;

/// Converts a failure of uv to an error for the author of the requirements.
pub(super) fn explain(error: ImageError, installed: &[Package]) -> LayerError {
    let ImageError::Program { output, .. } = &error else {
        return LayerError::Image(error);
    };
    if error.is_disk_full() {
        return LayerError::Image(error);
    }
    let unreachable = [
        "Failed to fetch",
        "error sending request",
        "network was disabled",
        "dns error",
    ];
    if unreachable.iter().any(|it| output.contains(it)) {
        return LayerError::Offline;
    }
    if !output.contains("No solution found") {
        return LayerError::Image(error);
    }
    let words: Vec<_> = output.split_whitespace().collect();
    let before = |sign: &[&str]| {
        let found = words.windows(sign.len() + 1).filter(|it| it[1..] == *sign);
        let mut names: Vec<_> = found.map(|it| it[0].to_owned()).collect();
        names.dedup();
        names
    };
    let packages = before(&["was", "not", "found"]);
    if !packages.is_empty() {
        return LayerError::Unknown { packages };
    }
    let explanation = tidy(output);
    let in_the_way: Vec<_> = installed
        .iter()
        .map(|it| format!("{}=={}", it.name, it.version))
        .filter(|pin| words.iter().any(|it| it.trim_end_matches([',', '.', ':']) == pin))
        .collect();
    let mut packages = before(&["have", "no", "usable", "wheels"]);
    packages.extend(before(&["has", "no", "usable", "wheels"]));
    if !packages.is_empty() {
        return LayerError::NoWheel { packages };
    }
    if in_the_way.is_empty() {
        LayerError::Unsatisfiable { explanation }
    } else {
        LayerError::Conflict {
            installed: in_the_way,
            explanation,
        }
    }
}

/// Removes advice that only uv's own user could follow, and all paths of the host.
fn tidy(output: &str) -> String {
    let said = output.split("cause:").nth(1).unwrap_or(output);
    let said = said.split("hint:").next().unwrap_or(said);
    let words = said
        .split_whitespace()
        .filter(|it| !it.contains("://") && !it.contains('/'));
    let mut text: String = words
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|it| !acts(*it))
        .collect();
    if text.len() > LONGEST {
        let end = text.floor_char_boundary(LONGEST);
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(output: &str) -> LayerError {
        let pins = [("numpy", "2.5.5"), ("pandas", "3.1.1"), ("six", "1.1")];
        let pins = pins.map(|it| Package {
            name: it.0.to_owned(),
            version: it.1.to_owned(),
        });
        let error = ImageError::Program {
            action: "resolve the packages",
            program: "uv".to_owned(),
            status: "ended with exit status: 1".to_owned(),
            output: output.to_owned(),
        };
        explain(error, &pins)
    }

    const NO_SOLUTION: &str = "error: No solution found when resolving dependencies\n  cause: Because ";

    #[test]
    fn an_unknown_package_is_named() {
        let said = format!(
            "{NO_SOLUTION}nosuch was not found in the package registry and you require nosuch, \
             we can conclude"
        );
        let LayerError::Unknown { packages } = explained(&said) else {
            panic!("another meaning")
        };
        assert_eq!(packages, ["nosuch"]);
    }

    #[test]
    fn a_conflict_names_the_installed_package() {
        let said = format!(
            "{NO_SOLUTION}you require numpy<2 and numpy==2.5.5, we can conclude that it is unsatisfiable."
        );
        let error = explained(&said);
        let text = error.to_string();
        let LayerError::Conflict { installed, .. } = error else {
            panic!("another meaning")
        };
        assert_eq!(installed, ["numpy==2.5.5"]);
        assert!(text.contains("already installed: `numpy==2.5.5`."), "{text}");
    }

    #[test]
    fn a_package_without_wheels_is_named() {
        let said =
            format!("{NO_SOLUTION}all versions of pycairo have no usable wheels and you require pycairo, we");
        let LayerError::NoWheel { packages } = explained(&said) else {
            panic!("another meaning")
        };
        assert_eq!(packages, ["pycairo"]);
    }

    #[test]
    fn a_missing_version_is_explained_without_paths_of_the_host() {
        let said = [
            NO_SOLUTION,
            "there is no version of six==99 at /srv/x and http://index/simple you require it.\n\nhint: more",
        ]
        .concat();
        let LayerError::Unsatisfiable { explanation } = explained(&said) else {
            panic!("another meaning")
        };
        assert_eq!(
            explanation,
            "Because there is no version of six==99 at and you require it."
        );
    }

    #[test]
    fn an_unreachable_index_is_reported_and_other_failures_are_the_hosts() {
        let said =
            "error: Request failed after 3 retries in 6.4s\n  cause: Failed to fetch: http://x/simple/rich/";
        assert!(matches!(explained(said), LayerError::Offline));
        assert!(matches!(explained("error: something else"), LayerError::Image(_)));
    }
}
