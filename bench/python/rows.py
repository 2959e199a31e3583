"""Rows of the report: their series, their peers and floors, and what is promised of their medians."""

from __future__ import annotations

from dataclasses import dataclass

ALL = ("python", "bwrap", "runsc", "ipykernel")
FIRST = [f"{who}/first" for who in ALL]
CHART = [f"{who}/chart" for who in ALL]
STDOUT = [f"{who}/stdout" for who in ALL]
RATES = ["python/throughput_2", "bwrap/throughput_2", "runsc/throughput_2"]
CONCURRENT = ["python/concurrent", "bwrap/concurrent"]
EACH_CONCURRENT = ["python/concurrent_session", "bwrap/concurrent_session"]
NEW = ["floor/fork", "floor/namespaces"]
ROUND_TRIP = ["floor/round_trip"]
FORK_CHART = ["floor/fork_chart"]
EACH_FORK = ["floor/concurrent_session"]
WRITE = ["floor/frame_out"]
USS, PSS = ["ipykernel/idle_uss"], ["ipykernel/idle_pss"]
FORKS_USS, FORKS_PSS = ["floor/idle_uss"], ["floor/idle_pss"]


@dataclass(frozen=True)
class Row:
    """One row. Without a promise of its kind, `most`, `best`, `floors` and `sooner` are `None`."""

    # Name without that of Cellblock, `cellblock/`.
    series: str
    # For people.
    what: str
    # More is better for rates, `/s`.
    unit: str = "ms"
    # Megabytes that are processed in a sample, which give a second unit.
    megabytes: int | None = None
    # Series of programs that do the same.
    peers: list[str] | tuple[()] = ()
    # Series that add up to the least that is possible.
    floor: list[str] | tuple[()] = ()
    # At most this.
    most: float | None = None
    # At least this, by the best of all widths.
    best: float | None = None
    # At most so many times the floor.
    floors: float | None = None
    # At least so many times sooner than ipykernel.
    sooner: float | None = None

STANDBYS = [
    Row(f"standby_{content}_{policy}_{what}", f"{shown} of a session with {name}, rescue `{policy}`", unit)
    for content, name in {
        "number": "a number",
        "table": "a small table",
        "array": "an array of 500 MB",
        "objects": "500 MB of small objects",
    }.items()
    for policy in ("on", "idle", "off")
    for what, shown, unit in (
        ("at_once", "`1+1` at once", "ms"),
        ("spaced", "`1+1` after a pause", "ms"),
        ("cpu", "the kernel's CPU time per cell", "ms"),
        ("memory", "memory", "MiB"),
    )
]
ROWS = [
    Row("create_cold", "create, no pool", floor=NEW, floors=2),
    Row("create_pool", "create, from the pool", floor=ROUND_TRIP),
    Row("first_cell", "first cell `1+1` of a session", floor=ROUND_TRIP),
    Row("cold_first", "create → `1+1`, no pool", peers=FIRST, floor=NEW, most=15, floors=2),
    Row("pool_first", "create → `1+1`, from the pool", peers=FIRST, floor=ROUND_TRIP, most=2, floors=3),
    Row("cold_chart", "create → table and chart, no pool", peers=CHART, floor=FORK_CHART, sooner=20),
    Row("pool_chart", "create → table and chart, from the pool", peers=CHART, floor=FORK_CHART, sooner=20),
    Row("warm", "warm `1+1`", peers=["ipykernel/warm"], floor=ROUND_TRIP, most=0.5, floors=3),
    Row("checkpoint_number", "keep a checkpoint of a number"),
    Row("checkpoint_array", "keep a checkpoint of 200 MB of numpy", most=5),
    Row("checkpoint_objects", "keep a checkpoint of 1 GB of Python objects", most=25),
    Row("checkpoint_files", "keep a checkpoint of 1,000 files, unchanged", most=6.5),
    Row("checkpoint_memory", "memory of a checkpoint of a number", unit="MiB", most=4),
    Row("rollback_number", "roll back to a number", most=2),
    Row("rollback_array", "roll back to 200 MB of numpy", most=2),
    Row("rollback_objects", "roll back to 1 GB of Python objects", most=2),
    Row("rollback_files", "roll back to 1,000 files, unchanged", most=3.5),
    Row("try_adds", "a try, without its cell `1+1`", most=3),
    Row("try_discard", "discard it"),
    Row("rescue_next", "`1+1` after a cell that killed its kernel", most=3),
    Row("rescue_next_on", "the same, with a standby before every cell"),
    Row("fork_number", "fork a session with a number", most=40),
    Row("fork_array", "fork a session with 200 MB of numpy"),
    Row("fork_array_beyond", "the same, beyond the session with a number", floor=["floor/memcpy_array"], floors=1.2),
    Row("fork_first", "first cell `1+1` of a fork"),
    Row("fork_number_first", "first cell `1+1` of a fork with a number"),
    Row("fork_array_first", "first cell `1+1` of a fork with 200 MB of numpy"),
    Row("fork_table", "fork a session with a small table"),
    Row("fork_table_first", "first cell `1+1` of a fork with a small table"),
    Row("fork_files", "fork a session with 1,000 files"),
    Row("fork_files_first", "first cell `1+1` of a fork with 1,000 files"),
    Row("record_off", "a cell that shows a table, not recorded"),
    Row("record_on", "the same, recorded"),
    Row("interrupt", "stop a Python loop, after the request", peers=["ipykernel/interrupt"], floor=["floor/interrupt"]),
    Row("deadline_loop", "stop a Python loop, after its deadline", floor=["floor/interrupt"], most=100),
    Row("deadline_deaf", "stop C code that ignores signals, after its deadline", most=1000),
    Row("exec", "the workbench runs `true`, warm", peers=["bwrap/exec", "runsc/exec"], most=3),
    Row("write_1mb", "the workbench writes a file of 1 MB"),
    Row("edit_1mb", "the workbench edits a file of 1 MB"),
    Row("dataset_1mb", "a CSV of 1 MB becomes a dataset of a live sandbox"),
    Row("dataset_1gb", "a CSV of 1 GB becomes a dataset of a live sandbox"),
    Row("dataset_ratio", "the same, relative to the CSV of 1 MB", unit="×", most=2),
    Row("files_none", "the workbench runs `sh` without output files"),
    Row("files_out", "the workbench runs `sh` with 20 output files of 10 kB"),
    Row("stdout", "10 MB on stdout", megabytes=10, peers=STDOUT, floor=["floor/stdout"]),
    Row("frame_in", "100 MB table in as Parquet, and used", megabytes=100, peers=["python/frame_in"], floor=["floor/frame_in"]),
    Row("frame_out", "100 MB table shown, stored as Parquet", megabytes=100, peers=["python/frame_out"], floor=WRITE),
    Row("bind_1", "1 MB of JSON rows bound, and used", megabytes=1, peers=["python/bind_1"], floor=["floor/bind_1"]),
    Row("bind_10", "10 MB of JSON rows bound, and used", megabytes=10, peers=["python/bind_10"], floor=["floor/bind_10"]),
    Row("bind_100", "100 MB of JSON rows bound, and used", megabytes=100, peers=["python/bind_100"], floor=["floor/bind_100"]),
    Row("change_series", "`derive_change_series`, 1,000 entities × 10,000 periods", peers=["python/change_series"]),
    Row("fetch_1kb", "a connector's answer of 1 KB in a cell", most=1),
    Row("fetch_cached", "the same from the memo", most=0.3),
    Row("fetch_10mb", "an Arrow table of 10 MB from a connector", megabytes=10, floor=["floor/copy_10mb"], floors=2),
    Row("fetch_crowd", "1,000 sessions that wait for a connector, from its answer until all have their results"),
    Row("fetch_crowd_host", "growth of the host's memory with these calls", unit="MiB"),
    Row("fetch_crowd_uss", "private memory of all these sandboxes", unit="MiB"),
    Row("concurrent", "200 short sessions at once, until all are closed", peers=CONCURRENT, floor=["floor/concurrent"]),
    Row("concurrent_session", "each of those sessions, until its result", peers=EACH_CONCURRENT, floor=EACH_FORK),
    Row("throughput_1", "create-run-destroy, one at a time", unit="/s", floor=["floor/throughput_1"], best=100),
    Row("throughput_2", "create-run-destroy, 2 at a time", unit="/s", peers=RATES, floor=["floor/throughput_2"], best=100),
    Row("throughput_4", "create-run-destroy, 4 at a time", unit="/s", floor=["floor/throughput_4"], best=100),
    Row("throughput_8", "create-run-destroy, 8 at a time", unit="/s", floor=["floor/throughput_8"], best=100),
    Row("throughput_16", "create-run-destroy, 16 at a time", unit="/s", floor=["floor/throughput_16"], best=100),
    Row("idle_uss_100", "private memory (USS) of an idle session, of 100", unit="KiB", peers=USS, floor=FORKS_USS, most=8192),
    Row("idle_pss_100", "proportional memory (PSS) of an idle session, of 100", unit="KiB", peers=PSS, floor=FORKS_PSS),
    Row("idle_uss_500", "private memory (USS) of an idle session, of 500", unit="KiB", peers=USS, floor=FORKS_USS, most=8192),
    # No floor: it has 100 children, and a share depends on how many share.
    Row("idle_pss_500", "proportional memory (PSS) of an idle session, of 500", unit="KiB", peers=PSS),
    Row("total_uss_500", "500 idle sessions: private memory", unit="MiB", most=4096),
    Row("total_pss_500", "500 idle sessions: PSS with template and launcher", unit="MiB", most=4096),
    Row("total_used_500", "500 idle sessions: reduction of the machine's available memory", unit="MiB", most=4096),
    Row("rested_used", "the same after a minute without a request", unit="MiB", most=2000),
    Row("template_pss_500", "the template with 500 sessions, PSS", unit="MiB"),
    Row("template_uss_500", "the template with 500 sessions, USS", unit="MiB"),
    Row("launcher_pss_500", "launcher and keep with 500 sessions, PSS", unit="MiB"),
    Row("total_used_100", "100 idle sessions: reduction of the machine's available memory", unit="MiB"),
    Row("flood", "growth of the host's memory under a flood of stdout, ended at 64 MiB", unit="MiB", peers=["ipykernel/flood"]),
    Row("flood_1gib", "the same for 1 GiB, with the limit raised", unit="MiB"),
    Row("gateway_request", "a request through the gateway, answered with one delta", floor=["provider/gateway_request"]),
    Row("gateway_request_added", "of this, overhead of the gateway over the provider"),
    Row("gateway_delta", "age of a delta that arrives through the gateway", floor=["provider/gateway_delta"]),
    Row("gateway_delta_added", "of this, overhead of the gateway, mean of a stream"),
    Row("gateway_burst", "each of 10,000 deltas without pauses", floor=["provider/gateway_burst"]),
    Row("gateway_code", "a request whose model runs `1+1` in a new container"),
    Row("gateway_code_rate", "such requests per second, 2 at a time", unit="/s"),
    Row("gateway_chart", "a request whose model makes a table and a chart, 2 at a time", floor=FORK_CHART, floors=1.2),
    Row("gateway_crowd", "200 streams at once of 100 deltas, 20 ms apart", floor=["provider/gateway_crowd"]),
    Row("gateway_crowd_delta", "age of their deltas, median of each stream", floor=["provider/gateway_crowd_delta"]),
    Row("gateway_crowd_slowest", "the oldest delta of each stream", floor=["provider/gateway_crowd_slowest"]),
    Row("gateway_crowd_memory", "maximum growth of the gateway's memory with those", unit="MiB", most=64),
    Row("gateway_deaf_memory", "the same with 50 clients that do not read 64 MiB each", unit="MiB"),
    Row("gateway_load", "each of 400 concurrent requests whose code makes a table and a chart"),
    Row("gateway_load_failed", "failed code calls among those", unit="", most=0),
    Row("gateway_load_memory", "maximum growth of the gateway's memory with those 400", unit="MiB"),
    Row("gateway_load_sandboxes", "maximum private memory of their sandboxes", unit="MiB"),
    Row("gateway_one_shot", "each of 1,000 one-shot requests, 8 at a time"),
    Row("gateway_one_shots_left", "remaining sandboxes of those after 5 s", unit="", most=8),
    *STANDBYS,
]
