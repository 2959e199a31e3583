//! A displayed value as the protocol has it: text, and pictures by their media types.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_interpreter::Output;
use cellblock_interpreter::artifact::Store;
use cellblock_interpreter::output::{ArtifactRef, Primitive, Scalar};
use cellblock_interpreter::render::{self, Detail};
use serde_json::{Map, Value, json};

/// Number of tokens of a table or a figure in words.
const TOKENS: usize = 4000;
/// Maximum size of a picture or of another form in an event; larger ones are left out.
const INLINE: u64 = 8 << 20;

/// Returns the forms of a value, by media type; the plain one is called `text`.
pub(super) async fn forms(store: &Store, output: &Output) -> Value {
    let mut forms = Map::new();
    let text = match output {
        Output::Primitive(primitive) => plain(primitive),
        Output::Rich(rich) => rich.text.clone(),
        other => render::text(other, Detail::Full, TOKENS),
    };
    forms.insert("text".to_owned(), json!(text));
    for (mime, artifact) in parts(output) {
        if artifact.bytes > INLINE {
            continue;
        }
        match store.get(artifact.sha256).await {
            Ok(bytes) => {
                let readable =
                    mime.starts_with("text/") || mime.ends_with("json") || mime.ends_with("svg+xml");
                let form = match std::str::from_utf8(&bytes) {
                    Ok(text) if readable => text.to_owned(),
                    _ => STANDARD.encode(&bytes),
                };
                forms.insert(mime, json!(form));
            }
            Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "read an output"),
        }
    }
    Value::Object(forms)
}

fn parts(output: &Output) -> Vec<(String, &ArtifactRef)> {
    let typed = |artifact: &'_ ArtifactRef| artifact.media_type.clone();
    match output {
        Output::Figure(figure) => figure.image.iter().map(|it| (typed(it), it)).collect(),
        Output::Image(image) => image.image.iter().map(|it| (typed(it), it)).collect(),
        Output::Chart(chart) => chart.image.iter().map(|it| (typed(it), it)).collect(),
        Output::Rich(rich) => {
            let forms = rich.bundle.iter();
            forms.map(|it| (it.mime.clone(), &it.artifact)).collect()
        }
        _ => Vec::new(),
    }
}

/// A value as Python shows it.
fn plain(primitive: &Primitive) -> String {
    match &primitive.value {
        Scalar::Null => "None".to_owned(),
        Scalar::Bool(true) => "True".to_owned(),
        Scalar::Bool(false) => "False".to_owned(),
        Scalar::Integer(number) => number.to_string(),
        Scalar::Float(number) => format!("{number:?}"),
        Scalar::Text(text) if primitive.python_type == "str" => {
            let text = text
                .replace('\\', "\\\\")
                .replace('\n', "\\n")
                .replace('\'', "\\'");
            format!("'{text}'")
        }
        Scalar::Text(text) => text.clone(),
    }
}
