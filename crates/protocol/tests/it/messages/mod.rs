//! Strategies that generate any message.

use cellblock_protocol::{
    Answer, Axes, CallError, CellError, CellMode, CellNames, ChangeKind, Chart, Column, Dataframe,
    DataframeLibrary, Disk, Exception, ExceptionFrame, Figure, FigureLibrary, FileDifference, FileEntry,
    FileStamp, Finding, FromGuest, FromKernel, Guard, Image, ImageMime, InputFormat, KernelOutcome, Language,
    Obstacle, Output, OutputLimits, Primitive, Reference, Rejection, Rescue, Rich, Scalar, Series,
    SeriesKind, SkippedFile, Stream, TerminalSize, ToGuest, ToKernel, Variable,
};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use serde_json::{Value, json};

mod connectors;
mod guest;

pub(crate) use guest::{from_guest, to_guest};

use connectors::bundle;

fn text() -> impl Strategy<Value = String> + Clone {
    prop_oneof![Just(String::new()), "\\PC{0,12}", any::<String>()]
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..4)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(text(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn obstacle() -> impl Strategy<Value = Obstacle> + Clone {
    prop_oneof![
        Just(Obstacle::ChildProcesses),
        text().prop_map(|owners| Obstacle::Threads { owners }),
        any::<u32>().prop_map(|limit| Obstacle::HighDescriptor { limit }),
        text().prop_map(|error| Obstacle::UnknownState { error }),
        text().prop_map(|reason| Obstacle::NoCopy { reason }),
    ]
}

fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        Just(Scalar::Null),
        any::<bool>().prop_map(Scalar::Bool),
        any::<i64>().prop_map(Scalar::Integer),
        (proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO)
            .prop_map(Scalar::Float),
        text().prop_map(Scalar::Text),
    ]
}

fn dataframe() -> impl Strategy<Value = Dataframe> {
    let library = prop_oneof![
        Just(DataframeLibrary::Pandas),
        Just(DataframeLibrary::Polars),
        Just(DataframeLibrary::Pyarrow),
    ];
    let columns = vec(
        (text(), text()).prop_map(|(name, dtype)| Column { name, dtype }),
        0..4,
    );
    let rest = (any::<bool>(), any::<u64>(), any::<u64>(), any::<bool>());
    (of(text()), library, any::<u64>(), columns, texts(), rest).prop_map(
        |(name, library, rows, columns, index, (truncated, head_rows, tail_rows, series))| Dataframe {
            name,
            library,
            rows,
            columns,
            index,
            truncated,
            head_rows,
            tail_rows,
            series,
        },
    )
}

fn series() -> impl Strategy<Value = Series> {
    let kind = prop::sample::select(vec![
        SeriesKind::Line,
        SeriesKind::Bar,
        SeriesKind::Scatter,
        SeriesKind::Area,
        SeriesKind::Image,
        SeriesKind::Hist,
        SeriesKind::Pie,
        SeriesKind::Box,
        SeriesKind::Heatmap,
        SeriesKind::Other,
    ]);
    (
        any::<u32>(),
        of(text()),
        kind,
        vec(scalar(), 0..4),
        vec(scalar(), 0..4),
        any::<u64>(),
        of(prop::num::f64::NORMAL),
        prop::collection::btree_map(text(), vec(scalar(), 0..4), 0..3),
    )
        .prop_map(|(axes, label, kind, x, y, points, coverage, columns)| Series {
            axes,
            label,
            kind,
            x,
            y,
            points,
            coverage,
            columns,
        })
}

fn figure() -> impl Strategy<Value = Figure> {
    let library = prop::sample::select(vec![
        FigureLibrary::Matplotlib,
        FigureLibrary::Altair,
        FigureLibrary::VegaLite,
    ]);
    let spec = of(value().prop_map(|inner| json!({ "mark": inner })));
    let axes = (of(text()), of(text()), of(text())).prop_map(|(title, xlabel, ylabel)| Axes {
        title,
        xlabel,
        ylabel,
    });
    let rest = (
        of(any::<u32>()),
        of(any::<u32>()),
        any::<bool>(),
        of(text()),
        of(text()),
    );
    (
        of(text()),
        library,
        spec,
        vec(series(), 0..3),
        vec(axes, 0..3),
        of(text()),
        rest,
    )
        .prop_map(
            |(name, library, spec, series, axes, title, (width, height, truncated, note, alt))| Figure {
                name,
                library,
                spec,
                series,
                axes,
                title,
                width,
                height,
                truncated,
                note,
                alt,
            },
        )
}

fn chart() -> impl Strategy<Value = Chart> {
    let texts = (of(text()), of(text()), of(text()), of(text()));
    (texts, value(), any::<u64>()).prop_map(|((name, title, alt, note), spec, rows)| Chart {
        name,
        title,
        alt,
        spec,
        rows,
        note,
    })
}

fn image() -> impl Strategy<Value = Image> {
    let mime = prop::sample::select(vec![
        ImageMime::Png,
        ImageMime::Jpeg,
        ImageMime::Svg,
        ImageMime::Gif,
        ImageMime::Webp,
    ]);
    (
        of(text()),
        mime,
        of(any::<u32>()),
        of(any::<u32>()),
        any::<bool>(),
    )
        .prop_map(|(name, mime, width, height, truncated)| Image {
            name,
            mime,
            width,
            height,
            truncated,
        })
}

fn exception() -> impl Strategy<Value = Exception> {
    let frame =
        (text(), of(any::<u32>()), of(text()), of(text())).prop_map(|(file, line, function, source)| {
            ExceptionFrame {
                file,
                line,
                function,
                source,
            }
        });
    let rest = (vec(frame, 0..3), of(any::<u32>()), texts(), any::<bool>());
    (of(text()), text(), text(), text(), rest).prop_map(
        |(name, exception, message, traceback, (frames, line, notes, truncated))| Exception {
            name,
            exception,
            message,
            traceback,
            frames,
            line,
            notes,
            truncated,
        },
    )
}

fn output() -> impl Strategy<Value = Output> {
    let primitive = (of(text()), scalar(), text(), any::<bool>(), of(text())).prop_map(
        |(name, value, python_type, truncated, note)| Primitive {
            name,
            value,
            python_type,
            truncated,
            note,
        },
    );
    let rich = (of(text()), texts(), text(), any::<bool>()).prop_map(|(name, mimes, text, truncated)| Rich {
        name,
        mimes,
        text,
        truncated,
    });
    prop_oneof![
        dataframe().prop_map(Output::Dataframe),
        figure().prop_map(Output::Figure),
        image().prop_map(Output::Image),
        primitive.prop_map(Output::Primitive),
        rich.prop_map(Output::Rich),
        chart().prop_map(Output::Chart),
        (of(text()), text()).prop_map(|(name, python_type)| Output::Result(Answer { name, python_type })),
        exception().prop_map(Output::Exception),
    ]
}

fn call_error() -> impl Strategy<Value = CallError> {
    (text(), text(), value()).prop_map(|(code, message, details)| CallError {
        code,
        message,
        details,
    })
}

fn reference(format: impl Strategy<Value = InputFormat>) -> impl Strategy<Value = Reference> {
    (text(), text(), format, text(), any::<u64>(), any::<u64>()).prop_map(
        |(name, alias, format, path, offset, length)| Reference {
            name,
            alias,
            format,
            path,
            offset,
            length,
        },
    )
}

/// Messages of few fields.
fn small() -> impl Strategy<Value = ToKernel> {
    prop_oneof![
        (any::<u64>(), text()).prop_map(|(cell, name)| ToKernel::Get { cell, name }),
        any::<u64>().prop_map(|cell| ToKernel::Variables { cell }),
        any::<u64>().prop_map(|cell| ToKernel::Reset { cell }),
        (any::<u64>(), any::<bool>()).prop_map(|(cell, reseed)| ToKernel::Diverge { cell, reseed }),
        any::<u64>().prop_map(|cell| ToKernel::Checkpoint { cell }),
        (any::<u64>(), text(), text(), any::<bool>()).prop_map(|(cell, name, code, guarded)| {
            ToKernel::Setup {
                cell,
                name,
                code,
                guarded,
            }
        }),
        (any::<u64>(), text(), text(), any::<u32>()).prop_map(|(cell, code, name, line)| ToKernel::Check {
            cell,
            code,
            name,
            line,
            mode: CellMode::Exec,
        }),
    ]
}

fn output_limits() -> impl Strategy<Value = OutputLimits> {
    (
        any::<u32>(),
        any::<u64>(),
        any::<u64>(),
        any::<u32>(),
        any::<u64>(),
    )
        .prop_map(
            |(outputs, output_bytes, text_chars, rows_preview, result_bytes)| OutputLimits {
                outputs,
                output_bytes,
                text_chars,
                rows_preview,
                result_bytes,
            },
        )
}

/// Generates any message from the host to a kernel.
pub(crate) fn to_kernel() -> impl Strategy<Value = ToKernel> {
    let guard = prop::sample::select(vec![Guard::Off, Guard::Standard, Guard::Strict]);
    let mode = prop::sample::select(vec![CellMode::Exec, CellMode::Eval]);
    let format = prop::sample::select(vec![
        InputFormat::Csv,
        InputFormat::Tsv,
        InputFormat::Parquet,
        InputFormat::Json,
        InputFormat::Ndjson,
        InputFormat::Arrow,
        InputFormat::Xlsx,
        InputFormat::Bytes,
        InputFormat::Value,
    ]);
    prop_oneof![
        (
            texts(),
            guard,
            output_limits(),
            texts(),
            prop::sample::select(vec![Rescue::Off, Rescue::Idle, Rescue::On]),
            vec(bundle(), 0..3),
            prop::collection::btree_map(text(), text(), 0..3),
        )
            .prop_map(
                |(prelude, guard, limits, sys_path, rescue, connectors, outputs)| {
                    ToKernel::Configure {
                        prelude,
                        guard,
                        limits,
                        sys_path,
                        rescue,
                        connectors,
                        outputs,
                    }
                }
            ),
        (
            any::<u64>(),
            text(),
            text(),
            any::<u32>(),
            (prop::sample::select(&Language::ALL[..]), texts(), mode),
            any::<bool>(),
            any::<(bool, bool, bool)>(),
            (vec(reference(format.clone()), 0..3), of(any::<u64>())),
        )
            .prop_map(
                |(
                    cell,
                    code,
                    name,
                    line,
                    (language, argv, mode),
                    echo,
                    (store, last, report_names),
                    (references, grace_ms),
                )| {
                    ToKernel::Execute {
                        cell,
                        code,
                        name,
                        line,
                        language,
                        argv,
                        mode,
                        echo,
                        store,
                        last,
                        references,
                        report_names,
                        grace_ms,
                    }
                }
            ),
        small(),
        (any::<u64>(), text(), format, of(text())).prop_map(|(cell, name, format, path)| ToKernel::Bind {
            cell,
            name,
            format,
            path
        }),
        (
            any::<u64>(),
            value().boxed(),
            any::<bool>(),
            of(call_error().boxed())
        )
            .prop_map(|(call, value, value_in_blob, error)| ToKernel::Answer {
                call,
                value,
                value_in_blob,
                error,
            }),
        of(any::<bool>()).prop_map(|reseed| ToKernel::TakeOver { reseed }),
    ]
}

fn names() -> impl Strategy<Value = CellNames> {
    let parts = (texts(), texts(), texts(), texts(), texts());
    parts.prop_map(|(assigned, created, deleted, changed, read)| CellNames {
        assigned,
        created,
        deleted,
        changed,
        read,
    })
}

fn cell_error() -> impl Strategy<Value = CellError> {
    let parts = (
        text(),
        text(),
        of(any::<i32>()),
        of(any::<u32>()),
        of(any::<i32>()),
    );
    parts.prop_map(|(kind, message, errno, line, exit_code)| CellError {
        kind,
        message,
        errno,
        line,
        exit_code,
    })
}

fn finding() -> impl Strategy<Value = Finding> {
    (text(), text(), of(text()), value().boxed()).prop_map(|(code, message, series, details)| Finding {
        code,
        message,
        series,
        details,
    })
}

/// Generates any message from a kernel to the host.
pub(crate) fn from_kernel() -> impl Strategy<Value = FromKernel> {
    let outcome = prop::sample::select(vec![
        KernelOutcome::Completed,
        KernelOutcome::Raised,
        KernelOutcome::Interrupted,
        KernelOutcome::Rejected,
    ]);
    let variable =
        (text(), text(), text()).prop_map(|(name, kind, summary)| Variable { name, kind, summary });
    let rejection = (text(), of(any::<u32>()), text()).prop_map(|(rule, line, message)| Rejection {
        rule,
        line,
        message,
    });
    let rest = (
        of(vec(variable, 0..3)),
        any::<u32>(),
        vec(rejection, 0..3),
        any::<bool>(),
        vec(finding(), 0..3),
        of(names()),
    );
    prop_oneof![
        (any::<u32>(), any::<u32>(), text()).prop_map(|(generation, pid, python)| FromKernel::Hello {
            generation,
            pid,
            python
        }),
        // Boxed, because values of every arm are on the stack at the same time.
        (
            any::<u64>(),
            any::<u32>(),
            output().boxed(),
            of(text()),
            any::<bool>()
        )
            .prop_map(|(cell, index, output, display_id, update)| FromKernel::Output {
                cell,
                index,
                output,
                display_id,
                update,
            }),
        (
            any::<u64>(),
            outcome,
            any::<u64>(),
            of(cell_error().boxed()),
            rest.boxed()
        )
            .prop_map(
                |(
                    cell,
                    outcome,
                    duration_us,
                    error,
                    (variables, outputs_dropped, rejections, no_files, findings, names),
                )| {
                    FromKernel::Done {
                        cell,
                        outcome,
                        duration_us,
                        error,
                        variables,
                        outputs_dropped,
                        rejections,
                        no_files,
                        findings,
                        names,
                    }
                }
            ),
        (any::<u64>(), text(), value().boxed()).prop_map(|(call, method, params)| FromKernel::Call {
            call,
            method,
            params
        }),
        (
            any::<u64>(),
            of(any::<u32>()),
            of(obstacle()),
            any::<u64>(),
            any::<u32>(),
            of(obstacle())
        )
            .prop_map(|(cell, pid, refused, bytes, socket, bound)| FromKernel::Kept {
                cell,
                pid,
                refused,
                bytes,
                socket,
                bound,
            }),
        (any::<u64>(), of(any::<u32>()), of(obstacle())).prop_map(|(changes, pid, refused)| {
            FromKernel::Standby {
                changes,
                pid,
                refused,
            }
        }),
    ]
}
