//! Base of a build: names of images of E2B, Python and Node.js, mapped to the server's image.

use super::super::control::is_served;
use super::super::error::{Answer, Problem, shortened};
use super::super::options::E2bOptions;

/// Base images of E2B, whatever their tag.
const E2B_IMAGES: [&str; 2] = ["e2bdev/base", "e2bdev/code-interpreter"];
/// Tags of an image that stand for any version.
const ANY: [&str; 6] = ["latest", "lts", "current", "slim", "bookworm", "trixie"];

/// Base that the steps of a build begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BuildBase {
    /// The server's image.
    Image,
    /// The server's image, which must have Node.js of a version; an empty one is any.
    Node(String),
    /// A template of the key.
    Template(String),
}

impl BuildBase {
    /// Maps the base that a client names.
    pub(super) fn read(
        image: Option<&str>,
        template: Option<&str>,
        python: &str,
        options: &E2bOptions,
    ) -> Answer<Self> {
        match (image, template) {
            (None, Some(template)) if is_served(template, options) => Ok(Self::Image),
            (None, Some(template)) => Ok(Self::Template(template.to_owned())),
            (Some(image), None) => of_image(image, python, options),
            _ => Err(Problem::invalid(
                "a build needs one base: name an image with `from_image`, or a template with `from_template`",
            )),
        }
    }
}

fn of_image(image: &str, python: &str, options: &E2bOptions) -> Answer<BuildBase> {
    let listed = options.builds.iter().flat_map(|it| &it.images);
    if listed.clone().any(|it| it == image) {
        return Ok(BuildBase::Image);
    }
    let short = image
        .trim_start_matches("docker.io/")
        .trim_start_matches("library/");
    let (name, tag) = short.split_once(':').unwrap_or((short, "latest"));
    let version = tag.split('-').next().unwrap_or_default();
    let version = if ANY.contains(&version) { "" } else { version };
    match name {
        _ if E2B_IMAGES.contains(&name) => Ok(BuildBase::Image),
        "python" if fits(version, python) => Ok(BuildBase::Image),
        "python" => Err(Problem::unenforced(
            "fromImage",
            &image,
            &format!("this server's image has Python {python}; use `python:{python}`, or `python:3`"),
        )),
        "node" => Ok(BuildBase::Node(version.to_owned())),
        _ => {
            let listed: Vec<_> = listed.map(|it| format!(", `{}`", shortened(it))).collect();
            let why = format!(
                "this server builds on its own image, which stands for `e2bdev/base`, `python:{python}`, \
                 `node`{}; use one of these, or let the operator list the image with `dialects: {{e2b: \
                 {{builds: {{images: […]}}}}}}`",
                listed.concat()
            );
            Err(Problem::unenforced("fromImage", &image, &why))
        }
    }
}

/// Returns whether a version is the wanted one, as far as that is given.
pub(super) fn fits(wanted: &str, version: &str) -> bool {
    let parts = wanted.split('.').filter(|it| !it.is_empty());
    parts.zip(version.split('.')).all(|(one, other)| one == other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::e2b::options::BuildOptions;

    #[test]
    fn images_are_mapped_by_name_and_version() {
        let options = E2bOptions {
            builds: Some(BuildOptions {
                images: vec!["ubuntu:24.04".to_owned()],
                ..BuildOptions::default()
            }),
            ..E2bOptions::default()
        };
        let read = |image: &str| BuildBase::read(Some(image), None, "3.13", &options);
        for image in [
            "python:3",
            "python:3.13-slim",
            "python",
            "python:3.13.5",
            "docker.io/library/python:3",
            "e2bdev/base:latest",
            "ubuntu:24.04",
        ] {
            assert_eq!(read(image).unwrap(), BuildBase::Image, "{image}");
        }
        assert_eq!(read("node:lts").unwrap(), BuildBase::Node(String::new()));
        assert_eq!(read("node:22-alpine").unwrap(), BuildBase::Node("22".to_owned()));
        for (image, words) in [
            ("python:3.11", "has Python 3.13"),
            ("ubuntu:22.04", "`ubuntu:24.04`"),
            ("evil/python:3", "builds on its own image"),
        ] {
            let error = read(image).unwrap_err().0.message;
            assert!(error.contains(words), "{error}");
        }
        let own = BuildBase::read(None, Some("mine:v1"), "3.13", &options).unwrap();
        assert_eq!(own, BuildBase::Template("mine:v1".to_owned()));
        assert!(BuildBase::read(None, None, "3.13", &options).is_err());
    }
}
