//! Values of the libraries that people use, shown as typed outputs.

use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::output::{DataframeLibrary, FigureLibrary, ImageMime, Output};
use cellblock_interpreter::{Execution, Session};
use serde_json::{Value, json};

use crate::stored::{content, figure};
use crate::support::{block_on, run, session, table};

async fn shown(session: &Session, code: &str) -> Execution {
    let shown = run(session, code).await;
    assert_eq!(shown.outcome, Outcome::Completed, "{shown:#?}");
    shown
}

async fn stored_json(sha256: &str) -> Value {
    serde_json::from_slice(&content(sha256).await).unwrap()
}

fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n")
}

#[test]
fn a_pandas_frame_is_a_table_with_types_nulls_and_its_index() {
    block_on(async {
        let session = session().await;
        let code = "frame = pd.DataFrame({'n': [1, 2], 'x': [0.5, None]}, index=pd.Index(['p', 'q'], \
                    name='key'))\nframe";
        let shown = shown(&session, code).await;
        let table = table(&shown.outputs[0]);
        assert_eq!(
            (table.name.as_deref(), table.library),
            (Some("frame"), DataframeLibrary::Pandas)
        );
        assert_eq!(
            (table.rows, table.rows_stored, table.complete, table.series),
            (2, 2, true, false)
        );
        assert_eq!(table.index, ["key"]);
        let columns: Vec<_> = table
            .columns
            .iter()
            .map(|it| (it.name.as_str(), it.arrow_type.as_str(), it.nulls))
            .collect();
        assert_eq!(
            columns,
            [("key", "LargeUtf8", 0), ("n", "Int64", 0), ("x", "Float64", 1)]
        );
        assert_eq!(
            table.head,
            [
                [json!("p"), json!(1), json!(0.5)],
                [json!("q"), json!(2), json!(null)]
            ]
        );
        let stored = table.table.as_ref().unwrap();
        assert_eq!(stored.media_type, "application/vnd.apache.parquet");
        let bytes = content(&stored.sha256.to_string()).await;
        assert_eq!(bytes.len() as u64, stored.bytes);
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    });
}

#[test]
fn a_stored_table_reads_back_equal_as_an_input() {
    block_on(async {
        let session = session().await;
        let code = "frame = pd.DataFrame({'n': range(1000), \
                    'when': pd.date_range('2024-01-01', periods=1000, tz='UTC')})\n\
                    frame";
        let shown = shown(&session, code).await;
        let stored = table(&shown.outputs[0]).table.clone().unwrap();
        let bytes = content(&stored.sha256.to_string()).await;
        let input = cellblock_interpreter::Input::bytes(
            "back",
            cellblock_interpreter::input::InputFormat::Parquet,
            bytes,
        );
        session.bind(input).await.unwrap();
        let same = "bool((back['n'] == frame['n']).all() and (back['when'] == frame['when']).all())";
        assert_eq!(crate::support::value(&session, same).await, true);
    });
}

#[test]
fn every_unit_of_time_is_read_from_stored_tables_by_all_readers_and_comes_back_bound() {
    const FRAMES: &str = r"
import datetime as dt, duckdb, pyarrow as pa, pyarrow.parquet as pq
days = [dt.datetime(2024, 1, 1), None, dt.datetime(1969, 7, 20, 20, 17)]
columns = {}
for unit in ('s', 'ms', 'us', 'ns'):
    for zone in (None, 'UTC', 'Europe/Berlin'):
        columns[f'stamp_{unit}_{zone}'] = pa.array(days, pa.timestamp(unit, zone))
    spans = [dt.timedelta(hours=1), None, dt.timedelta(seconds=-3)]
    columns[f'span_{unit}'] = pa.array(spans, pa.duration(unit))
for kind in (pa.time32('s'), pa.time32('ms'), pa.time64('us'), pa.time64('ns')):
    columns[f'{kind}'] = pa.array([dt.time(1, 2, 3), None, dt.time(0)], kind)
for kind in (pa.date32(), pa.date64()):
    columns[f'{kind}'] = pa.array([dt.date(2024, 1, 1), None, dt.date(1900, 2, 3)], kind)
columns['list'] = pa.array([[days[0]], None, [None, days[2]]], pa.list_(pa.timestamp('s')))
columns['struct'] = pa.array([{'x': days[0]}, None, {'x': None}],
                             pa.struct([('x', pa.timestamp('s', 'UTC'))]))
table = pa.table(columns)
panda = pd.DataFrame({'x': pd.Series(days, dtype='datetime64[s]')},
                     index=pd.date_range('2024', periods=3, unit='s', tz='UTC', name='at'))
polar = pl.DataFrame({'x': days, 'd': [d and d.date() for d in days],
                      'e': [None, dt.timedelta(seconds=1), None]})
";
    const CHECKS: [(&str, &str); 3] = [
        (
            "table",
            r"
import datetime as dt
raw = pq.read_table('/tmp/data/back.parquet')
plain = duckdb.sql('from \'/tmp/data/back.parquet\'')
polars = pl.read_parquet('/tmp/data/back.parquet')
for name in table.column_names:
    kind, found = table[name].type, raw[name].type
    if not pa.types.is_duration(kind):
        same = table[name].cast(found)
        assert raw[name].equals(same), (name, found)
        assert pa.types.is_temporal(found) or pa.types.is_nested(found), (name, found)
        assert 'INT' not in str(plain[name].types[0]), (name, plain[name].types)
    kind = polars.schema[name]
    assert kind.is_temporal() or kind.is_nested() or name == 'time32[s]', (name, kind)
stamps = [name for name in table.column_names if name.startswith('stamp')]
for name in stamps:
    if name.endswith('None'):
        assert plain[name].fetchall()[0][0] == days[0], name
    else:
        assert str(plain[name].types[0]).startswith('TIMESTAMP'), plain[name].types
    first = polars[name][0]
    assert first.replace(tzinfo=None) in (days[0], dt.datetime(2024, 1, 1, 1)), (name, first)
",
        ),
        (
            "panda",
            r"
back = back.set_index('at')
assert back.dtypes.tolist() == panda.dtypes.tolist(), back.dtypes
assert back.index.dtype == panda.index.dtype and back.index.equals(panda.index), back.index
assert back.x.equals(panda.x)
bare = pd.read_parquet('/tmp/data/back.parquet').x.astype('datetime64[s]')
assert bare.reset_index(drop=True).equals(panda.x.reset_index(drop=True)), bare
",
        ),
        (
            "polar",
            "assert pl.read_parquet('/tmp/data/back.parquet').equals(polar)",
        ),
    ];
    block_on(async {
        let session = session().await;
        crate::support::run(&session, FRAMES).await;
        for (name, checks) in CHECKS {
            let shown = shown(&session, name).await;
            let stored = table(&shown.outputs[0]).table.clone().unwrap();
            let bytes = content(&stored.sha256.to_string()).await;
            let input = cellblock_interpreter::Input::bytes(
                "back",
                cellblock_interpreter::input::InputFormat::Parquet,
                bytes,
            );
            session.bind(input).await.unwrap();
            let ended = crate::support::run(&session, checks).await;
            assert_eq!(ended.outcome.name(), "completed", "{name}: {:?}", ended.outputs);
        }
    });
}

#[test]
fn a_pandas_series_is_a_table_of_one_column() {
    block_on(async {
        let session = session().await;
        let shown = shown(&session, "pd.Series([1, 2, 3], name='n')").await;
        let table = table(&shown.outputs[0]);
        assert!(table.series);
        assert_eq!((table.rows, table.columns[0].name.as_str()), (3, "n"));
    });
}

#[test]
fn polars_frames_are_tables() {
    block_on(async {
        let session = session().await;
        let code = "pl.DataFrame({'g': ['a', 'b', 'a'], 'v': [1, 2, 3]})\
                    .group_by('g').agg(pl.col('v').sum()).sort('g')";
        let shown = shown(&session, code).await;
        let table = table(&shown.outputs[0]);
        assert_eq!((table.library, table.rows), (DataframeLibrary::Polars, 2));
        assert_eq!(table.head, [[json!("a"), json!(4)], [json!("b"), json!(2)]]);
        let dtypes: Vec<_> = table.columns.iter().map(|it| it.dtype.as_str()).collect();
        assert_eq!(dtypes, ["String", "Int64"]);
    });
}

#[test]
fn pyarrow_tables_are_tables() {
    block_on(async {
        let session = session().await;
        let shown = shown(
            &session,
            "import pyarrow as pa\npa.table({'a': [1, None], 'b': ['x', 'y']})",
        )
        .await;
        let table = table(&shown.outputs[0]);
        assert_eq!((table.library, table.rows), (DataframeLibrary::Pyarrow, 2));
        assert_eq!(table.head, [[json!(1), json!("x")], [json!(null), json!("y")]]);
        assert_eq!(table.columns[0].nulls, 1);
    });
}

#[test]
fn a_matplotlib_figure_is_a_picture_with_its_data() {
    block_on(async {
        let session = session().await;
        let code = "import matplotlib.pyplot as plt\n\
                    plt.plot([1, 2, 3], [4, 5, 6], label='rise')\nplt.title('Growth')\n\
                    plt.xlabel('year')\nplt.ylabel('€')";
        let shown = shown(&session, code).await;
        assert_eq!(shown.outputs.len(), 1);
        let figure = figure(&shown.outputs[0]);
        assert_eq!(figure.library, FigureLibrary::Matplotlib);
        assert_eq!(figure.title.as_deref(), Some("Growth"));
        assert_eq!(
            (figure.axes[0].xlabel.as_deref(), figure.axes[0].ylabel.as_deref()),
            (Some("year"), Some("€"))
        );
        let series = json!(figure.series[0]);
        assert_eq!(
            (&series["label"], &series["kind"], &series["x"], &series["y"]),
            (
                &json!("rise"),
                &json!("line"),
                &json!([1, 2, 3]),
                &json!([4, 5, 6])
            )
        );
        let image = figure.image.as_ref().unwrap();
        assert_eq!(image.media_type, "image/png");
        assert!(is_png(&content(&image.sha256.to_string()).await));
        assert!(figure.width > Some(100) && figure.height > Some(100));
    });
}

#[test]
fn several_figures_of_a_cell_are_all_shown_in_order_and_once() {
    block_on(async {
        let session = session().await;
        let code = "import matplotlib.pyplot as plt\n\
                    for n in range(3):\n    plt.figure()\n    plt.plot([n])\n    plt.title(f'number \
                    {n}')\n    if n == 1: plt.show()";
        let first = shown(&session, code).await;
        let titles: Vec<_> = first
            .outputs
            .iter()
            .map(|it| figure(it).title.clone().unwrap())
            .collect();
        assert_eq!(titles, ["number 0", "number 1", "number 2"]);
        assert_eq!(shown(&session, "1;").await.outputs, []);
    });
}

#[test]
fn a_figure_before_an_exception_is_kept() {
    block_on(async {
        let session = session().await;
        let code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title('before')\n1 / 0";
        let ended = run(&session, code).await;
        assert_eq!(ended.outcome, Outcome::Raised);
        assert_eq!(ended.outputs.len(), 2);
        assert_eq!(figure(&ended.outputs[0]).title.as_deref(), Some("before"));
    });
}

#[test]
fn an_altair_chart_is_a_specification_and_a_picture() {
    block_on(async {
        let session = session().await;
        let code = "alt.Chart(pd.DataFrame({'a': [1, 2], 'b': [3, 4]}), \
                    title='Two').mark_bar().encode(x='a:O', y='b:Q')";
        let shown = shown(&session, code).await;
        let figure = figure(&shown.outputs[0]);
        assert_eq!(
            (figure.library, figure.title.as_deref()),
            (FigureLibrary::Altair, Some("Two"))
        );
        let spec = stored_json(&figure.spec.as_ref().unwrap().sha256.to_string()).await;
        assert_eq!(spec["mark"]["type"], "bar");
        assert_eq!(spec["encoding"]["x"]["field"], "a");
        let image = figure.image.as_ref().unwrap();
        assert!(is_png(&content(&image.sha256.to_string()).await));
    });
}

#[test]
fn a_pillow_image_is_a_picture_with_its_size() {
    block_on(async {
        let session = session().await;
        let shown = shown(
            &session,
            "from PIL import Image\nImage.new('RGB', (20, 10), 'red')",
        )
        .await;
        let [Output::Image(image)] = &shown.outputs[..] else {
            panic!("{:#?}", shown.outputs)
        };
        assert_eq!(
            (image.mime, image.width, image.height),
            (ImageMime::Png, Some(20), Some(10))
        );
        let stored = image.image.as_ref().unwrap();
        assert!(is_png(&content(&stored.sha256.to_string()).await));
    });
}

#[test]
fn a_value_with_representations_is_rich_and_others_are_their_text() {
    block_on(async {
        let session = session().await;
        let code = "class Page:\n    def _repr_html_(self): return '<b>hi</b>'\n    def __repr__(self): \
                    return 'a page'\n\
                    display(Page())\ndisplay([1, 2])\ndisplay(float('nan'))\ndisplay(2 ** 64)\n\
                    display(None)\ndisplay(True)";
        let shown = shown(&session, code).await;
        let Output::Rich(rich) = &shown.outputs[0] else {
            panic!("{:#?}", shown.outputs[0])
        };
        assert_eq!(
            (rich.text.as_str(), rich.bundle[0].mime.as_str()),
            ("a page", "text/html")
        );
        let html = content(&rich.bundle[0].artifact.sha256.to_string()).await;
        assert_eq!(html, b"<b>hi</b>");
        let values: Vec<_> = shown.outputs[1..]
            .iter()
            .map(|output| serde_json::to_value(output).unwrap())
            .map(|output| (output["value"].clone(), output["python_type"].clone()))
            .collect();
        assert_eq!(
            values,
            [
                (json!("[1, 2]"), json!("list")),
                (json!("nan"), json!("float")),
                (json!("18446744073709551616"), json!("int")),
                (json!(null), json!("NoneType")),
                (json!(true), json!("bool")),
            ]
        );
    });
}

#[test]
fn a_value_whose_representation_raises_does_not_fail_the_cell() {
    block_on(async {
        let session = session().await;
        let code = "class Bad:\n    def __repr__(self): raise RuntimeError('no')\ndisplay(Bad())\n'after'";
        let shown = shown(&session, code).await;
        assert_eq!(shown.outputs.len(), 2, "{:#?}", shown.outputs);
        assert_eq!(serde_json::to_value(&shown.outputs[1]).unwrap()["value"], "after");
    });
}

#[test]
fn seaborn_statsmodels_and_scikit_learn_work_on_real_data() {
    block_on(async {
        let session = session().await;
        let code = "import statsmodels.api as sm\nfrom sklearn.datasets import load_wine\n\
                    from sklearn.cluster import KMeans\n\
                    data = sm.datasets.co2.load_pandas().data\nwine = load_wine(as_frame=True)\n\
                    labels = KMeans(3, n_init=1, random_state=0).fit_predict(wine.data)\n\
                    f'{len(data)} {len(set(labels))} {len(labels)}'";
        assert_eq!(crate::support::value(&session, code).await, "2284 3 178");
    });
}
