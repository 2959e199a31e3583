//! Probes of Cellblock: through its Rust API, and of its gateway.

use std::sync::Arc;

use anyhow::Result;

use super::{CONCURRENT, Group, IDLE, Planner};
use crate::gateway::Gateways;
use crate::gateway::load::{analyses, load, one_shots};
use crate::gateway::streams::{burst, crowd, deltas, requests, stalled_clients};
use crate::probe::WHO;
use crate::programs::{ARRAY, CHART, FILES, LARGE_ARRAY, MANY_OBJECTS, OBJECTS, SMALL_TABLE, SUM};
use crate::python::Python;
use crate::subject::Subject;
use crate::subject::cells::{
    concurrent, create, deadline, first_cell, frames, interrupt, stdout, throughput, warm,
};
use crate::subject::connector::{calls, waiting_calls};
use crate::subject::derive::{bind, change_series};
use crate::subject::live::{checkpoints, forks, records, tries};
use crate::subject::memory::{flood, idle};
use crate::subject::standby::standby;
use crate::subject::workbench::tools;

impl Planner<'_> {
    pub(super) fn cellblock(&mut self, subject: &Subject, python: &Python) -> Result<()> {
        use Group::{Chart, Concurrent, Connector, Create, Derive, First, Flood, Frame, Interrupt, Live};
        use Group::{Memory, Standby, Stdout, Throughput, Warm, Workbench};
        let (cold_chart, pool_chart) = ((false, CHART, 2), (true, CHART, 2));
        let time = self.while_counting();
        let frame = self.wants(&[Frame]).then(|| python.frame_file()).transpose()?;
        let mut ours = self.of(WHO, subject.clone());
        ours.add(&[Create], [200, 4], "create_cold", false, create);
        ours.add(&[Create], [200, 4], "create_pool", true, create);
        ours.add(&[First], [200, 4], "cold_first", (false, SUM, 1), first_cell);
        ours.add(&[First], [200, 4], "pool_first", (true, SUM, 1), first_cell);
        ours.add(&[Chart], [100, 2], "cold_chart", cold_chart, first_cell);
        ours.add(&[Chart], [100, 2], "pool_chart", pool_chart, first_cell);
        ours.add(&[Warm], [40, 2], "warm", 50, warm);
        for (turns, what, content, code) in [
            (10, "checkpoint_number", "number", "held = 1"),
            (10, "checkpoint_array", "array", ARRAY),
            (3, "checkpoint_objects", "objects", OBJECTS),
            (10, "checkpoint_files", "files", FILES),
        ] {
            ours.add(&[Live], [turns, 1], what, (content, code, 10), checkpoints);
        }
        ours.add(&[Live], [10, 1], "try_adds", 10, tries);
        ours.add(&[Live], [5, 1], "fork_number", 10, forks);
        ours.add(&[Live], [10, 1], "record_on", 50, records);
        for (what, content, code) in [
            ("standby_number", "number", "kept = 1"),
            ("standby_table", "table", SMALL_TABLE),
            ("standby_array", "array", LARGE_ARRAY),
            ("standby_objects", "objects", MANY_OBJECTS),
        ] {
            ours.add(&[Standby], [5, 1], what, (content, code), standby);
        }
        ours.add(&[Workbench], [20, 1], "workbench", 20, tools);
        ours.add(&[Interrupt], [20, 1], "interrupt", 10, interrupt);
        ours.add(&[Interrupt], [20, 1], "deadline_loop", (false, 10), deadline);
        ours.add(&[Interrupt], [5, 1], "deadline_deaf", (true, 4), deadline);
        ours.add(&[Stdout], [50, 2], "stdout", (), stdout);
        if let Some(file) = frame {
            ours.add(&[Frame], [12, 1], "frame", file, frames);
        }
        ours.add(&[Derive], [50, 1], "bind_1", 1, bind);
        ours.add(&[Derive], [20, 1], "bind_10", 10, bind);
        ours.add(&[Derive], [6, 1], "bind_100", 100, bind);
        ours.add(&[Derive], [6, 1], "change_series", (), change_series);
        ours.add(&[Connector], [20, 1], "fetch", (200, 5), calls);
        ours.add(&[Connector], [3, 1], "fetch_crowd", 1000, waiting_calls);
        ours.add(&[Concurrent], [5, 1], "concurrent", CONCURRENT, concurrent);
        ours.add(&[Throughput], [3, 1], "throughput", time, throughput);
        ours.add(&[Flood], [3, 1], "flood", false, flood);
        ours.add(&[Flood], [3, 1], "flood_1gib", true, flood);
        ours.add(&[Memory], [2, 1], "idle", IDLE, idle);
        Ok(())
    }

    pub(super) fn gateway(&mut self) {
        let group = [Group::Gateway];
        let time = self.while_counting();
        let mut ours = self.of(WHO, Arc::<Gateways>::default());
        ours.add(&group, [20, 1], "gateway_request", 20, requests);
        ours.add(&group, [10, 1], "gateway_delta", 100, deltas);
        ours.add(&group, [20, 1], "gateway_burst", 10_000, burst);
        ours.add(&group, [5, 1], "gateway_code", (10, time), analyses);
        let streams = (CONCURRENT, 100);
        ours.add(&group, [5, 1], "gateway_crowd", streams, crowd);
        let deaf = (50, 64 << 20);
        ours.add(&group, [2, 1], "gateway_deaf_memory", deaf, stalled_clients);
        ours.add(&group, [3, 1], "gateway_load", 400, load);
        ours.add(&group, [1, 1], "gateway_one_shot", 1000, one_shots);
    }
}
