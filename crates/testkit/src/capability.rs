//! Capabilities that a machine can offer to a test, and how each is found out without the code under test.

use std::env;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use landlock::{AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
use rustix::fs::{Access, access};

use crate::places::workspace_root;
use crate::user::{as_ordinary_user, with_subordinate_ids};

/// Something that a test needs and that not every machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// This user may create user namespaces.
    UserNamespaces,
    /// The kernel enforces Landlock.
    Landlock,
    /// The memory and pids controllers of cgroup v1 are mounted and writable.
    CgroupV1,
    /// This process' own cgroup v2 offers memory and pids, and is writable.
    CgroupV2Delegated,
    /// The test runs as root.
    Root,
    /// The test can start programs without privileges.
    OrdinaryUser,
    /// The test can start programs as a user to whom `newuidmap` gives further ids.
    SubordinateIds,
    /// The machine can run virtual machines.
    Kvm,
    /// `runsc`, which runs gVisor, is on PATH.
    Runsc,
    /// QEMU is on PATH, and a kernel for its machines is below `/boot`.
    Qemu,
    /// `CELLBLOCK_TEST_FIRECRACKER` names a Firecracker.
    Firecracker,
    /// A Python 3.13 is installed.
    Python313,
    /// The system has a Python 3.9 or newer, `/usr/bin/python3`, of which a root filesystem can be made.
    SystemPython,
    /// moto's server, which speaks S3, is installed.
    S3Server,
    /// AppArmor's parser 4.0 or newer is installed.
    AppArmorParser,
    /// Node 22 or newer is on PATH, with the packages that `tests/clients/node` pins beside its tests.
    NodeClients,
    /// Node 22 or newer is on PATH, with the packages that the client in `javascript` pins.
    JavascriptClient,
    /// Node is on PATH.
    Node,
    /// Node is on PATH, and the server that `tests/clients/everything` pins is installed there.
    EverythingServer,
    /// The packages that `tests/clients/python` pins are in a virtual environment beside its tests.
    PythonClients,
    /// The packages that `tests/clients/python/openai2` pins are in a virtual environment beside the pins.
    Openai2Clients,
    /// The packages that `tests/clients/dialects/e2b` pins are in a virtual environment beside its tests.
    E2bPython,
    /// Node is on PATH, with the packages that `tests/clients/dialects/e2b` pins beside its tests.
    E2bNode,
    /// Node 22 or newer is on PATH, with the packages that `tests/clients/anthropic` pins beside its tests.
    AnthropicNode,
    /// The packages that `tests/clients/anthropic` pins are in a virtual environment beside its tests.
    AnthropicPython,
    /// Node 22 or newer is on PATH, with the packages that `tests/clients/mcp/node` pins beside its tests.
    McpNode,
    /// The packages that `tests/clients/mcp/python` pins are in a virtual environment beside its tests.
    McpPython,
    /// The packages that `tests/clients/mcp/frameworks/mcp1` pins are in a virtual environment
    /// beside the pins.
    McpFrameworks1,
    /// The packages that `tests/clients/mcp/frameworks/mcp2` pins are in a virtual environment
    /// beside the pins.
    McpFrameworks2,
    /// Node 22 or newer is on PATH, with the packages that `tests/clients/dialects/librechat` pins
    /// beside its tests.
    LibreChatClient,
    /// The packages that `tests/clients/dialects/opensandbox` pins are in a virtual environment
    /// beside its tests.
    OpenSandboxClient,
    /// Packages that `tests/clients/dialects/open_webui` pins, in a virtual environment with its tests.
    OpenWebuiClient,
    /// Packages that `tests/clients/dialects/jupyter` pins, in a virtual environment with its tests.
    JupyterClients,
    /// The programs of a Postgres server are installed.
    Postgres,
    /// The programs of a MariaDB server are installed.
    MariaDb,
    /// `helm` and `kubernetes-validate` are on PATH.
    Helm,
    /// `CELLBLOCK_TEST_KUBE` names a folder with the programs of a Kubernetes control plane and the
    /// controller of agent-sandbox.
    Kubernetes,
    /// `buildah`, and `mmdebstrap`, which makes the Debian that it starts from, are on PATH.
    Buildah,
    /// `tmux`, a terminal for tests, is on PATH.
    Tmux,
    /// Chromium is on PATH.
    Chromium,
    /// Node is on PATH, with the packages that `tests/clients/console` pins beside its tests.
    ConsoleClient,
    /// `python3` on PATH has a wheel of pip, for new virtual environments.
    PipWheel,
}

/// Packages of clients of OpenAI's API.
const PYTHON_CLIENTS: [&str; 5] = [
    "openai",
    "openai-agents",
    "langchain-openai",
    "agno",
    "pydantic-ai-slim",
];
/// Frameworks over the first major version of MCP's package.
const MCP1_FRAMEWORKS: [&str; 5] = [
    "autogen-ext",
    "deepagents",
    "langchain-mcp-adapters",
    "mcp-use",
    "semantic-kernel",
];
/// Frameworks over the second.
const MCP2_FRAMEWORKS: [&str; 3] = ["agent-framework-core", "google-adk", "strands-agents"];

impl Capability {
    /// Every capability.
    pub const ALL: [Self; 42] = [
        Self::UserNamespaces,
        Self::Landlock,
        Self::CgroupV1,
        Self::CgroupV2Delegated,
        Self::Root,
        Self::OrdinaryUser,
        Self::SubordinateIds,
        Self::Kvm,
        Self::Runsc,
        Self::Qemu,
        Self::Firecracker,
        Self::Python313,
        Self::SystemPython,
        Self::S3Server,
        Self::AppArmorParser,
        Self::NodeClients,
        Self::JavascriptClient,
        Self::Node,
        Self::EverythingServer,
        Self::PythonClients,
        Self::Openai2Clients,
        Self::E2bPython,
        Self::E2bNode,
        Self::AnthropicNode,
        Self::AnthropicPython,
        Self::McpNode,
        Self::McpPython,
        Self::McpFrameworks1,
        Self::McpFrameworks2,
        Self::LibreChatClient,
        Self::OpenSandboxClient,
        Self::OpenWebuiClient,
        Self::JupyterClients,
        Self::Postgres,
        Self::MariaDb,
        Self::Helm,
        Self::Kubernetes,
        Self::Buildah,
        Self::Tmux,
        Self::Chromium,
        Self::ConsoleClient,
        Self::PipWheel,
    ];

    /// Returns the name that skip records and `.ci/expected-skips` use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UserNamespaces => "user_namespaces",
            Self::Landlock => "landlock",
            Self::CgroupV1 => "cgroup_v1",
            Self::CgroupV2Delegated => "cgroup_v2_delegated",
            Self::Root => "root",
            Self::OrdinaryUser => "ordinary_user",
            Self::SubordinateIds => "subordinate_ids",
            Self::Kvm => "kvm",
            Self::Runsc => "runsc",
            Self::Qemu => "qemu",
            Self::Firecracker => "firecracker",
            Self::Python313 => "python313",
            Self::SystemPython => "system_python",
            Self::S3Server => "s3_server",
            Self::AppArmorParser => "apparmor_parser",
            Self::NodeClients => "node_clients",
            Self::JavascriptClient => "javascript_client",
            Self::Node => "node",
            Self::EverythingServer => "everything_server",
            Self::PythonClients => "python_clients",
            Self::Openai2Clients => "openai2_clients",
            Self::E2bPython => "e2b_python",
            Self::E2bNode => "e2b_node",
            Self::AnthropicNode => "anthropic_node",
            Self::AnthropicPython => "anthropic_python",
            Self::McpNode => "mcp_node",
            Self::McpPython => "mcp_python",
            Self::McpFrameworks1 => "mcp_frameworks_1",
            Self::McpFrameworks2 => "mcp_frameworks_2",
            Self::LibreChatClient => "librechat_client",
            Self::OpenSandboxClient => "opensandbox_client",
            Self::OpenWebuiClient => "open_webui_client",
            Self::JupyterClients => "jupyter_clients",
            Self::Postgres => "postgres",
            Self::MariaDb => "mariadb",
            Self::Helm => "helm",
            Self::Kubernetes => "kubernetes",
            Self::Buildah => "buildah",
            Self::Tmux => "tmux",
            Self::Chromium => "chromium",
            Self::ConsoleClient => "console_client",
            Self::PipWheel => "pip_wheel",
        }
    }

    /// Finds out whether this machine has it; the error says what is lacking.
    pub fn detect(self) -> Result<(), String> {
        match self {
            Self::UserNamespaces => {
                succeeds(Command::new("unshare").args(["--user", "--map-root-user", "true"]))
            }
            Self::Landlock => landlock(),
            Self::CgroupV1 => ["memory", "pids"].into_iter().try_for_each(cgroup_v1),
            Self::CgroupV2Delegated => cgroup_v2_delegated(),
            Self::Root => match rustix::process::geteuid() {
                uid if uid.is_root() => Ok(()),
                uid => Err(format!("the tests run as uid {}", uid.as_raw())),
            },
            Self::OrdinaryUser => succeeds(&mut as_ordinary_user("true")),
            Self::SubordinateIds => {
                let ids = ["--user", "--map-auto", "--map-root-user", "true"];
                succeeds(with_subordinate_ids("unshare").args(ids))
            }
            Self::Kvm => {
                let opened = OpenOptions::new().read(true).write(true).open("/dev/kvm");
                opened
                    .map(drop)
                    .map_err(|error| format!("cannot open `/dev/kvm`: {error}"))
            }
            Self::Runsc => succeeds(Command::new("runsc").arg("--version")),
            Self::Qemu => qemu(),
            Self::Firecracker => {
                let named = firecracker().ok_or("`CELLBLOCK_TEST_FIRECRACKER` names no program")?;
                succeeds(Command::new(named).arg("--version"))
            }
            Self::Python313 => python313()
                .map(drop)
                .ok_or_else(|| "found neither on PATH nor with pyenv".to_owned()),
            Self::SystemPython => {
                let is_new = "import sys; sys.exit(sys.version_info < (3, 9))";
                succeeds(Command::new("/usr/bin/python3").args(["-I", "-c", is_new]))
            }
            Self::S3Server => succeeds(Command::new("moto_server").arg("--help")),
            Self::AppArmorParser => apparmor_parser(),
            Self::NodeClients => node_with("node"),
            Self::JavascriptClient => node_with("../../javascript"),
            Self::Node => succeeds(Command::new("node").arg("--version")),
            Self::EverythingServer => clients("everything", "node_modules/.package-lock.json", "npm ci")
                .and_then(|_| Self::Node.detect()),
            Self::AnthropicNode => node_with("anthropic"),
            Self::AnthropicPython => python_with("anthropic", &["anthropic"]),
            Self::McpNode => node_with("mcp/node"),
            Self::PythonClients => python_with("python", &PYTHON_CLIENTS),
            Self::Openai2Clients => python_with(
                "python/openai2",
                &["haystack-ai", "instructor", "litellm", "llama-index-llms-openai"],
            ),
            Self::E2bPython => python_with("dialects/e2b", &["e2b", "e2b-code-interpreter", "smolagents"]),
            Self::E2bNode => clients("dialects/e2b", "node_modules/.package-lock.json", "npm ci")
                .and_then(|_| Self::Node.detect()),
            Self::McpPython => python_with("mcp/python", &["mcp"]),
            Self::McpFrameworks1 => python_with("mcp/frameworks/mcp1", &MCP1_FRAMEWORKS),
            Self::McpFrameworks2 => python_with("mcp/frameworks/mcp2", &MCP2_FRAMEWORKS),
            Self::LibreChatClient => node_with("dialects/librechat"),
            Self::OpenSandboxClient => python_with(
                "dialects/opensandbox",
                &["opensandbox", "opensandbox-code-interpreter"],
            ),
            Self::OpenWebuiClient => clients(
                "dialects/open_webui",
                ".venv/open_webui/utils/tools.py",
                "./install.sh",
            )
            .and_then(|_| python_with("dialects/open_webui", &["aiohttp", "fastapi", "websockets"])),
            Self::JupyterClients => python_with(
                "dialects/jupyter",
                &["jupyter-kernel-client", "jupyter-server", "jupyterlab"],
            ),
            Self::Postgres => succeeds(Command::new(postgres_program("initdb")).arg("--version")),
            Self::Buildah => succeeds(Command::new("buildah").arg("--version"))
                .and_then(|()| succeeds(Command::new("mmdebstrap").arg("--version"))),
            Self::Tmux => succeeds(Command::new("tmux").arg("-V")),
            Self::Chromium => succeeds(Command::new("chromium").arg("--version")),
            Self::ConsoleClient => clients("console", "node_modules/.package-lock.json", "npm ci")
                .and_then(|_| Self::Node.detect()),
            Self::PipWheel => pip_wheel().map(drop),
            Self::Helm => succeeds(Command::new("helm").arg("version"))
                .and_then(|()| succeeds(Command::new("kubernetes-validate").arg("--version"))),
            Self::Kubernetes => {
                let folder = kubernetes_programs().ok_or("`CELLBLOCK_TEST_KUBE` names no folder")?;
                succeeds(Command::new(folder.join("kube-apiserver")).arg("--version"))
                    .and_then(|()| succeeds(Command::new("openssl").arg("version")))
            }
            // Its `--help` fails.
            Self::MariaDb => succeeds(Command::new("which").arg("mariadb-install-db"))
                .and_then(|()| succeeds(Command::new("mariadbd").arg("--version"))),
        }
    }
}

/// Returns the folder with the programs of a Kubernetes control plane.
pub(crate) fn kubernetes_programs() -> Option<PathBuf> {
    env::var_os("CELLBLOCK_TEST_KUBE").map(PathBuf::from)
}

/// Returns the wheel of pip that `python3` puts into new virtual environments.
pub fn pip_wheel() -> Result<PathBuf, String> {
    let find = "import ensurepip, pathlib\n\
                folders = [pathlib.Path(ensurepip.__file__).parent / '_bundled', \
                pathlib.Path('/usr/share/python-wheels')]\n\
                print(next(wheel for folder in folders for wheel in sorted(folder.glob('pip-*.whl'))))";
    let ran = Command::new("python3").args(["-I", "-c", find]).output();
    let output = ran.map_err(|error| format!("cannot run `python3`: {error}"))?;
    if !output.status.success() {
        return Err("`python3` has no module `ensurepip` with a wheel of pip".to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().into())
}

/// Older ones cannot restore machines from files.
fn qemu() -> Result<(), String> {
    let ran = Command::new("qemu-system-x86_64").arg("--version").output();
    let output = ran.map_err(|error| format!("cannot run `qemu-system-x86_64`: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split("version ").nth(1).unwrap_or_default();
    let mut numbers = version
        .split(|character: char| !character.is_ascii_digit())
        .map(|it| it.parse().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < (8, 2) {
        return Err(format!(
            "`qemu-system-x86_64` has the version {}.{}",
            found.0, found.1
        ));
    }
    let kernels = fs::read_dir("/boot").into_iter().flatten().flatten();
    let names = kernels.filter_map(|entry| entry.file_name().into_string().ok());
    let mut kernels = names.filter(|name| name.starts_with("vmlinuz-"));
    kernels
        .next()
        .map(drop)
        .ok_or_else(|| "there is no kernel `/boot/vmlinuz-*`".to_owned())
}

/// Older parsers do not know the rule `userns`.
fn apparmor_parser() -> Result<(), String> {
    let ran = Command::new("apparmor_parser").arg("--version").output();
    let output = ran.map_err(|error| format!("cannot run `apparmor_parser`: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.lines().next().and_then(|line| line.split(' ').next_back());
    let major = version.and_then(|it| it.split('.').next()?.parse().ok());
    if major.is_some_and(|major: u32| major >= 4) {
        return Ok(());
    }
    Err(format!(
        "`apparmor_parser` has the version {}",
        version.unwrap_or("?")
    ))
}

/// Node, and the packages of a folder of `tests/clients`.
fn node_with(folder: &str) -> Result<(), String> {
    clients(folder, "node_modules/.package-lock.json", "npm ci")?;
    let new_enough = "process.exit(parseInt(process.versions.node) < 22 ? 1 : 0)";
    succeeds(Command::new("node").args(["-e", new_enough]))
}

/// A virtual environment in a folder of `tests/clients`, with packages.
fn python_with(folder: &str, packages: &[&str]) -> Result<(), String> {
    let python = clients(folder, ".venv/bin/python", "pip")?;
    let installed =
        "import sys\nfrom importlib.metadata import version\nfor name in sys.argv[1:]: version(name)";
    succeeds(Command::new(python).args(["-c", installed]).args(packages))
}

/// A file of the packages of `tests/clients`, or what makes it.
fn clients(folder: &str, file: &str, by: &str) -> Result<PathBuf, String> {
    let path = workspace_root().join("tests/clients").join(folder).join(file);
    if path.exists() {
        return Ok(path);
    }
    Err(format!(
        "no `{}`, which `{by}` makes; tests/clients/README.md says how",
        path.display()
    ))
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let ran = command.stdin(Stdio::null()).output();
    let output = ran.map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}

fn landlock() -> Result<(), String> {
    // Creating a rule set restricts nothing yet.
    let created = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Execute)
        .and_then(Ruleset::create);
    created.map(drop).map_err(|error| error.to_string())
}

/// Returns the mount point of the first mount of `kind` whose super options include `option`.
fn mount_point(kind: &str, option: Option<&str>) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let matches = after.next() == Some(kind)
            && option.is_none_or(|option| {
                after
                    .nth(1)
                    .is_some_and(|all| all.split(',').any(|o| o == option))
            });
        matches.then(|| before.split(' ').nth(4).map(PathBuf::from))?
    })
}

fn cgroup_v1(controller: &str) -> Result<(), String> {
    let mounted = mount_point("cgroup", Some(controller));
    let folder = mounted.ok_or_else(|| format!("no cgroup v1 mount for `{controller}`"))?;
    writable(&folder)
}

fn cgroup_v2_delegated() -> Result<(), String> {
    let root = mount_point("cgroup2", None).ok_or("no cgroup v2 mount")?;
    let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
    let own = own
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))
        .ok_or("not in a cgroup v2")?;
    let folder = root.join(own);
    let offered = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
    for controller in ["memory", "pids"] {
        if !offered.split_whitespace().any(|name| name == controller) {
            return Err(format!("`{}` does not offer `{controller}`", folder.display()));
        }
    }
    writable(&folder)
}

fn writable(folder: &Path) -> Result<(), String> {
    access(folder, Access::WRITE_OK)
        .map_err(|error| format!("cannot write to `{}`: {error}", folder.display()))
}

/// Returns the Firecracker that `CELLBLOCK_TEST_FIRECRACKER` names: it is in no distribution's packages.
pub fn firecracker() -> Option<PathBuf> {
    env::var_os("CELLBLOCK_TEST_FIRECRACKER").map(PathBuf::from)
}

/// Finds a Python 3.13: on PATH, then among the versions that pyenv installed.
pub fn python313() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let pyenv = env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".pyenv")))
        .and_then(|root| fs::read_dir(root.join("versions")).ok());
    let versions = pyenv
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"));
    env::split_paths(&path)
        .chain(versions)
        .map(|folder| folder.join("python3.13"))
        .find(|candidate| {
            // A shim exists for every version, and fails for those that are not selected.
            candidate.is_file() && succeeds(Command::new(candidate).args(["-c", "pass"])).is_ok()
        })
}

/// Returns a program of a Postgres server. Debian keeps those of each version in a folder that is
/// not on `PATH`.
pub fn postgres_program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let installed = versions.map(|version| version.path().join("bin").join(name));
    let newest = installed.filter(|program| program.is_file()).max();
    newest.unwrap_or_else(|| PathBuf::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_capabilities_share_a_name() {
        let mut names = Capability::ALL.map(Capability::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Capability::ALL.len());
    }

    #[test]
    fn a_failing_probe_names_its_command_and_output() {
        let error = succeeds(Command::new("sh").args(["-c", "echo no such luck >&2; exit 3"])).unwrap_err();
        assert_eq!(
            error,
            r#""sh" "-c" "echo no such luck >&2; exit 3": no such luck"#
        );
    }

    #[test]
    fn proc_is_found_at_its_mount_point() {
        assert_eq!(mount_point("proc", None), Some(PathBuf::from("/proc")));
        assert_eq!(mount_point("proc", Some("no-such-option")), None);
    }
}
