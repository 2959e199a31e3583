//! Names the files of charts and pictures, and says where they went.

use cellblock_artifact::{ArtifactId, extension as extension_of};
use cellblock_interpreter::output::{Chart, Figure, Image, ImageMime, Output, Rich};

use crate::sanitize;

/// The media type of a chart of Plotly.
const PLOTLY: &str = "application/vnd.plotly.v1+json";

/// A file to save for an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedPicture {
    /// Its content.
    pub(crate) artifact: ArtifactId,
    /// File name made only of our own words: a sandbox's name for a figure is not a file name.
    pub(crate) name: String,
}

/// Counts the charts and pictures of a run.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    figures: u32,
    charts: u32,
    images: u32,
    values: u32,
}

impl Counter {
    /// The files of an output: none unless it is a chart or a picture.
    pub(crate) fn pictures(&mut self, output: &Output) -> Vec<SavedPicture> {
        match output {
            Output::Figure(figure) => {
                self.figures += 1;
                let number = self.figures;
                let image = figure
                    .image
                    .iter()
                    .map(|image| (image.sha256, format!("figure_{number}.png")));
                let spec = figure
                    .spec
                    .iter()
                    .map(|spec| (spec.sha256, format!("figure_{number}.vl.json")));
                image
                    .chain(spec)
                    .map(|(artifact, name)| SavedPicture { artifact, name })
                    .collect()
            }
            Output::Image(image) => {
                self.images += 1;
                let name = format!("image_{}.{}", self.images, extension(image.mime));
                image
                    .image
                    .iter()
                    .map(|image| SavedPicture {
                        artifact: image.sha256,
                        name: name.clone(),
                    })
                    .collect()
            }
            Output::Chart(chart) => {
                self.charts += 1;
                let number = self.charts;
                let image = chart.image.iter().map(|image| (image.sha256, "png"));
                let document = chart.document.iter().map(|it| (it.sha256, "json"));
                image
                    .chain(document)
                    .map(|(artifact, extension)| SavedPicture {
                        artifact,
                        name: format!("chart_{number}.{extension}"),
                    })
                    .collect()
            }
            Output::Rich(value) => {
                let forms = drawn_forms(value);
                self.values += u32::from(!forms.is_empty());
                let number = self.values;
                forms
                    .into_iter()
                    .map(|(artifact, extension)| SavedPicture {
                        artifact,
                        name: format!("value_{number}.{extension}"),
                    })
                    .collect()
            }
            Output::Dataframe(_) | Output::Primitive(_) | Output::Result(_) | Output::Exception(_) => {
                Vec::new()
            }
        }
    }
}

/// Returns the forms of a value that its text cannot replace, with their extensions: pictures, and
/// the charts of Plotly.
pub(crate) fn drawn_forms(value: &Rich) -> Vec<(ArtifactId, &'static str)> {
    let is_plotly = value.bundle.iter().any(|form| form.mime == PLOTLY);
    let extension = |mime: &str| match mime {
        PLOTLY => Some("plotly.json"),
        "text/html" if is_plotly => Some("html"),
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "image/svg+xml" => Some(extension_of(mime)),
        _ => None,
    };
    let forms = value.bundle.iter();
    forms
        .filter_map(|form| Some((form.artifact.sha256, extension(&form.mime)?)))
        .collect()
}

const fn extension(mime: ImageMime) -> &'static str {
    match mime {
        ImageMime::Png => "png",
        ImageMime::Jpeg => "jpg",
        ImageMime::Svg => "svg",
        ImageMime::Gif => "gif",
        ImageMime::Webp => "webp",
    }
}

/// Returns the caption of a chart that is a specification.
pub(crate) fn chart_caption(chart: &Chart) -> String {
    let title = chart.title.as_deref().filter(|title| !title.trim().is_empty());
    let caption = caption("chart", title, chart.width.zip(chart.height));
    match &chart.note {
        Some(note) => format!("{caption} ({})", sanitize::line(note)),
        None => caption,
    }
}

/// Returns the caption of a chart.
pub(crate) fn figure_caption(figure: &Figure) -> String {
    let title = figure.title.as_deref().filter(|title| !title.trim().is_empty());
    caption(
        "chart",
        title.or(figure.name.as_deref()),
        figure.width.zip(figure.height),
    )
}

/// Returns the caption of a picture.
pub(crate) fn image_caption(image: &Image) -> String {
    caption("picture", image.name.as_deref(), image.width.zip(image.height))
}

fn caption(kind: &str, name: Option<&str>, size: Option<(u32, u32)>) -> String {
    let name = name
        .map(|name| format!(" “{}”", sanitize::line(name)))
        .unwrap_or_default();
    let size = size
        .map(|(width, height)| format!(", {width} × {height} pixels"))
        .unwrap_or_default();
    format!("{kind}{name}{size}")
}

#[cfg(test)]
mod tests {
    use cellblock_interpreter::output::Representation;

    use super::*;

    #[test]
    fn captions_contain_the_known_facts() {
        assert_eq!(
            caption("chart", Some("CO₂\n2001"), Some((640, 480))),
            "chart “CO₂\\n2001”, 640 × 480 pixels"
        );
        assert_eq!(caption("picture", None, None), "picture");
    }

    #[test]
    fn every_picture_of_a_run_has_a_name_of_its_own() {
        let image = |mime| {
            let artifact = cellblock_interpreter::output::ArtifactRef {
                sha256: ArtifactId::of(b"x"),
                kind: cellblock_artifact::Kind::Image,
                bytes: 1,
                media_type: "image/png".into(),
            };
            Output::Image(Image {
                name: Some("../../etc".into()),
                mime,
                width: None,
                height: None,
                image: Some(artifact),
            })
        };
        let mut counter = Counter::default();
        let names: Vec<_> = [ImageMime::Png, ImageMime::Svg]
            .into_iter()
            .flat_map(|mime| counter.pictures(&image(mime)))
            .map(|picture| picture.name)
            .collect();
        assert_eq!(names, ["image_1.png", "image_2.svg"]);
    }

    #[test]
    fn a_value_is_saved_in_the_forms_that_its_text_cannot_replace() {
        let form = |mime: &str| Representation {
            mime: mime.to_owned(),
            artifact: cellblock_interpreter::output::ArtifactRef {
                sha256: ArtifactId::of(mime.as_bytes()),
                kind: cellblock_artifact::Kind::Rich,
                bytes: 1,
                media_type: mime.to_owned(),
            },
        };
        let value = |mimes: &[&str]| {
            Output::Rich(Rich {
                name: None,
                text: String::new(),
                bundle: mimes.iter().copied().map(form).collect(),
                truncated: false,
            })
        };
        let mut counter = Counter::default();
        let names: Vec<_> = [
            value(&["text/html", "image/png"]),
            value(&["text/html", "text/latex"]),
            value(&[PLOTLY, "text/html"]),
        ]
        .iter()
        .flat_map(|output| counter.pictures(output))
        .map(|picture| picture.name)
        .collect();
        assert_eq!(names, ["value_1.png", "value_2.plotly.json", "value_2.html"]);
    }
}
