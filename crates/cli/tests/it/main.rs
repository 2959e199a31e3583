//! The `cellblock` binary as a user meets it. Every `--json` line that these tests see is checked
//! against the published schema.

mod api;
mod bad_input;
mod connectors;
mod connectors_command;
mod connectors_files;
mod connectors_http;
mod connectors_openapi;
mod connectors_sql;
mod ctrl_c;
mod datasets;
mod deploy;
mod derivation;
mod doctor;
mod examples;
mod full_disk;
mod guard;
#[cfg(feature = "kubernetes")]
mod helm;
mod help;
mod image;
mod languages;
mod letters;
mod no_processes;
mod notebook;
mod offline;
mod places;
mod python_client;
mod remote_store;
mod root_images;
mod run;
mod skills;
mod support;
mod without_namespaces;
