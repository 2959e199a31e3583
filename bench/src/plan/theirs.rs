//! Probes of peers and floors.

use anyhow::Result;
use serde_json::json;

use super::{CONCURRENT, Group, IDLE, Planner};
use crate::floor::{self, Echo, copy, start_fork, start_namespaces};
use crate::peer::{self, start_ipykernel};
use crate::probe::WIDTHS;
use crate::programs::{
    ANNOUNCED_LOOP, CHART, FLOOD, FRAME_IN, FRAME_OUT, PRINT_CHART, PRINT_SUM, READ_ROWS, SHOUT, SHOUT_BYTES,
    SUM,
};
use crate::python::Python;

/// Rounds at a time of peers: as many as the project's machines have processors.
const PEER_WIDTH: usize = 2;

impl Planner<'_> {
    pub(super) fn floors(&mut self, python: &Python) {
        use Group::{
            Chart, Concurrent, Connector, Create, First, Interrupt, Memory, Stdout, Throughput, Warm,
        };
        let seconds = self.while_counting().as_secs_f64() / 2.0;
        if self.wants(&[Create, First, Chart, Concurrent, Throughput, Memory])
            && let Some(driver) = self.started("floor of a bare fork", start_fork(python))
        {
            let mut forks = self.of(floor::WHO, driver);
            let sum = json!({"do": "one", "code": SUM, "series": ["fork", "fork_and_reap"]});
            forks.request(&[Create, First], [200, 4], "fork", sum);
            let chart = json!({"do": "one", "code": PRINT_CHART, "series": ["fork_chart"]});
            forks.request(&[Chart], [50, 2], "fork_chart", chart);
            let many = json!({"do": "many", "children": CONCURRENT});
            forks.request(&[Concurrent], [5, 1], "concurrent", many);
            let rates = json!({"do": "throughput", "widths": WIDTHS, "seconds": seconds});
            forks.request(&[Throughput], [3, 1], "throughput", rates);
            let idle = json!({"do": "idle", "children": IDLE[0]});
            forks.request(&[Memory], [1, 1], "idle", idle);
        }
        if self.wants(&[Create, First])
            && let Some(driver) = self.started("floor of bare namespaces", start_namespaces())
        {
            let mut sets = self.of(floor::WHO, driver);
            sets.request(&[Create, First], [100, 4], "namespaces", json!(5));
        }
        let mut bytes = self.of(floor::WHO, ());
        bytes.block(&[Connector], [10, 1], "copy", 20, |(), turn, n| copy(turn, n));
        if let Some(echo) = self.started("floor of a bare round trip", Echo::start(python)) {
            let mut echo = self.of(floor::WHO, echo);
            echo.block(&[Create, First, Warm], [40, 2], "round_trip", 50, Echo::sums);
            echo.block(&[Interrupt], [20, 1], "interrupt", 10, Echo::loops);
            echo.block(&[Stdout], [50, 2], "stdout", SHOUT_BYTES, Echo::stdout);
        }
    }

    pub(super) fn processes(&mut self, python: &Python) -> Result<()> {
        let usual = [[200, 4], [20, 1], [50, 2], [5, 1]];
        // It takes so much longer that a few must do; two hundred at once are more than the machine bears.
        let few = [[30, 1], [8, 1], [10, 1], [0, 0]];
        for (who, launcher, turns) in [
            ("python", Ok(python.clone()), usual),
            ("bwrap", peer::bwrap(python), usual),
            ("runsc", peer::runsc(python), few),
        ] {
            if let Some(launcher) = self.started(who, launcher) {
                self.process(&launcher, turns)?;
            }
        }
        Ok(())
    }

    /// Probes of one way to start processes; turns of the first result, the chart, stdout and many at once.
    fn process(&mut self, python: &Python, turns: [[usize; 2]; 4]) -> Result<()> {
        use Group::{Chart, Concurrent, First, Stdout, Throughput, Workbench};
        let [first, chart, stdout, many] = turns;
        let shout = (Some(SHOUT), SHOUT_BYTES);
        let rounds = (PEER_WIDTH, self.while_counting());
        let mut theirs = self.of(python.who, python.clone());
        theirs.block(&[First], first, "first", (Some(PRINT_SUM), 2), peer::run);
        theirs.block(&[Chart], chart, "chart", (Some(PRINT_CHART), 200), peer::run);
        theirs.block(&[Stdout], stdout, "stdout", shout, peer::run);
        theirs.block(&[Concurrent], many, "concurrent", CONCURRENT, peer::concurrent);
        theirs.block(&[Throughput], [3, 1], "throughput", rounds, peer::throughput);
        if !python.wall.is_empty() {
            theirs.block(&[Workbench], first, "exec", (None, 0), peer::run);
            return Ok(());
        }
        self.calls(python)
    }

    /// Probes of single calls in a process without a wall.
    fn calls(&mut self, python: &Python) -> Result<()> {
        use Group::{Derive, Frame};
        let (wants_frame, wants_rows) = (self.wants(&[Frame]), self.wants(&[Derive]));
        let mut theirs = self.of(python.who, python.clone());
        if wants_frame {
            let file = python.frame_file()?;
            let made = (FRAME_OUT, file.with_file_name("frame-out.parquet"), true);
            let read = (FRAME_IN, file, false);
            theirs.block(&[Frame], [6, 1], "frame_in", read, peer::time_inside);
            theirs.block(&[Frame], [6, 1], "frame_out", made, peer::time_inside);
        }
        let rows = [(20, "bind_1", 1), (10, "bind_10", 10), (6, "bind_100", 100)];
        for (turns, what, megabytes) in rows.into_iter().filter(|_| wants_rows) {
            let case = (READ_ROWS, python.rows_file(megabytes)?, false);
            theirs.block(&[Derive], [turns, 1], what, case, peer::time_inside);
        }
        Ok(())
    }

    pub(super) fn ipykernel(&mut self, python: &Python) {
        use Group::{Chart, First, Flood, Interrupt, Memory, Stdout, Warm};
        if !self.wants(&[First, Chart, Warm, Interrupt, Stdout, Flood, Memory]) {
            return;
        }
        let Some(driver) = self.started("ipykernel", start_ipykernel(python)) else {
            return;
        };
        let mut theirs = self.of("ipykernel", driver);
        let first = json!({"do": "first", "series": "first", "code": SUM});
        theirs.request(&[First], [20, 1], "first", first);
        let chart = json!({"do": "first", "series": "chart", "code": CHART});
        theirs.request(&[Chart], [20, 1], "chart", chart);
        let warm = json!({"do": "warm", "code": SUM, "cells": 25});
        theirs.request(&[Warm], [40, 2], "warm", warm);
        let interrupt = json!({"do": "interrupt", "code": ANNOUNCED_LOOP, "times": 10});
        theirs.request(&[Interrupt], [20, 1], "interrupt", interrupt);
        let stdout = json!({"do": "stdout", "code": SHOUT, "bytes": SHOUT_BYTES});
        theirs.request(&[Stdout], [20, 1], "stdout", stdout);
        // As much as Cellblock lets through by default.
        let flood = json!({"do": "flood", "code": FLOOD.replace("TIMES", "64"), "bytes": 64 << 20});
        theirs.request(&[Flood], [3, 1], "flood", flood);
        theirs.request(&[Memory], [2, 1], "idle", json!({"do": "idle", "code": SUM}));
    }
}
