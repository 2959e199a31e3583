//! Further runs of programs of tests: over other backends, and with warm hosts.

use crate::{find_program, is_everything_required};

/// A further run of a program, with variables in its environment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(super) program: &'static str,
    pub(super) name: &'static str,
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// Parts of the names of its tests, if not all of them run.
    pub(super) only: &'static [&'static str],
    /// A part of it that runs instead, except for `cargo xtask ci walls`: machines are slow.
    pub(super) part: Option<VariantPart>,
    /// Whether the program runs only so.
    pub(super) is_only_run: bool,
    /// A program without which all of its tests would fail.
    pub(super) needs: Option<&'static str>,
    /// Whether tests that fail run once more, when no other program runs: code in machines may
    /// reach limits beside others.
    pub(super) again: bool,
}

/// A part of a further run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct VariantPart {
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// Parts of the names of its tests, if it has fewer of them.
    pub(super) only: &'static [&'static str],
}

/// Names the backend over which a program's sandboxes are.
const BACKEND: &str = "CELLBLOCK_TEST_BACKEND";
const CONFORMANCE: &str = "cellblock-interpreter conformance";
const CONTAINMENT: &str = "cellblock-interpreter containment";

/// Those groups of attacks that a backend of its own kernel answers differently; the others take
/// minutes there.
const PROBES: (&str, &str) = (
    "CELLBLOCK_PROBES",
    "descriptors,files,information,kernel,network,privileges,processes",
);

/// One or a few tests of each kind.
const OF_MACHINES: [&str; 48] = [
    "bad_inputs::malformed_csv_is_reported_with_its_line",
    "capabilities::a_backend_lacks_what_it_declares_to_lack_and_no_more",
    "capabilities::the_table_of_the_documentation_is_what_the_backends_declare",
    "checkpoints::a_rollback_brings_back_variables_and_files_as_often_as_wanted",
    "checkpoints::checkpoints_survive_the_death_of_the_kernel",
    "connectors::threads_and_coroutines_fetch_and_large_answers_arrive",
    "derivation::a_result_gets_an_alias_and_can_be_derived_from",
    "display::a_matplotlib_figure_is_a_picture_with_its_data",
    "display::a_pandas_frame_is_a_table_with_types_nulls_and_its_index",
    "egress::a_secret_is_added_outside_and_is_nowhere_inside",
    "egress::listed_hosts_are_reached_and_no_others",
    "endings::a_kernel_that_closes_its_own_channel_is_lost_and_replaced",
    "endings::an_exit_that_python_cannot_catch_loses_the_kernel_and_keeps_the_files",
    "files::files_are_written_and_read_by_the_host_and_links_are_not_followed",
    "files::new_and_changed_files_are_collected_and_unchanged_ones_are_not_again",
    "flood::a_flood_on_stdout_stops_the_cell_at_the_limit",
    "forks::forks_begin_with_variables_open_files_and_the_rest_of_the_state",
    "guard::strict_rejects_ways_around_the_language_and_permits_classes",
    "hibernation::a_hibernated_session_keeps_its_files_and_what_else_the_backend_can_keep",
    "inputs::an_input_of_many_parts_arrives_whole_and_cannot_be_changed_by_a_cell",
    "inputs::parquet_is_bound_as_a_table",
    "isolation::random_generators_differ_between_sessions",
    "isolation::there_is_no_network_and_nothing_of_the_host",
    "isolation::two_sessions_do_not_share_files_variables_or_processes",
    "languages::each_language_keeps_its_state_and_all_share_the_files",
    "lifecycle::a_sandbox_is_created_on_first_use_and_kept",
    "lifecycle::an_idle_sandbox_is_given_back_and_the_next_cell_says_so",
    "limits::a_fork_bomb_hits_the_process_limit_and_the_next_cell_works",
    "limits::bytes_of_every_writable_place_are_bounded",
    "limits::memory_beyond_the_limit_kills_the_kernel_and_says_how_much_there_was",
    "lineage::variables_of_a_producer_have_an_origin_and_scratch_work_has_none",
    "network::a_loopback_leads_nowhere_else_and_is_reported",
    "network::servers_on_the_loopback_answer_clients_in_the_same_session",
    "ports::much_arrives_whole_and_a_side_that_is_slow_makes_the_other_wait",
    "ports::programs_are_listed_and_reached_in_both_families",
    "processes::a_process_runs_beside_cells_and_its_output_is_read_from_any_offset",
    "processes::a_signal_reaches_a_process_and_kill_also_what_it_started",
    "requirements::a_required_package_can_be_imported_also_by_later_cells_and_kernels",
    "rescue::variables_survive_each_way_in_which_a_cell_can_kill_its_kernel",
    "stops::a_c_call_that_never_returns_loses_the_kernel_after_the_grace",
    "stops::an_endless_loop_is_interrupted_at_its_deadline_and_variables_are_kept",
    "streaming::prints_and_values_arrive_in_the_order_of_the_code",
    "terminals::a_process_with_a_terminal_has_its_size_and_hears_of_changes",
    "timeseries::findings_of_helpers_are_part_of_the_execution",
    "tries::a_discarded_try_leaves_nothing_and_a_kept_one_everything",
    "variables::reset_drops_variables_and_keeps_files_and_the_prelude",
    "variables::variables_functions_classes_and_imports_live_across_cells",
    "volumes::a_new_sandbox_has_the_files_of_the_last_revision",
];
/// The groups of attacks on what stands between a machine and the host, or between programs in a machine.
const PROBES_OF_GVISOR: (&str, &str) = ("CELLBLOCK_PROBES", "descriptors,network,privileges");
/// Those of which an emulated machine needs a few minutes.
const PROBES_OF_EMULATED: (&str, &str) = ("CELLBLOCK_PROBES", "descriptors,privileges");
/// Arguments that leave out tests of emulated machines.
const SKIPPED_MACHINES: [&str; 4] = [
    "--skip",
    "snapshots::a_damaged_snapshot_is_made_again",
    "--skip",
    "suspended::a_machine_that_is_too_large_or_has_no_room_on_disk_goes_on",
];

/// All further runs.
pub(super) static VARIANTS: [Variant; 8] = [
    Variant {
        program: "cellblock ordinary_python",
        // Suites of other people that take nine minutes, most of them of code that knows no sandbox.
        name: "suites",
        variables: &[],
        only: &[],
        part: Some(VariantPart {
            variables: &[("CELLBLOCK_SUITES", "part")],
            only: &[],
        }),
        is_only_run: true,
        needs: None,
        again: false,
    },
    Variant {
        program: "cellblock it",
        name: "warm",
        variables: &[("CELLBLOCK_TEST_WARM", "1")],
        // Those whose commands a warm host would run.
        only: &[
            "bad_input::",
            "connectors",
            "ctrl_c::",
            "datasets::",
            "derivation::",
            "guard::",
            "notebook::",
            "python_client::",
            "run::",
            // A warm host's sessions have no checkpoints.
            "--skip",
            "python_client::the_python_package_has_everything_that_a_server_has",
        ],
        part: None,
        is_only_run: false,
        needs: None,
        again: false,
    },
    Variant {
        program: CONFORMANCE,
        name: "remote",
        variables: &[(BACKEND, "remote")],
        only: &[],
        part: None,
        is_only_run: false,
        needs: None,
        again: false,
    },
    Variant {
        program: CONFORMANCE,
        name: "gvisor",
        variables: &[(BACKEND, "gvisor")],
        only: &[],
        part: Some(VariantPart {
            variables: &[],
            only: &OF_MACHINES,
        }),
        is_only_run: false,
        needs: Some("runsc"),
        again: true,
    },
    Variant {
        program: CONFORMANCE,
        name: "microvm",
        variables: &[(BACKEND, "microvm")],
        only: &[],
        part: Some(VariantPart {
            variables: &[],
            only: &OF_MACHINES,
        }),
        is_only_run: false,
        needs: Some("qemu-system-x86_64"),
        again: true,
    },
    Variant {
        program: CONTAINMENT,
        name: "gvisor",
        variables: &[(BACKEND, "gvisor"), PROBES],
        only: &["contained::no_probe"],
        part: Some(VariantPart {
            variables: &[PROBES_OF_GVISOR],
            only: &[],
        }),
        is_only_run: false,
        needs: Some("runsc"),
        again: false,
    },
    Variant {
        program: CONTAINMENT,
        name: "microvm",
        variables: &[(BACKEND, "microvm"), PROBES],
        only: &["contained::no_probe"],
        part: Some(VariantPart {
            variables: &[PROBES_OF_EMULATED],
            only: &[],
        }),
        is_only_run: false,
        needs: Some("qemu-system-x86_64"),
        again: false,
    },
    Variant {
        program: "cellblock-walls microvm",
        name: "machines",
        variables: &[],
        only: &[],
        // Each of these makes a snapshot, an emulated boot with all imports. The store of snapshots
        // has its own tests, and gVisor's machines are damaged and suspended, too.
        part: Some(VariantPart {
            variables: &[],
            only: &SKIPPED_MACHINES,
        }),
        is_only_run: true,
        needs: None,
        again: false,
    },
];

impl Variant {
    /// Says so if its program is missing; where everything is required, it runs and fails.
    pub(super) fn can_run(&self) -> bool {
        let Some(needed) = self.needs else { return true };
        let runs = is_everything_required() || find_program(needed).is_some();
        if !runs {
            println!(
                "skipped: {} ({}), because `{needed}` is not on PATH",
                self.program, self.name
            );
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn parts_of_emulated_runs_name_tests_and_groups_that_exist() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/interpreter/tests/conformance");
        for test in OF_MACHINES {
            let (module, name) = test.split_once("::").unwrap();
            let code = fs::read_to_string(folder.join(format!("{module}.rs"))).unwrap();
            assert!(code.contains(&format!("fn {name}()")), "{test}");
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/walls/tests");
        for test in SKIPPED_MACHINES.into_iter().filter(|part| *part != "--skip") {
            let (module, name) = test.split_once("::").unwrap();
            let code = ["microvm", "gvisor"].map(|backend| {
                let file = folder.join(backend).join(format!("{module}.rs"));
                fs::read_to_string(file).unwrap_or_default()
            });
            assert!(code.concat().contains(&format!("fn {name}()")), "{test}");
        }
        for (_, groups) in [PROBES_OF_GVISOR, PROBES_OF_EMULATED] {
            for group in groups.split(',') {
                assert!(PROBES.1.split(',').any(|all| all == group), "{group}");
            }
        }
    }
}
