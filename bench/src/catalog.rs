//! Measures, their peers, and the promises about them.

/// Rounds at a time, where rounds in a second are counted.
pub(crate) const WIDTHS: [u32; 5] = [1, 2, 4, 8, 16];
/// Rounds at a time of peers: as many as the project's machines have processors.
pub(crate) const PEER_WIDTH: u32 = 2;
/// Number of sessions that are requested at once.
pub(crate) const CONCURRENT: usize = 200;
/// Requests that run pandas and draw a chart, all at once.
pub(crate) const LOAD: usize = 400;
/// Requests that nobody comes back to.
pub(crate) const ONE_SHOTS: usize = 1000;
/// Clients that ask the gateway for much and read nothing.
pub(crate) const DEAF: usize = 50;
/// Sessions that wait for a connector at once.
pub(crate) const WAITING: usize = 1000;
/// Idle sessions whose memory is measured.
pub(crate) const IDLE: [usize; 2] = [100, 500];

/// The series of rounds in a second at one width.
pub(crate) fn throughput_name(width: u32) -> String {
    format!("throughput_{width}")
}

/// Unit of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    /// Milliseconds.
    Ms,
    /// Milliseconds for so many megabytes.
    MsFor(f64),
    /// Kibibytes.
    Kib,
    /// Mebibytes.
    Mib,
    /// Rounds in a second: more is better.
    PerSecond,
    /// Factor.
    Times,
    /// Number of things.
    Count,
}

/// Something that holds for a median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Promise {
    /// At most this.
    Most(f64),
    /// At least this, by the best of all widths.
    BestLeast(f64),
    /// At most so many times the floor.
    Floors(f64),
    /// At least so many times sooner than ipykernel.
    Sooner(f64),
}

/// One row of the report.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    /// Its series, without `cellblock/`.
    pub(crate) series: &'static str,
    /// For people.
    pub(crate) what: &'static str,
    pub(crate) unit: Unit,
    /// Series of peers that do the same.
    pub(crate) peers: &'static [&'static str],
    /// Series of floors, which add up.
    pub(crate) floor: &'static [&'static str],
    pub(crate) promises: &'static [Promise],
}

const FIRST: &[&str] = &["python/first", "bwrap/first", "runsc/first", "ipykernel/first"];
const CHART: &[&str] = &["python/chart", "bwrap/chart", "runsc/chart", "ipykernel/chart"];
const NEW: &[&str] = &["floor/fork", "floor/namespaces"];
const ROUND_TRIP: &[&str] = &["floor/round_trip"];
const RATES: &[&str] = &["python/throughput_2", "bwrap/throughput_2", "runsc/throughput_2"];

const fn row(series: &'static str, what: &'static str, unit: Unit) -> Measure {
    Measure {
        series,
        what,
        unit,
        peers: &[],
        floor: &[],
        promises: &[],
    }
}

impl Measure {
    const fn beside(mut self, peers: &'static [&'static str]) -> Self {
        self.peers = peers;
        self
    }

    const fn above(mut self, floor: &'static [&'static str]) -> Self {
        self.floor = floor;
        self
    }

    const fn promises(mut self, promises: &'static [Promise]) -> Self {
        self.promises = promises;
        self
    }
}

/// Every row of the report, in its order.
pub(crate) const MEASURES: [Measure; 91] = [
    row("create_cold", "create, no pool", Unit::Ms)
        .above(NEW)
        .promises(&[Promise::Floors(2.0)]),
    row("create_pool", "create, from the pool", Unit::Ms).above(ROUND_TRIP),
    row("first_cell", "first cell `1+1` of a session", Unit::Ms).above(ROUND_TRIP),
    row("cold_first", "create → `1+1`, no pool", Unit::Ms)
        .beside(FIRST)
        .above(NEW)
        .promises(&[Promise::Most(15.0), Promise::Floors(2.0)]),
    row("pool_first", "create → `1+1`, from the pool", Unit::Ms)
        .beside(FIRST)
        .above(ROUND_TRIP)
        .promises(&[Promise::Most(2.0), Promise::Floors(3.0)]),
    row("cold_chart", "create → table and chart, no pool", Unit::Ms)
        .beside(CHART)
        .above(&["floor/fork_chart"])
        .promises(&[Promise::Sooner(20.0)]),
    row("pool_chart", "create → table and chart, from the pool", Unit::Ms)
        .beside(CHART)
        .above(&["floor/fork_chart"])
        .promises(&[Promise::Sooner(20.0)]),
    row("warm", "warm `1+1`", Unit::Ms)
        .beside(&["ipykernel/warm"])
        .above(ROUND_TRIP)
        .promises(&[Promise::Most(0.5), Promise::Floors(3.0)]),
    row("checkpoint_number", "keep a checkpoint of a number", Unit::Ms),
    row(
        "checkpoint_array",
        "keep a checkpoint of 200 MB of numpy",
        Unit::Ms,
    )
    .promises(&[Promise::Most(5.0)]),
    row(
        "checkpoint_objects",
        "keep a checkpoint of 1 GB of Python objects",
        Unit::Ms,
    )
    .promises(&[Promise::Most(25.0)]),
    row(
        "checkpoint_files",
        "keep a checkpoint of 1,000 files, unchanged",
        Unit::Ms,
    )
    .promises(&[Promise::Most(6.5)]),
    row(
        "checkpoint_memory",
        "memory of a checkpoint of a number",
        Unit::Mib,
    )
    .promises(&[Promise::Most(4.0)]),
    row("rollback_number", "roll back to a number", Unit::Ms).promises(&[Promise::Most(2.0)]),
    row("rollback_array", "roll back to 200 MB of numpy", Unit::Ms).promises(&[Promise::Most(2.0)]),
    row(
        "rollback_objects",
        "roll back to 1 GB of Python objects",
        Unit::Ms,
    )
    .promises(&[Promise::Most(2.0)]),
    row("rollback_files", "roll back to 1,000 files, unchanged", Unit::Ms).promises(&[Promise::Most(3.5)]),
    row("try_adds", "a try, without its cell `1+1`", Unit::Ms).promises(&[Promise::Most(3.0)]),
    row("try_discard", "discard it", Unit::Ms),
    row(
        "rescue_next",
        "`1+1` after a cell that killed its kernel",
        Unit::Ms,
    )
    .promises(&[Promise::Most(3.0)]),
    row(
        "rescue_next_on",
        "the same, with a standby before every cell",
        Unit::Ms,
    ),
    row("fork_number", "fork a session with a number", Unit::Ms).promises(&[Promise::Most(40.0)]),
    row("fork_array", "fork a session with 200 MB of numpy", Unit::Ms),
    row(
        "fork_array_beyond",
        "the same, beyond the session with a number",
        Unit::Ms,
    )
    .above(&["floor/memcpy_array"])
    .promises(&[Promise::Floors(1.2)]),
    row("fork_first", "first cell `1+1` of a fork", Unit::Ms),
    row("record_off", "a cell that shows a table, not recorded", Unit::Ms),
    row("record_on", "the same, recorded", Unit::Ms),
    row("interrupt", "stop a Python loop, after the request", Unit::Ms)
        .beside(&["ipykernel/interrupt"])
        .above(&["floor/interrupt"]),
    row(
        "deadline_loop",
        "stop a Python loop, after its deadline",
        Unit::Ms,
    )
    .above(&["floor/interrupt"])
    .promises(&[Promise::Most(100.0)]),
    row(
        "deadline_deaf",
        "stop C code that ignores signals, after its deadline",
        Unit::Ms,
    )
    .promises(&[Promise::Most(1000.0)]),
    row("exec", "the workbench runs `true`, warm", Unit::Ms)
        .beside(&["bwrap/exec", "runsc/exec"])
        .promises(&[Promise::Most(3.0)]),
    row("write_1mb", "the workbench writes a file of 1 MB", Unit::Ms),
    row("edit_1mb", "the workbench edits a file of 1 MB", Unit::Ms),
    row(
        "dataset_1mb",
        "a CSV of 1 MB becomes a dataset of a live sandbox",
        Unit::Ms,
    ),
    row(
        "dataset_1gb",
        "a CSV of 1 GB becomes a dataset of a live sandbox",
        Unit::Ms,
    ),
    row(
        "dataset_ratio",
        "the same, relative to the CSV of 1 MB",
        Unit::Times,
    )
    .promises(&[Promise::Most(2.0)]),
    row(
        "files_none",
        "the workbench runs `sh` without output files",
        Unit::Ms,
    ),
    row(
        "files_out",
        "the workbench runs `sh` with 20 output files of 10 kB",
        Unit::Ms,
    ),
    row("stdout", "10 MB on stdout", Unit::MsFor(10.0))
        .beside(&[
            "python/stdout",
            "bwrap/stdout",
            "runsc/stdout",
            "ipykernel/stdout",
        ])
        .above(&["floor/stdout"]),
    row(
        "frame_in",
        "100 MB table in as Parquet, and used",
        Unit::MsFor(100.0),
    )
    .beside(&["python/frame_in"])
    .above(&["floor/frame_in"]),
    row(
        "frame_out",
        "100 MB table shown, stored as Parquet",
        Unit::MsFor(100.0),
    )
    .beside(&["python/frame_out"])
    .above(&["floor/frame_out"]),
    row("bind_1", "1 MB of JSON rows bound, and used", Unit::MsFor(1.0))
        .beside(&["python/bind_1"])
        .above(&["floor/bind_1"]),
    row("bind_10", "10 MB of JSON rows bound, and used", Unit::MsFor(10.0))
        .beside(&["python/bind_10"])
        .above(&["floor/bind_10"]),
    row(
        "bind_100",
        "100 MB of JSON rows bound, and used",
        Unit::MsFor(100.0),
    )
    .beside(&["python/bind_100"])
    .above(&["floor/bind_100"]),
    row(
        "change_series",
        "`derive_change_series`, 1,000 entities × 10,000 periods",
        Unit::Ms,
    )
    .beside(&["python/change_series"]),
    row("fetch_1kb", "a connector's answer of 1 KB in a cell", Unit::Ms).promises(&[Promise::Most(1.0)]),
    row("fetch_cached", "the same from the memo", Unit::Ms).promises(&[Promise::Most(0.3)]),
    row(
        "fetch_10mb",
        "an Arrow table of 10 MB from a connector",
        Unit::MsFor(10.0),
    )
    .above(&["floor/copy_10mb"])
    .promises(&[Promise::Floors(2.0)]),
    row(
        "fetch_crowd",
        "1,000 sessions that wait for a connector, from its answer until all have their results",
        Unit::Ms,
    ),
    row(
        "fetch_crowd_host",
        "growth of the host's memory with these calls",
        Unit::Mib,
    ),
    row(
        "fetch_crowd_uss",
        "private memory of all these sandboxes",
        Unit::Mib,
    ),
    row(
        "concurrent",
        "200 short sessions at once, until all are closed",
        Unit::Ms,
    )
    .beside(&["python/concurrent", "bwrap/concurrent"])
    .above(&["floor/concurrent"]),
    row(
        "concurrent_session",
        "each of those sessions, until its result",
        Unit::Ms,
    )
    .beside(&["python/concurrent_session", "bwrap/concurrent_session"])
    .above(&["floor/concurrent_session"]),
    row(
        "throughput_1",
        "create-run-destroy, one at a time",
        Unit::PerSecond,
    )
    .above(&["floor/throughput_1"])
    .promises(&[Promise::BestLeast(100.0)]),
    row("throughput_2", "create-run-destroy, 2 at a time", Unit::PerSecond)
        .beside(RATES)
        .above(&["floor/throughput_2"])
        .promises(&[Promise::BestLeast(100.0)]),
    row("throughput_4", "create-run-destroy, 4 at a time", Unit::PerSecond)
        .above(&["floor/throughput_4"])
        .promises(&[Promise::BestLeast(100.0)]),
    row("throughput_8", "create-run-destroy, 8 at a time", Unit::PerSecond)
        .above(&["floor/throughput_8"])
        .promises(&[Promise::BestLeast(100.0)]),
    row(
        "throughput_16",
        "create-run-destroy, 16 at a time",
        Unit::PerSecond,
    )
    .above(&["floor/throughput_16"])
    .promises(&[Promise::BestLeast(100.0)]),
    row(
        "idle_uss_100",
        "private memory (USS) of an idle session, of 100",
        Unit::Kib,
    )
    .beside(&["ipykernel/idle_uss"])
    .above(&["floor/idle_uss"])
    .promises(&[Promise::Most(8192.0)]),
    row(
        "idle_pss_100",
        "proportional memory (PSS) of an idle session, of 100",
        Unit::Kib,
    )
    .beside(&["ipykernel/idle_pss"])
    .above(&["floor/idle_pss"]),
    row(
        "idle_uss_500",
        "private memory (USS) of an idle session, of 500",
        Unit::Kib,
    )
    .beside(&["ipykernel/idle_uss"])
    .above(&["floor/idle_uss"])
    .promises(&[Promise::Most(8192.0)]),
    // No floor: it has 100 children, and a share depends on how many share.
    row(
        "idle_pss_500",
        "proportional memory (PSS) of an idle session, of 500",
        Unit::Kib,
    )
    .beside(&["ipykernel/idle_pss"]),
    row("total_uss_500", "500 idle sessions: private memory", Unit::Mib).promises(&[Promise::Most(4096.0)]),
    row(
        "total_pss_500",
        "500 idle sessions: PSS with template and launcher",
        Unit::Mib,
    )
    .promises(&[Promise::Most(4096.0)]),
    row(
        "total_used_500",
        "500 idle sessions: reduction of the machine's available memory",
        Unit::Mib,
    )
    .promises(&[Promise::Most(4096.0)]),
    row(
        "rested_used",
        "the same after a minute without a request",
        Unit::Mib,
    )
    .promises(&[Promise::Most(2000.0)]),
    row(
        "template_pss_500",
        "the template with 500 sessions, PSS",
        Unit::Mib,
    ),
    row(
        "template_uss_500",
        "the template with 500 sessions, USS",
        Unit::Mib,
    ),
    row(
        "launcher_pss_500",
        "launcher and keep with 500 sessions, PSS",
        Unit::Mib,
    ),
    row(
        "total_used_100",
        "100 idle sessions: reduction of the machine's available memory",
        Unit::Mib,
    ),
    row(
        "flood",
        "growth of the host's memory under a flood of stdout, ended at 64 MiB",
        Unit::Mib,
    )
    .beside(&["ipykernel/flood"]),
    row(
        "flood_1gib",
        "the same for 1 GiB, with the limit raised",
        Unit::Mib,
    ),
    row(
        "gateway_request",
        "a request through the gateway, answered with one delta",
        Unit::Ms,
    )
    .above(&["provider/gateway_request"]),
    row(
        "gateway_request_added",
        "of this, overhead of the gateway over the provider",
        Unit::Ms,
    ),
    row(
        "gateway_delta",
        "age of a delta that arrives through the gateway",
        Unit::Ms,
    )
    .above(&["provider/gateway_delta"]),
    row(
        "gateway_delta_added",
        "of this, overhead of the gateway, mean of a stream",
        Unit::Ms,
    ),
    row("gateway_burst", "each of 10,000 deltas without pauses", Unit::Ms).above(&["provider/gateway_burst"]),
    row(
        "gateway_code",
        "a request whose model runs `1+1` in a new container",
        Unit::Ms,
    ),
    row(
        "gateway_code_rate",
        "such requests per second, 2 at a time",
        Unit::PerSecond,
    ),
    row(
        "gateway_chart",
        "a request whose model makes a table and a chart, 2 at a time",
        Unit::Ms,
    )
    .above(&["floor/fork_chart"])
    .promises(&[Promise::Floors(1.2)]),
    row(
        "gateway_crowd",
        "200 streams at once of 100 deltas, 20 ms apart",
        Unit::Ms,
    )
    .above(&["provider/gateway_crowd"]),
    row(
        "gateway_crowd_delta",
        "age of their deltas, median of each stream",
        Unit::Ms,
    )
    .above(&["provider/gateway_crowd_delta"]),
    row(
        "gateway_crowd_slowest",
        "the oldest delta of each stream",
        Unit::Ms,
    )
    .above(&["provider/gateway_crowd_slowest"]),
    row(
        "gateway_crowd_memory",
        "maximum growth of the gateway's memory with those",
        Unit::Mib,
    )
    .promises(&[Promise::Most(64.0)]),
    row(
        "gateway_deaf_memory",
        "the same with 50 clients that do not read 64 MiB each",
        Unit::Mib,
    ),
    row(
        "gateway_load",
        "each of 400 concurrent requests whose code makes a table and a chart",
        Unit::Ms,
    ),
    row(
        "gateway_load_failed",
        "failed code calls among those",
        Unit::Count,
    )
    .promises(&[Promise::Most(0.0)]),
    row(
        "gateway_load_memory",
        "maximum growth of the gateway's memory with those 400",
        Unit::Mib,
    ),
    row(
        "gateway_load_sandboxes",
        "maximum private memory of their sandboxes",
        Unit::Mib,
    ),
    row(
        "gateway_one_shot",
        "each of 1,000 one-shot requests, 8 at a time",
        Unit::Ms,
    ),
    row(
        "gateway_one_shots_left",
        "remaining sandboxes of those after 5 s",
        Unit::Count,
    )
    .promises(&[Promise::Most(8.0)]),
];

/// The unit of any series, with who it is of.
pub(crate) fn unit_of(series: &str) -> Unit {
    let what = series.split_once('/').map_or(series, |(_, what)| what);
    let known = MEASURES
        .iter()
        .find(|it| it.series == what || it.peers.contains(&series) || it.floor.contains(&series));
    match known {
        Some(measure) => measure.unit,
        None if what.starts_with("total_")
            || what.starts_with("template_")
            || what.starts_with("launcher_") =>
        {
            Unit::Mib
        }
        None if what.starts_with("idle_") => Unit::Kib,
        None => Unit::Ms,
    }
}

/// Returns the name of a program in a report.
pub(crate) fn name_of(who: &str) -> &'static str {
    match who {
        "cellblock" => "Cellblock",
        "python" => "`python -c`",
        "bwrap" => "`bwrap` + python",
        "runsc" => "`runsc do` + python",
        "ipykernel" => "ipykernel",
        "provider" => "the provider alone",
        _ => "floor",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_series_has_two_rows() {
        for (index, measure) in MEASURES.iter().enumerate() {
            assert!(
                MEASURES[index + 1..].iter().all(|it| it.series != measure.series),
                "{}",
                measure.series
            );
        }
    }

    #[test]
    fn a_promise_that_compares_has_something_to_compare_to() {
        for measure in &MEASURES {
            for promise in measure.promises {
                match promise {
                    Promise::Floors(_) => assert!(!measure.floor.is_empty(), "{}", measure.series),
                    Promise::Sooner(_) => {
                        assert!(
                            measure.peers.iter().any(|it| it.starts_with("ipykernel/")),
                            "{}",
                            measure.series
                        );
                    }
                    Promise::Most(_) | Promise::BestLeast(_) => {}
                }
            }
        }
    }

    #[test]
    fn series_that_have_no_row_have_a_unit() {
        assert_eq!(unit_of("cellblock/warm"), Unit::Ms);
        assert_eq!(unit_of("python/throughput_2"), Unit::PerSecond);
        assert_eq!(unit_of("cellblock/template_pss_100"), Unit::Mib);
        assert_eq!(unit_of("ipykernel/idle_uss"), Unit::Kib);
        assert_eq!(unit_of("floor/stdout"), Unit::MsFor(10.0));
    }
}
