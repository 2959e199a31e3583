//! Generates `docs/reference/` from the command line's definition, the types of `--json` and those
//! of a chart, and checks that it is up to date.
//!
//! `cargo xtask generate` writes the files.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Command, CommandFactory};
use schemars::generate::SchemaSettings;

use crate::args::CliArgs;
use crate::render::json::RunOutput;

/// Columns of the generated help.
const WIDTH: usize = 100;

fn compare(name: &str, made: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference")
        .join(name);
    if std::env::var_os("CELLBLOCK_UPDATE").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/reference/{name} is stale; run `cargo xtask generate`"
    );
}

#[test]
fn the_schema_of_the_json_output_is_up_to_date() {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<RunOutput>();
    schema.insert(
        "title".into(),
        "The last line of stdout of `cellblock run --json`".into(),
    );
    compare("run-output.schema.json", &crate::config::schema::sorted(schema));
}

#[test]
fn the_schema_of_a_chart_specification_is_up_to_date() {
    let mut schema = cellblock_interpreter::chart::schema();
    schema.sort_all_objects();
    let text = serde_json::to_string_pretty(&schema).unwrap();
    compare("chart-spec.schema.json", &(text + "\n"));
}

#[test]
fn the_schema_of_the_configuration_is_up_to_date() {
    compare("config.schema.json", &crate::config::schema());
}

#[test]
fn the_reference_of_the_configuration_is_up_to_date() {
    compare("configuration.md", &crate::config::reference::markdown());
}

#[test]
fn the_reference_of_the_command_line_is_up_to_date() {
    let mut text = String::from(
        "# The command line\n\n\
         Generated from the command's own help; `cargo xtask generate` writes this page.\n",
    );
    let mut root = CliArgs::command().term_width(WIDTH);
    root.build();
    describe(&root, &mut text);
    compare("cli.md", &text);
}

fn describe(command: &Command, into: &mut String) {
    let name = command
        .get_bin_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned();
    let help = command.clone().term_width(WIDTH).render_long_help().to_string();
    let help: Vec<_> = help.lines().map(str::trim_end).collect();
    let _ = write!(
        into,
        "\n## `{name}`\n\n```text\n{}\n```\n",
        help.join("\n").trim_end()
    );
    for subcommand in command
        .get_subcommands()
        .filter(|it| it.get_name() != "help" && !it.is_hide_set())
    {
        describe(subcommand, into);
    }
}
