//! Charts as specifications: what they are converted to is drawn by the renderer of the image.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_interpreter::Input;
use cellblock_interpreter::chart::{CheckedChart, Rows};
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::input::InputFormat;
use serde_json::{Value, json};

use crate::support::{block_on, interpreter, run_for, session, value};

// The cases whose Vega-Lite the chart crate compares; here they are drawn.
#[path = "../../../chart/tests/vega_lite/cases.rs"]
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

fn chart(case: &Case) -> CheckedChart {
    let rows = Rows::parse(case.rows.to_string().as_bytes()).unwrap();
    let title = case.name.replace('_', " ");
    CheckedChart::new(&case.spec, rows, Some(title), None)
        .unwrap_or_else(|error| panic!("{}: {error}", case.name))
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

/// Draws small charts as the kernel does, and compares them with pictures that people have looked
/// at. Blocks of pixels are compared, so that another rounding of edges is no other picture, and a
/// moved label is.
const COMPARE: &str = r#"
import io, json, vl_convert
import numpy as np
from base64 import b64decode
from PIL import Image, ImageChops, ImageFilter
from cellblock_kernel.outputs import drawing, plot

def differs(one, other):
    if one.size != other.size:
        return True
    blocks = [np.asarray(picture.reduce(4)).astype(int) for picture in (one, other)]
    change = abs(blocks[0] - blocks[1]).max(axis=2)
    return float(change.mean()) > 1 or float((change > 24).mean()) > 0.002

def dates():
    import matplotlib.pyplot as plt
    import pandas as pd
    days = pd.date_range("2023-11-01", periods=120)
    figure, axes = plt.subplots(figsize=(5.6, 3.4))
    axes.plot(days, [100 + number / 6 + number // 3 % 7 for number in range(120)], label="Price")
    axes.plot(days, [90 + number / 9 + number // 4 % 5 for number in range(120)], label="Index")
    axes.set_title("matplotlib dates")
    axes.legend()
    return bytes(plot._png(figure))

def drawn(spec):
    drawing.SCALE = 1
    # In this process, so that the engine starts once.
    return drawing._drawn(vl_convert, json.dumps(spec), "png", None)

for name, (spec, golden) in json.loads(asked).items():
    png = drawn(spec) if spec else dates()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    small = picture.quantize(64, dither=Image.Dither.NONE)
    picture = small.convert("RGB")
    # The comparison itself is tested on each picture.
    assert not differs(picture, picture.filter(ImageFilter.GaussianBlur(0.4))), name
    assert differs(picture, ImageChops.offset(picture, 4, 0)), name
    if golden is None or differs(picture, Image.open(io.BytesIO(b64decode(golden))).convert("RGB")):
        small.save(f"{name}.png", optimize=True)
"#;

/// `CELLBLOCK_UPDATE=1 cargo test -p cellblock-interpreter --test it small_charts` makes the pictures anew.
#[test]
fn small_charts_look_as_they_did_when_people_looked_at_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/chart/golden");
    let golden = |name: &str| {
        let png = std::fs::read(folder.join(format!("{name}.png"))).ok();
        png.map(|png| STANDARD.encode(png))
    };
    let mut asked: BTreeMap<_, _> = cases::golden()
        .into_iter()
        .map(|it| {
            let mut spec = chart(&it.case).vega_lite();
            (spec["width"], spec["height"]) = (json!(it.size[0]), json!(it.size[1]));
            (it.case.name, (spec, golden(it.case.name)))
        })
        .collect();
    asked.insert("matplotlib_dates", (Value::Null, golden("matplotlib_dates")));
    let bytes = json!(asked).to_string().into_bytes();
    let different = block_on(async {
        let session = session().await;
        session
            .bind(Input::bytes("asked", InputFormat::Bytes, bytes))
            .await
            .unwrap();
        let drawn = run_for(&session, Duration::from_mins(4), COMPARE).await;
        assert_eq!(drawn.outcome, Outcome::Completed, "{drawn:#?}");
        let mut different = Vec::new();
        for file in drawn.files {
            let png = interpreter()
                .await
                .store()
                .get(file.sha256.parse().unwrap())
                .await;
            different.push((file.name, png.unwrap()));
        }
        different
    });
    let update = std::env::var_os("CELLBLOCK_UPDATE").is_some();
    for (name, png) in &different {
        let name = if update {
            name.clone()
        } else {
            format!("new_{name}")
        };
        std::fs::write(folder.join(name), png).unwrap();
    }
    let names: Vec<_> = different.iter().map(|(name, _)| name).collect();
    assert!(
        update || names.is_empty(),
        "{names:?} look different; compare each with its new_ picture in {}, and accept them with \
         CELLBLOCK_UPDATE=1",
        folder.display()
    );
}

#[test]
fn both_renderers_have_the_same_colors() {
    let code = "import json, matplotlib; json.dumps([one['color'] for one in \
                matplotlib.rcParams['axes.prop_cycle']])";
    let shown = block_on(async { value(&session().await, code).await });
    let colors: Vec<String> = serde_json::from_str(shown.as_str().unwrap()).unwrap();
    assert_eq!(colors, cellblock_interpreter::chart::PALETTE);
}
