//! The command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use cellblock_image::{Mirror, RootFormat};
use cellblock_interpreter::cell::{Guard, Language};
use cellblock_interpreter::limits::{MAX_CELL_TIMEOUT, MIN_MEMORY};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Args, Parser, Subcommand};

use crate::env_vars;
use crate::input_arg::{InputArg, parse_input};
use crate::policy::{NetworkArgs, PolicyArgs, WallArgs};
use crate::toolset::ToolsetArgs;
use cellblock_settings::Size;

pub(crate) mod artifact;
pub(crate) mod checkpoint;
pub(crate) mod config;
pub(crate) mod connector;
pub(crate) mod dataset;
pub(crate) mod inside;
pub(crate) mod key;
pub(crate) mod mcp;
pub(crate) mod process;
pub(crate) mod repeated;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod skill;
pub(crate) mod tools;
pub(crate) mod volume;
pub(crate) mod warm;

/// Runs Python for AI agents in a sandbox without network access.
#[derive(Clone, Debug, Parser)]
#[command(name = "cellblock", version, arg_required_else_help = true, disable_help_subcommand = true,
    after_long_help = env_vars::help())]
pub(crate) struct CliArgs {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Command to execute.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Run Python code in a sandbox
    ///
    /// Everything after FILE belongs to the script, as for `python`: options of this command stand
    /// before FILE. Several `--file` or `--code` run as consecutive cells of one session, so variables
    /// of one are available in the next. A file is split into cells at its `# %%` lines. The run stops
    /// at the first cell that does not complete.
    Run(Box<RunArgs>),
    /// Serve the OpenAI-compatible API over HTTP
    ///
    /// A configuration file selects the models and everything else that is served; `--demo` and
    /// `--no-model` need no file.
    Serve(serve::ServeArgs),
    /// Create, list and revoke API keys
    ///
    /// Once a key exists, the API requires one. Running servers see changes immediately.
    Key(key::KeyArgs),
    /// Check and show the configuration of `serve`
    Config(config::ConfigArgs),
    /// List, call and check the connectors of the configuration
    Connector(connector::ConnectorArgs),
    /// List, show, export and remove the datasets that code has published in a project
    Dataset(dataset::DatasetArgs),
    /// Add, list, show and remove skills: folders of instructions and files for sessions
    Skill(skill::SkillArgs),
    /// List, show and delete the volumes of a server, which outlive its sessions
    Volume(volume::VolumeArgs),
    /// List, show, replay and export runs that were recorded
    Runs(runs::RunsArgs),
    /// Serve tools over stdin and stdout to an MCP client that starts this command
    ///
    /// For agents on a desktop or in an IDE. The command and all its sessions end when the client
    /// closes the connection. All output except the protocol goes to stderr.
    Mcp(Box<mcp::McpArgs>),
    /// List tools, and call them in sessions that outlive a command
    Tools(tools::ToolsArgs),
    /// Start, list and stop sessions that outlive a command
    Session(session::SessionArgs),
    /// Keep sandboxes ready in the background, so that `run` starts in milliseconds
    ///
    /// A warm host has imported the image's libraries. Each run gets a new sandbox from it, with the
    /// same results as without it.
    Warm(warm::WarmArgs),
    /// Build, list and check the images that sandboxes start from
    Image(ImageArgs),
    /// List, open and export artifacts of code: tables, charts, images and files
    Artifact(artifact::ArtifactArgs),
    /// Serve one sandbox to the host of a machine, inside that machine
    #[command(hide = true)]
    Inside(Box<inside::InsideArgs>),
    /// Be the first process of a virtual machine
    #[command(hide = true)]
    BootMachine(inside::BootMachineArgs),
    /// Show what this machine supports, which protections are active, and how to enable the others
    ///
    /// Starts a sandbox as `run` does. Exits with 0 if that works and every strict protection is
    /// active, otherwise with 78.
    Doctor(DoctorArgs),
}

/// Program to run, and its options.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXIT_CODES)]
#[command(
    override_usage = "cellblock run [OPTIONS] <FILE> [ARGS]...\n       cellblock run [OPTIONS] --file \
                      <FILE>... [ARGS]...\n       cellblock run [OPTIONS] --code <CODE>... [ARGS]..."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct RunArgs {
    /// Python file to run, or `-` for stdin, and the arguments that its code finds in `sys.argv`. With
    /// `--file` or `--code`, all of these are arguments
    #[arg(value_names = ["FILE", "ARGS"], num_args = 1.., trailing_var_arg = true)]
    pub(crate) script: Vec<OsString>,
    /// Run this file, or stdin with `-`; repeat it for several, whose code shares its variables
    #[arg(short = 'f', long = "file", value_name = "FILE", conflicts_with = "code")]
    pub(crate) files: Vec<PathBuf>,
    /// Run this code; repeat it for several cells
    #[arg(short = 'c', long = "code", value_name = "CODE", allow_hyphen_values = true)]
    pub(crate) code: Vec<String>,
    /// Run code of this language
    #[arg(long, value_name = "LANGUAGE", value_parser = one_of(Language::ALL, Language::name),
        default_value = Language::Python.name())]
    pub(crate) language: Language,
    /// Bind a file's content to a variable: CSV, TSV, Parquet, JSON, NDJSON, Arrow and workbooks
    /// (xlsx, xls, ods) as a data frame, other formats as bytes
    #[arg(long = "input", value_name = "NAME=PATH", value_parser = parse_input)]
    pub(crate) inputs: Vec<InputArg>,
    /// Install an additional package, as a requirement such as `lifelines` or `lifelines>=0.30`
    #[arg(long = "require", value_name = "PKG", value_parser = parse_requirement)]
    pub(crate) requirements: Vec<String>,
    /// Let code read this skill in `/skills`: the name of one that was added, or the path of a
    /// folder or a zip; repeat it for several
    #[arg(long = "skill", value_name = "NAME|PATH")]
    pub(crate) skills: Vec<PathBuf>,
    /// Stop a cell after this many seconds, which may be a fraction; at most 300 unless
    /// `CELLBLOCK_MAX_TIMEOUT` is set [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = parse_timeout, allow_negative_numbers = true)]
    pub(crate) timeout: Option<Duration>,
    /// Limit the sandbox's memory, including its files, such as `512MiB` [default: 2GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub(crate) memory: Option<Size>,
    /// Save charts and files into this directory, which is created if needed; existing files are
    /// replaced [default: cellblock-out, with --json: nothing is saved]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Use this image: a name, an ID, or a TOML file that describes one
    #[arg(long, value_name = "IMAGE", default_value_t = env_vars::default_image())]
    pub(crate) image: String,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) wall: WallArgs,
    /// Check code before it runs: `standard` rejects code that reads the environment or starts
    /// processes, `strict` also `eval`, `exec` and the like [default: off, with --toolset notebook:
    /// `cells.guard` of the configuration]
    #[arg(
        long,
        value_name = "LEVEL",
        value_parser = one_of([Guard::Off, Guard::Standard, Guard::Strict], Guard::name)
    )]
    pub(crate) guard: Option<Guard>,
    /// Run this Python file before the first cell; repeat it for several. If it fails, the run
    /// continues with a note
    #[arg(long, value_name = "FILE")]
    pub(crate) setup: Vec<PathBuf>,
    /// Check the code without running it: its syntax, `--guard`, and the functions of connectors
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Show on stderr what each cell fetched with connectors, one call per line; `--json` always lists it
    #[arg(long)]
    pub(crate) fetches: bool,
    /// Print one JSON object as the only line of stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep no sandboxes ready; a single run always creates its sandbox on demand
    #[arg(long)]
    pub(crate) no_pool: bool,
    // Last, as its heading would go on.
    #[command(flatten)]
    pub(crate) toolset: ToolsetArgs,
}

/// Images to use, and a command for them.
#[derive(Args, Clone, Debug)]
pub(crate) struct ImageArgs {
    #[command(subcommand)]
    pub(crate) command: ImageCommand,
}

/// Command for images.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Build an image unless it already exists
    Build {
        /// Name of the image, or a TOML file that describes it
        #[arg(value_name = "IMAGE", default_value_t = env_vars::default_image())]
        image: String,
        /// Build the image even if it exists
        #[arg(long)]
        force: bool,
        /// Build this Containerfile or Dockerfile with `buildah` instead, as a whole root filesystem
        #[arg(long, value_name = "FILE", conflicts_with_all = ["image", "force"])]
        containerfile: Option<PathBuf>,
        /// Folder from which the Containerfile copies; by default its own
        #[arg(long, value_name = "DIR", requires = "containerfile")]
        context: Option<PathBuf>,
        /// Name of the Containerfile's image; by default that of the folder from which it copies
        #[arg(long, value_name = "NAME", requires = "containerfile")]
        name: Option<String>,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// List the available images
    List {
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Show an image's interpreter, packages and policy
    #[command(aliases = ["inspect", "get"])]
    Show {
        /// Name of the image, its ID or the beginning of the ID
        #[arg(value_name = "IMAGE", default_value_t = env_vars::default_image())]
        image: String,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Write an image to one file, to import it on another machine
    Export {
        /// Name of the image, its ID or the beginning of the ID
        #[arg(value_name = "IMAGE", default_value_t = env_vars::default_image())]
        image: String,
        /// Write to this file or folder, or to stdout with `-`; by default to
        /// `cellblock-image-NAME-MACHINE-ID.tar.zst` in the current folder
        #[arg(long, short, value_name = "PATH", default_value = ".")]
        out: PathBuf,
        /// Compression level of zstd: higher levels are smaller and slower
        #[arg(long, value_name = "1-22", default_value_t = 12,
            value_parser = clap::value_parser!(i32).range(1..=22))]
        level: i32,
        /// Also list the archive in `images.json` beside it, which makes the folder a mirror for `pull`
        #[arg(long)]
        index: bool,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Download a ready image from a mirror
    ///
    /// A mirror is a folder that `export --index` wrote, the same folder behind any HTTP server, or
    /// a repository of an OCI registry. Pull only from mirrors that you trust: an image is the
    /// Python that runs in your sandboxes.
    Pull {
        /// Name of the image
        #[arg(value_name = "IMAGE", default_value_t = env_vars::default_image())]
        image: String,
        /// Mirror or archive: a path, `https://…`, or `oci://HOST/REPOSITORY[:TAG]`; by default the one that
        /// `CELLBLOCK_IMAGE_MIRROR` names
        #[arg(long, value_name = "MIRROR")]
        from: Option<Mirror>,
        /// Reject the archive unless this is its SHA-256
        #[arg(long, value_name = "HEX", value_parser = parse_sha256)]
        sha256: Option<String>,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Add an image from a file that `export` wrote, or from a root filesystem of another container tool
    ///
    /// A root filesystem has programs and libraries of its own, and a Python 3.9 or newer, with
    /// which cells run. Its user, entry point and working directory are recorded and not used.
    /// Import images only from people you trust: an image is the Python that runs in your
    /// sandboxes.
    #[command(allow_missing_positional = true)]
    Import {
        /// Format of a root filesystem: `docker-archive` (`docker save`, `podman save`),
        /// `oci-layout` (a folder or an archive), or `directory` (an unpacked one); without it,
        /// PATH is a file that `export` wrote, an OCI layout, or an unpacked root filesystem
        #[arg(value_name = "FORMAT")]
        format: Option<RootFormat>,
        /// The file or folder, or `-` for stdin
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// Name of a root filesystem's image; by default its tag, or the name of the file or folder
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Tag of the image to import, if there are several
        #[arg(long, value_name = "TAG")]
        tag: Option<String>,
        /// Reject the file that `export` wrote unless this is its SHA-256
        #[arg(long, value_name = "HEX", value_parser = parse_sha256,
            conflicts_with_all = ["format", "name", "tag"])]
        sha256: Option<String>,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Remove an image
    #[command(alias = "delete")]
    Remove {
        /// Name of the image, its ID or the beginning of the ID
        #[arg(value_name = "IMAGE")]
        image: String,
    },
    /// Remove packages that code required and that are no longer used
    ///
    /// Packages that code requires (`--require`, `requirements`) are installed as layers, which
    /// later sessions use again. This removes the layers that no session uses and none has used for
    /// a while, and the cache of downloads.
    Prune {
        /// Keep layers that were used in this time: a number and `m`, `h` or `d`
        #[arg(long, value_name = "TIME", default_value = "2d", value_parser = key::parse_time)]
        unused_for: Duration,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Search an image for network clients
    Audit {
        /// Name of the image, its ID or the beginning of the ID
        #[arg(value_name = "IMAGE", default_value_t = env_vars::default_image())]
        image: String,
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
}

/// Parts to examine.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorArgs {
    /// Check with this image: a name or an ID
    #[arg(long, value_name = "IMAGE", default_value_t = env_vars::default_image())]
    pub(crate) image: String,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// Print one JSON object as the only line of stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Only print an AppArmor profile that permits this program user namespaces, for hosts that restrict
    /// them, such as Ubuntu 24.04
    #[arg(long, exclusive = true)]
    pub(crate) apparmor_profile: bool,
    /// Check the cluster of a configuration with `backend: kubernetes` instead of this machine: API
    /// versions, permissions, warm pool and template, and one claim
    #[arg(long, conflicts_with_all = ["image", "protections", "without_namespaces"])]
    pub(crate) kubernetes: bool,
    /// Configuration of the server, for `--kubernetes` [default: `cellblock.yaml`, if it exists]
    #[arg(long, value_name = "FILE", requires = "kubernetes")]
    pub(crate) config: Option<PathBuf>,
}

const EXIT_CODES: &str = "\
Exit codes:
        0  the code completed
    1  the code raised an exception, or called `sys.exit` with an error
    2  the code was rejected, or the request or the command line is invalid
   70  the sandbox or its backend failed
   75  no sandbox became available in time; try again later
   78  the policy requires a protection that this machine lacks
  124  the code timed out or was interrupted; its variables are kept
  125  the kernel was lost, or the code exceeded a limit
  130  Ctrl-C ended cellblock itself; the first one only interrupts the cell";

/// Reads one of some values by its name, and lists the names in the help.
pub(crate) fn one_of<T, const N: usize>(
    values: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    NamedValues(PossibleValuesParser::new(values.map(name))).try_map(move |given| {
        let found = values.into_iter().find(|value| name(*value) == given);
        found.ok_or("there is no such value")
    })
}

/// Names of values. Those of one or two letters are not suggested, because they resemble too many words.
#[derive(Clone, Debug)]
struct NamedValues(PossibleValuesParser);

impl TypedValueParser for NamedValues {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        self.0.parse_ref(command, argument, value).map_err(|mut error| {
            let suggested = ContextKind::SuggestedValue;
            if matches!(error.get(suggested), Some(ContextValue::String(name)) if name.len() < 3) {
                error.remove(suggested);
            }
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

fn parse_requirement(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{text}` is not a requirement; write a package's name, such as `lifelines` or `lifelines>=0.30`"
    ))
}

fn parse_sha256(text: &str) -> Result<String, String> {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_owned());
    }
    Err("must be 64 hexadecimal digits".to_owned())
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    let most = env_vars::MAX_TIMEOUT
        .get()
        .and_then(|value| {
            value
                .parse()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        })
        .unwrap_or(MAX_CELL_TIMEOUT);
    timeout_within(text, most)
}

fn timeout_within(text: &str, most: Duration) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number of seconds, such as `2.5`"))?;
    if seconds.is_nan() || seconds <= 0.0 {
        return Err(format!(
            "invalid timeout `{seconds}`: must be greater than 0 seconds"
        ));
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(timeout) if timeout <= most => Ok(timeout),
        _ => Err(format!(
            "{seconds} seconds is more than the {} that a cell may have; give less, or set {}",
            most.as_secs_f64(),
            env_vars::MAX_TIMEOUT.name
        )),
    }
}

fn parse_memory(text: &str) -> Result<Size, String> {
    let size: Size = text
        .parse()
        .map_err(|error: cellblock_settings::ParseSizeError| error.to_string())?;
    if size.0 < MIN_MEMORY {
        return Err(format!(
            "{size} is less than the {} that a kernel needs",
            Size(MIN_MEMORY)
        ));
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        CliArgs::command().debug_assert();
    }

    #[test]
    fn a_name_of_one_letter_is_not_suggested() {
        let error = |language: &str| {
            let parsed = CliArgs::try_parse_from(["cellblock", "run", "--language", language, "x"]);
            parsed.unwrap_err().to_string()
        };
        let ruby = error("ruby");
        assert!(
            ruby.contains("possible values: python, bash, javascript, r]"),
            "{ruby}"
        );
        assert!(!ruby.contains("similar"), "{ruby}");
        assert!(error("pyhton").contains("'python'"), "{}", error("pyhton"));
    }

    #[test]
    fn old_verbs_are_accepted_and_not_listed() {
        for (words, new) in [
            (&["image", "inspect"][..], "Show"),
            (&["image", "delete", "x"], "Remove"),
            (&["artifact", "get", "abcd"], "Show"),
            (&["dataset", "delete", "x"], "Remove"),
            (&["volume", "delete", "x"], "Remove"),
            (&["key", "remove", "x"], "Revoke"),
            (
                &["session", "drop-checkpoint", "0123456789abcdef0123", "x"],
                "RemoveCheckpoint",
            ),
        ] {
            let parsed = CliArgs::try_parse_from(["cellblock"].iter().chain(words));
            let parsed = parsed.unwrap_or_else(|error| panic!("{words:?}: {error}"));
            assert!(format!("{parsed:?}").contains(new), "{words:?}: {parsed:?}");
            let mut command = CliArgs::command();
            let noun = command.find_subcommand_mut(words[0]).unwrap();
            let help = noun.render_long_help().to_string();
            assert!(!help.contains(&format!("  {} ", words[1])), "{help}");
        }
    }

    #[test]
    fn a_timeout_is_positive_and_bounded() {
        let most = Duration::from_mins(5);
        assert_eq!(timeout_within("2.5", most), Ok(Duration::from_millis(2500)));
        assert_eq!(timeout_within("300", most), Ok(most));
        for (text, complaint) in [
            ("0", "invalid timeout `0`: must be greater than 0 seconds"),
            ("-1", "invalid timeout `-1`: must be greater than 0 seconds"),
            ("nan", "invalid timeout `NaN`: must be greater than 0 seconds"),
            ("soon", "`soon` is not a number of seconds, such as `2.5`"),
            (
                "301",
                "301 seconds is more than the 300 that a cell may have; give less, or set \
                 CELLBLOCK_MAX_TIMEOUT",
            ),
            (
                "inf",
                "inf seconds is more than the 300 that a cell may have; give less, or set \
                 CELLBLOCK_MAX_TIMEOUT",
            ),
        ] {
            assert_eq!(timeout_within(text, most).unwrap_err(), complaint);
        }
    }

    #[test]
    fn too_little_memory_is_refused_with_the_least() {
        assert_eq!(parse_memory("512MiB"), Ok(Size(512 << 20)));
        assert_eq!(
            parse_memory("1MiB").unwrap_err(),
            "1 MiB is less than the 32 MiB that a kernel needs"
        );
    }

    #[test]
    fn a_requirement_is_no_option_of_the_installer() {
        assert_eq!(
            parse_requirement(" lifelines>=0.30 "),
            Ok("lifelines>=0.30".into())
        );
        for text in ["--index-url=x", "./local", "", "-e ."] {
            assert!(parse_requirement(text).is_err(), "{text}");
        }
    }
}
