//! Every environment variable that `cellblock` reads, in one place.

use cellblock_image::DEFAULT_IMAGE;

/// A variable, and what it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnvVar {
    /// Its name.
    pub(crate) name: &'static str,
    /// Description of its effect, for the reference.
    help: &'static str,
}

/// Directory for images, layers and artifacts; read by the sandbox crate.
pub(crate) const HOME: EnvVar = EnvVar {
    name: "CELLBLOCK_HOME",
    help: "The data directory: images, installed requirements and artifacts. Default: \
           `$XDG_DATA_HOME/cellblock`, otherwise `~/.local/share/cellblock`.",
};

/// Whether templates are frozen; read by the sandbox crate.
const FROZEN: EnvVar = EnvVar {
    name: "CELLBLOCK_FROZEN",
    help: "`off`: neither use the frozen template of an image nor make one in the background, so that each \
           start imports the image's libraries. Default: on.",
};

/// The image of commands that name none.
pub(crate) const IMAGE: EnvVar = EnvVar {
    name: "CELLBLOCK_IMAGE",
    help: "Image to use if no option and no configuration selects one. Default: `default`.",
};

/// Mirror from which missing images are pulled; read by the image crate.
pub(crate) const IMAGE_MIRROR: EnvVar = EnvVar {
    name: "CELLBLOCK_IMAGE_MIRROR",
    help: "Mirror from which a missing image is pulled before it is built: a folder, `https://…`, or \
           `oci://HOST/REPOSITORY`. Default: none.",
};

/// Filter of the log on stderr.
pub(crate) const LOG: EnvVar = EnvVar {
    name: "CELLBLOCK_LOG",
    help: "Log filter for stderr, such as `debug` or `cellblock_sandbox=trace`. Default: `error`.",
};

/// Format of the log.
pub(crate) const LOG_FORMAT: EnvVar = EnvVar {
    name: "CELLBLOCK_LOG_FORMAT",
    help: "`json` logs one JSON object per line. Default: text.",
};

/// Second store that also keeps artifacts.
pub(crate) const REMOTE_STORE: EnvVar = EnvVar {
    name: "CELLBLOCK_REMOTE_STORE",
    help: "Store that also keeps every artifact and dataset: `s3://BUCKET/PREFIX`, with the credentials \
           in `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or an absolute path. Missing and damaged \
           artifacts of this machine are restored from it. Default: none.",
};

/// The longest time that `--timeout` may ask for.
pub(crate) const MAX_TIMEOUT: EnvVar = EnvVar {
    name: "CELLBLOCK_MAX_TIMEOUT",
    help: "Maximum `--timeout`, in seconds. Default: 300.",
};

/// The policy of an environment without namespaces, such as a container image.
pub(crate) const WITHOUT_NAMESPACES: EnvVar = EnvVar {
    name: "CELLBLOCK_WITHOUT_NAMESPACES",
    help: "`1` allows every command to run without namespaces if the machine does not permit them, like \
           the option `--without-namespaces`; `protections.without_namespaces` of a configuration \
           overrides it. Default: not allowed.",
};

/// Whether `run` and `serve --warm` use a warm host, and start one.
pub(crate) const WARM: EnvVar = EnvVar {
    name: "CELLBLOCK_WARM",
    help: "`cellblock run` and the Python client start a warm host in the background if there is none, \
           which ends after it has been idle for this time, such as `15m`. `off`: do not use a warm host. \
           Default: use one that `cellblock warm start` started.",
};

/// Collector that receives spans.
pub(crate) const OTLP: EnvVar = EnvVar {
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    help: "Where `cellblock serve` sends its spans by OTLP over HTTP, such as `http://127.0.0.1:4318`; \
           the other variables of OpenTelemetry's exporter are also read. Default: nowhere.",
};

/// Turns color off.
pub(crate) const NO_COLOR: EnvVar = EnvVar {
    name: "NO_COLOR",
    help: "Any value except an empty one turns color off.",
};

/// Maximum width of tables without a terminal that has one.
pub(crate) const COLUMNS: EnvVar = EnvVar {
    name: "COLUMNS",
    help: "Width of tables if stdout is not a terminal. Default: 100.",
};

/// All of them, in the order of the help.
const ALL: [EnvVar; 13] = [
    HOME,
    FROZEN,
    IMAGE,
    IMAGE_MIRROR,
    LOG,
    LOG_FORMAT,
    REMOTE_STORE,
    OTLP,
    MAX_TIMEOUT,
    WITHOUT_NAMESPACES,
    WARM,
    NO_COLOR,
    COLUMNS,
];

/// Returns the image to use if none is selected.
pub(crate) fn default_image() -> String {
    IMAGE.get().unwrap_or_else(|| DEFAULT_IMAGE.to_owned())
}

/// The part of the help that lists them.
pub(crate) fn help() -> String {
    let entries = ALL.map(|variable| format!("  {}\n          {}\n", variable.name, variable.help));
    format!("Environment variables:\n{}", entries.join("\n"))
}

impl EnvVar {
    /// Whether it is switched on. Anything except `1` and `true` leaves it off.
    pub(crate) fn is_on(self) -> bool {
        self.get()
            .is_some_and(|value| ["1", "true"].contains(&value.as_str()))
    }

    /// Its value, when it is set to something.
    pub(crate) fn get(self) -> Option<String> {
        std::env::var(self.name).ok().filter(|value| !value.is_empty())
    }
}
