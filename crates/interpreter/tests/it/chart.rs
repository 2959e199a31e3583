//! Charts as specifications: what they are converted to is drawn by the renderer of the image.

use cellblock_interpreter::chart::{Chart, Rows};
use cellblock_interpreter::{Input, InputFormat};
use serde_json::{Value, json};

use crate::support::{block_on, session, value};

mod cases;

use cases::Case;

/// Draws every specification with each version of Vega-Lite that is asked for, and says what is seen.
const LOOK: &str = r#"
import io, json, vl_convert
import numpy as np
from PIL import Image

def parts(colour):
    return [int(colour[at:at + 2], 16) for at in (1, 3, 5)]

def look(spec, version, colours):
    png = vl_convert.vegalite_to_png(spec, vl_version=version)
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    packed = pixels[..., 0] << 16 | pixels[..., 1] << 8 | pixels[..., 2]
    return {
        "size": [packed.shape[1], packed.shape[0]],
        "different": len(np.unique(packed)),
        "inked": float((packed != 0xffffff).mean()),
        "seen": [int((abs(pixels - parts(colour)).sum(axis=2) <= 24).sum()) for colour in colours],
    }

json.dumps([
    [look(case["spec"], version, case["colours"]) for version in ("5.21", "6.4")]
    for case in json.loads(asked)
])
"#;

fn chart(case: &Case) -> Chart {
    let rows = Rows::parse(case.rows.to_string().as_bytes()).unwrap();
    let title = case.name.replace('_', " ");
    Chart::new(&case.spec, rows, Some(title), None).unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

fn are_drawn(cases: &[Case]) {
    let asked: Vec<_> = cases
        .iter()
        .map(|case| {
            let colours: Vec<_> = case.seen.iter().map(|(colour, _)| colour).collect();
            json!({ "spec": chart(case).vega_lite(), "colours": colours })
        })
        .collect();
    let bytes = json!(asked).to_string().into_bytes();
    let shown = block_on(async {
        let session = session().await;
        session
            .bind(Input::bytes("asked", InputFormat::Bytes, bytes))
            .await
            .unwrap();
        value(&session, LOOK).await
    });
    let shown: Vec<Vec<Value>> = serde_json::from_str(shown.as_str().unwrap()).unwrap();
    assert_eq!(shown.len(), cases.len());
    for (case, versions) in cases.iter().zip(&shown) {
        assert_eq!(versions.len(), 2);
        for drawn in versions {
            is_right(case, drawn);
        }
    }
}

fn is_right(case: &Case, drawn: &Value) {
    let name = case.name;
    let side = |at: usize| drawn["size"][at].as_u64().unwrap();
    assert!(
        (700..1200).contains(&side(0)) && (400..700).contains(&side(1)),
        "{name}: {drawn}"
    );
    assert!(drawn["different"].as_u64().unwrap() > 20, "{name}: {drawn}");
    let inked = drawn["inked"].as_f64().unwrap();
    assert!((0.01..0.95).contains(&inked), "{name}: {drawn}");
    for ((colour, least), found) in case.seen.iter().zip(drawn["seen"].as_array().unwrap()) {
        assert!(found.as_u64().unwrap() >= *least, "{name}: {colour} in {drawn}");
    }
}

#[test]
fn line_charts_are_drawn() {
    are_drawn(&cases::line());
}

#[test]
fn bar_charts_are_drawn() {
    are_drawn(&cases::bar());
}

#[test]
fn area_charts_are_drawn() {
    are_drawn(&cases::area());
}

#[test]
fn scatter_charts_are_drawn() {
    are_drawn(&cases::scatter());
}

#[test]
fn composed_charts_are_drawn() {
    are_drawn(&cases::composed());
}

#[test]
fn histograms_are_drawn() {
    are_drawn(&cases::histogram());
}

#[test]
fn heatmaps_are_drawn() {
    are_drawn(&cases::heatmap());
}

#[test]
fn candlestick_charts_are_drawn() {
    are_drawn(&cases::candlestick());
}

#[test]
fn the_vega_lite_of_each_type_is_what_it_was() {
    for case in cases::all() {
        insta::assert_json_snapshot!(case.name, chart(&case).vega_lite());
    }
}
