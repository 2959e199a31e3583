//! Whole outputs as a model reads them, and that no output breaks the budget.

use std::collections::BTreeMap;

use cellblock_artifact::{ArtifactId, Kind};
use cellblock_protocol::text::acts;
use cellblock_protocol::{Axes, DataframeLibrary, FigureLibrary, ImageMime, Scalar, Series, SeriesKind};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Block, Detail, detailed, to_model};
use crate::output::{
    ArtifactRef, Column, Dataframe, Exception, Figure, Image, Output, Primitive, Representation, Rich,
};

fn artifact(media_type: &str) -> ArtifactRef {
    ArtifactRef {
        sha256: ArtifactId::of(b""),
        kind: Kind::Figure,
        bytes: 12,
        media_type: media_type.into(),
    }
}

fn column(name: &str, dtype: &str) -> Column {
    Column {
        name: name.into(),
        dtype: dtype.into(),
        arrow_type: String::new(),
        nulls: 0,
    }
}

fn table(rows: u64, head: Vec<Vec<Value>>, tail: Vec<Vec<Value>>) -> Dataframe {
    Dataframe {
        name: Some("df".into()),
        library: DataframeLibrary::Pandas,
        rows,
        rows_stored: rows,
        complete: true,
        columns: vec![column("n", "int64"), column("text, long", "object")],
        index: vec![],
        series: false,
        head,
        tail,
        table: None,
        note: None,
    }
}

fn text(value: &str) -> Output {
    Output::Primitive(Primitive {
        name: None,
        value: Scalar::Text(value.into()),
        python_type: "str".into(),
        truncated: false,
        note: None,
    })
}

fn shown(outputs: &[Output], tokens: usize) -> String {
    let blocks = to_model(outputs, tokens);
    let texts = blocks.into_iter().map(|block| match block {
        Block::Text { text } => text,
        Block::Image { name, .. } => format!("\n[picture {}]\n", name.unwrap_or_default()),
    });
    texts.collect()
}

#[test]
fn a_small_table_is_shown_whole() {
    let table = table(
        2,
        vec![vec![json!(1), json!("a\"b")], vec![Value::Null, json!("x\ny")]],
        vec![],
    );
    let expected = "df: DataFrame — 2 rows × 2 columns\nn (int64),\"text, long (object)\"\n\
                    Rows 1-2 of 2:\n1,\"a\"\"b\"\n<NULL>,x\\ny";
    assert_eq!(shown(&[Output::Dataframe(table)], 500), expected);
}

#[test]
fn a_large_table_names_its_hidden_parts() {
    let rows = |range: std::ops::Range<u64>| range.map(|at| vec![json!(at), json!("x")]).collect();
    let table = table(1000, rows(0..10), rows(995..1000));
    let text = shown(&[Output::Dataframe(table.clone())], 500);
    assert!(
        text.starts_with("df: DataFrame — 1000 rows × 2 columns (985 rows not shown)\n"),
        "{text}"
    );
    assert!(text.contains("\nRows 1-10 of 1000:\n0,x\n"), "{text}");
    assert!(text.contains("\nRows 996-1000 of 1000:\n995,x\n"), "{text}");
    assert!(
        text.ends_with("(`df` holds all of it: show other parts, such as `df.iloc[10:20]`, or summarise it)"),
        "{text}"
    );
    let small = shown(&[Output::Dataframe(table)], 60);
    assert!(
        small.starts_with("df: DataFrame — 1000 rows × 2 columns (99"),
        "{small}"
    );
    assert!(small.chars().count() <= 240);
}

#[test]
fn an_empty_table_says_so_and_keeps_its_heads() {
    assert_eq!(
        shown(&[Output::Dataframe(table(0, vec![], vec![]))], 500),
        "df: DataFrame — 0 rows × 2 columns\nIt has no rows.\nn (int64),\"text, long (object)\""
    );
}

fn figure() -> Figure {
    Figure {
        name: Some("trend".into()),
        library: FigureLibrary::Matplotlib,
        title: Some("CO2".into()),
        axes: vec![Axes {
            title: None,
            xlabel: Some("year".into()),
            ylabel: Some("ppm".into()),
        }],
        series: vec![Series {
            axes: 0,
            label: Some("monthly".into()),
            kind: SeriesKind::Line,
            x: vec![Scalar::Integer(1958), Scalar::Integer(2001)],
            y: vec![Scalar::Float(315.5), Scalar::Float(371.25)],
            points: 526,
            coverage: None,
            columns: BTreeMap::new(),
        }],
        image: Some(artifact("image/png")),
        width: Some(640),
        height: Some(480),
        spec: None,
        truncated: false,
        note: None,
        alt: None,
    }
}

#[test]
fn a_figure_is_described_and_its_picture_follows() {
    let expected = "trend: figure \"CO2\", matplotlib, 640×480 pixels\n- panel 1: x \"year\", y \"ppm\"\n\
                    - line \"monthly\": 526 points, x from 1958 to 2001, y between 315.5 and 371.25, last \
                    371.25\n---\n\n[picture trend]\nafter";
    assert_eq!(shown(&[Output::Figure(figure()), text("after")], 500), expected);
}

#[test]
fn an_exception_shows_the_lines_of_the_user() {
    let exception = Exception {
        exception: "ValueError".into(),
        message: "bad \u{1b}[31mvalue".into(),
        traceback: "  File \"co2.py\", line 3\n    f(x)\n".into(),
        frames: vec![],
        line: Some(3),
        notes: vec!["try again".into()],
        truncated: false,
    };
    assert_eq!(
        shown(&[Output::Exception(exception)], 500),
        "  File \"co2.py\", line 3\n    f(x)\nValueError: bad \\u{1b}[31mvalue\ntry again"
    );
}

#[test]
fn small_outputs_are_whole_beside_a_large_one() {
    let long = "x".repeat(100_000);
    let text = shown(&[text("first"), text(&long), text("last")], 200);
    assert!(text.starts_with("first\n---\nCharacters 1-"), "{text}");
    assert!(text.ends_with("\n---\nlast"), "{text}");
    assert!(text.chars().count() <= 800 && text.chars().count() > 700);
}

#[test]
fn too_many_outputs_are_counted_and_the_last_one_is_kept() {
    let outputs: Vec<_> = (0..500).map(|at| text(&format!("output {at}"))).collect();
    let text = shown(&outputs, 100);
    assert!(text.starts_with("output 0\n---\n"), "{text}");
    assert!(
        text.contains("output 499\n---\n(496 of 500 outputs are not shown: show fewer per cell)"),
        "{text}"
    );
}

fn words() -> impl Strategy<Value = String> + Clone {
    prop_oneof!["\\PC{0,20}", any::<String>(), "[a-z\\n]{0,300}"]
}

fn cell() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        words().prop_map(Value::from),
        Just(json!([1, {"a": "b"}]))
    ]
}

fn any_table() -> impl Strategy<Value = Output> {
    let columns = vec(
        (words(), words()).prop_map(|(name, dtype)| column(&name, &dtype)),
        0..30,
    );
    let rows = |most| vec(vec(cell(), 0..30), 0..most);
    (
        of(words()),
        columns,
        any::<u64>(),
        rows(11),
        rows(6),
        any::<bool>(),
        of(words()),
    )
        .prop_map(|(name, columns, rows, head, tail, series, note)| {
            Output::Dataframe(Dataframe {
                name,
                columns,
                series,
                note,
                ..table(rows, head, tail)
            })
        })
}

fn any_scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        Just(Scalar::Null),
        any::<i64>().prop_map(Scalar::Integer),
        any::<f64>().prop_map(Scalar::Float),
        words().prop_map(Scalar::Text)
    ]
}

fn any_figure() -> impl Strategy<Value = Output> {
    let series = (
        of(words()),
        vec(any_scalar(), 0..4),
        vec(any_scalar(), 0..4),
        any::<u64>(),
    )
        .prop_map(|(label, x, y, points)| Series {
            axes: 0,
            label,
            kind: SeriesKind::Bar,
            x,
            y,
            points,
            coverage: None,
            columns: BTreeMap::new(),
        });
    let axes = (of(words()), of(words())).prop_map(|(title, xlabel)| Axes {
        title,
        xlabel,
        ylabel: None,
    });
    (
        of(words()),
        of(words()),
        vec(series, 0..20),
        vec(axes, 0..5),
        any::<bool>(),
        of(words()),
    )
        .prop_map(|(name, title, series, axes, truncated, note)| {
            Output::Figure(Figure {
                name,
                title,
                axes,
                series,
                truncated,
                note,
                alt: None,
                ..figure()
            })
        })
}

fn any_output() -> impl Strategy<Value = Output> {
    let forms = vec(
        words().prop_map(|mime| Representation {
            artifact: artifact(&mime),
            mime,
        }),
        0..5,
    );
    prop_oneof![
        any_table(),
        any_figure(),
        (of(words()), of(any::<u32>())).prop_map(|(name, width)| Output::Image(Image {
            name,
            mime: ImageMime::Svg,
            width,
            height: width,
            image: None
        })),
        (of(words()), any_scalar(), any::<bool>(), of(words())).prop_map(|(name, value, truncated, note)| {
            Output::Primitive(Primitive {
                name,
                value,
                python_type: String::new(),
                truncated,
                note,
            })
        }),
        (of(words()), words(), forms, any::<bool>()).prop_map(
            |(name, text, bundle, truncated)| Output::Rich(Rich {
                name,
                text,
                bundle,
                truncated
            })
        ),
        (words(), words(), words(), vec(words(), 0..3)).prop_map(|(exception, message, traceback, notes)| {
            let (frames, line) = (vec![], None);
            Output::Exception(Exception {
                exception,
                message,
                traceback,
                frames,
                line,
                notes,
                truncated: false,
            })
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_outputs_exceed_any_budget(
        outputs in vec(any_output(), 0..8),
        tokens in prop_oneof![0_usize..40, 0_usize..2000]
    ) {
        let blocks = to_model(&outputs, tokens);
        let chars: usize = blocks.iter().map(|block| match block {
            Block::Text { text } => text.chars().count(),
            Block::Image { .. } => 0,
        }).sum();
        prop_assert!(chars <= tokens * 4, "{chars} characters for {tokens} tokens");
    }

    #[test]
    fn nothing_that_acts_reaches_a_model(output in any_output()) {
        for block in to_model(&[output], 1000) {
            if let Block::Text { text } = block {
                prop_assert!(text.chars().all(|it| !acts(it) || it == '\n' || it == '\t'));
            }
        }
    }
}

#[test]
fn a_minimal_view_has_the_beginnings_and_no_pictures() {
    let picture = Output::Image(Image {
        name: Some("map".into()),
        mime: ImageMime::Png,
        image: Some(artifact("image/png")),
        width: Some(4),
        height: Some(3),
    });
    let long = text(&"word ".repeat(1000));
    let blocks = detailed(&[picture, long], Detail::Minimal, 1000);
    let [Block::Text { text }] = blocks.as_slice() else {
        panic!("{blocks:?}");
    };
    assert!(
        text.starts_with("map: image, image/png, 4×3 pixels (not shown)\n---\nCharacters 1-"),
        "{text}"
    );
    assert!(text.chars().count() < 400, "{text}");
}

#[test]
fn forms_of_a_value_are_listed_whole_or_counted() {
    let form = |mime: &str| Representation {
        mime: mime.to_owned(),
        artifact: artifact(mime),
    };
    let rich = |text: &str, bundle: Vec<Representation>| {
        Output::Rich(Rich {
            name: Some("page".into()),
            text: text.into(),
            bundle,
            truncated: false,
        })
    };
    let short = rich("<Page>", vec![form("text/html")]);
    let whole = "page: <Page>\n(also stored as text/html (12 bytes))";
    for detail in [Detail::Full, Detail::Minimal] {
        assert_eq!(super::text(&short, detail, 1000), whole);
    }
    let outputs = [short.clone(), text(&"word ".repeat(1000)), short];
    let shown = all_text(&to_model(&outputs, 100));
    assert_eq!(shown.matches(whole).count(), 2, "{shown}");
    let long = rich(&"word ".repeat(1000), vec![form("text/html"), form("text/latex")]);
    let shown = super::text(&long, Detail::Full, 250);
    let listed = "\n(also stored as text/html (12 bytes), text/latex (12 bytes))";
    assert!(shown.ends_with(listed), "{shown}");
    let many = rich(
        &"word ".repeat(1000),
        vec![form("application/x-a-long-name-of-a-form"); 4],
    );
    let shown = super::text(&many, Detail::Full, 50);
    assert!(shown.ends_with("\n(also stored in 4 other forms)"), "{shown}");
    for tokens in 0..60 {
        let shown = super::text(&many, Detail::Full, tokens);
        let remark = shown.rsplit_once("\n(").map(|(_, remark)| remark);
        assert!(
            remark.is_none_or(|remark| remark == "also stored in 4 other forms)"),
            "{shown}"
        );
    }
}

fn all_text(blocks: &[Block]) -> String {
    let texts = blocks.iter().map(|block| match block {
        Block::Text { text } => text.as_str(),
        Block::Image { .. } => "",
    });
    texts.collect()
}

#[test]
fn a_minimal_view_of_a_small_table_has_its_first_three_rows() {
    let rows: Vec<_> = (0..5).map(|row| vec![json!(row), json!("x")]).collect();
    let five = Output::Dataframe(table(5, rows, Vec::new()));
    let view = |detail| super::text(&five, detail, 1000);
    let (full, minimal) = (view(Detail::Full), view(Detail::Minimal));
    assert!(
        full.ends_with("Rows 1-5 of 5:\n0,x\n1,x\n2,x\n3,x\n4,x"),
        "{full}"
    );
    assert!(minimal.contains("(2 rows not shown)"), "{minimal}");
    assert!(minimal.contains("Rows 1-3 of 5:\n0,x\n1,x\n2,x\n("), "{minimal}");
}
