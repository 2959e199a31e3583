//! The suites.

/// A suite whose numbers are in the table.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) name: &'static str,
    /// The suite and its version. Numbers are compared only with those of the same suite.
    pub(super) suite: &'static str,
    pub(super) how: SuiteRunner,
    /// Whether a test that CI runs reports its numbers.
    pub(super) is_in_ci: bool,
}

/// Way in which a suite runs.
#[derive(Debug)]
pub(super) enum SuiteRunner {
    /// A program that runs it against a server, and prints its numbers.
    Program {
        /// The command; `{url}` is the server's address and `{folder}` a folder for what it installs.
        command: &'static [&'static str],
        /// A variable without which the suite cannot run, and what it names.
        needs: Option<(&'static str, &'static str)>,
    },
    /// A test of this workspace, which starts a server, runs the suite and records its numbers.
    Test {
        package: &'static str,
        /// The program of tests, and the name of the test.
        target: &'static str,
        test: &'static str,
    },
}

const fn mcp(name: &'static str, suite: &'static str, command: &'static [&'static str]) -> Judge {
    Judge {
        name,
        suite,
        how: SuiteRunner::Program { command, needs: None },
        is_in_ci: true,
    }
}

/// A suite of one of `integrations`.
const fn package(name: &'static str, suite: &'static str, command: &'static [&'static str]) -> Judge {
    Judge {
        name,
        suite,
        how: SuiteRunner::Program { command, needs: None },
        is_in_ci: false,
    }
}

/// A suite that a test of the dialects runs.
const fn dialect(name: &'static str, suite: &'static str, test: &'static str) -> Judge {
    of_test(name, suite, "cellblock-dialects", "it", test)
}

const fn of_test(
    name: &'static str,
    suite: &'static str,
    package: &'static str,
    target: &'static str,
    test: &'static str,
) -> Judge {
    Judge {
        name,
        suite,
        how: SuiteRunner::Test {
            package,
            target,
            test,
        },
        is_in_ci: true,
    }
}

macro_rules! python_package {
    ($name:literal) => {
        &[
            "python3",
            "integrations/judge.py",
            "--url",
            "{url}",
            "--venvs",
            "{folder}",
            $name,
        ]
    };
}

macro_rules! mcp_revision {
    ($revision:literal) => {
        &["python3", "tests/judges/mcp.py", "--url", "{url}", $revision]
    };
}

/// A suite of one of E2B's SDKs, which starts a server with a key.
macro_rules! e2b_sdk {
    ($name:literal, $suite:literal, $language:literal) => {
        Judge {
            name: $name,
            suite: $suite,
            how: SuiteRunner::Program {
                command: &[
                    "python3",
                    "tests/judges/e2b_sdk.py",
                    "--program",
                    "target/debug/cellblock",
                    "--venvs",
                    "{folder}",
                    $language,
                ],
                needs: Some(("CELLBLOCK_JUDGE_E2B_SDK", "a checkout of `e2b-dev/E2B`")),
            },
            is_in_ci: false,
        }
    };
}

pub(super) const JUDGES: &[Judge] = &[
    mcp(
        "mcp-2025-11-25",
        "`@modelcontextprotocol/conformance`, revision 2025-11-25",
        mcp_revision!("2025-11-25"),
    ),
    mcp(
        "mcp-2026-07-28",
        "`@modelcontextprotocol/conformance`, revision 2026-07-28",
        mcp_revision!("2026-07-28"),
    ),
    package(
        "langchain",
        "`langchain-tests` `SandboxIntegrationTests`, deepagents 0.7",
        python_package!("langchain"),
    ),
    package(
        "langchain-0.6",
        "the same, deepagents 0.6",
        python_package!("langchain-0.6"),
    ),
    package(
        "inspect",
        "Inspect AI `self_check` of sandboxes",
        python_package!("inspect"),
    ),
    package(
        "openai-agents",
        "our own tests: OpenAI Agents has no suite for sandboxes",
        python_package!("openai-agents"),
    ),
    package(
        "pydantic-ai",
        "Pydantic AI `WorkspaceBackendSuite`, and our own tests",
        python_package!("pydantic-ai"),
    ),
    Judge {
        name: "e2b",
        suite: "`e2b-dev/code-interpreter`, `python/tests`",
        how: SuiteRunner::Program {
            command: &[
                "python3",
                "tests/judges/e2b.py",
                "--url",
                "{url}",
                "--venvs",
                "{folder}",
            ],
            needs: Some(("CELLBLOCK_JUDGE_E2B", "a checkout of `e2b-dev/code-interpreter`")),
        },
        is_in_ci: false,
    },
    e2b_sdk!(
        "e2b-sdk-python",
        "`e2b-dev/E2B`, `packages/python-sdk/tests`: those that reach a server",
        "python"
    ),
    e2b_sdk!(
        "e2b-sdk-javascript",
        "`e2b-dev/E2B`, `packages/js-sdk/tests`: `sandbox` and `api`",
        "javascript"
    ),
    dialect(
        "e2b-python",
        "our tests with `e2b` and `e2b-code-interpreter` of PyPI",
        "e2b::clients::the_clients_of_python_work_unchanged",
    ),
    dialect(
        "e2b-debug",
        "our tests with the same, and only `E2B_DEBUG=true`",
        "e2b::clients::the_client_of_python_works_in_debug_mode_with_one_variable",
    ),
    dialect(
        "e2b-javascript",
        "our tests with `@e2b/code-interpreter` and `e2b` of npm",
        "e2b::clients::the_client_of_javascript_works_unchanged",
    ),
    dialect(
        "smolagents",
        "our tests with `smolagents` and its `E2BExecutor`",
        "e2b::clients::smolagents_runs_an_agents_code",
    ),
    dialect(
        "computesdk",
        "our tests with `@computesdk/e2b`: ComputeSDK does not publish its suite of providers",
        "e2b::clients::computesdk_finds_it_by_e2bs_variables",
    ),
    dialect(
        "open-webui-terminal",
        "our tests with the code of Open WebUI's terminals and tools",
        "open_terminal::client::open_webui_makes_tools_of_the_operations_and_relays_its_users",
    ),
    dialect(
        "open-webui-jupyter",
        "our tests with the code of Open WebUI's interpreter",
        "jupyter::open_webui_runs_code_with_a_token_or_a_password",
    ),
    dialect(
        "librechat",
        "our tests with the tools of `@librechat/agents`",
        "librechat::client::the_tools_of_librechat_work",
    ),
    dialect(
        "jupyter-kernel-client",
        "our tests with `jupyter_kernel_client`",
        "jupyter::jupyter_kernel_client_runs_code",
    ),
    dialect(
        "jupyter-server",
        "our tests with `jupyter_server`, whose kernel gateway Cellblock is",
        "jupyter::jupyter_server_uses_it_as_its_kernel_gateway",
    ),
    dialect(
        "jupyterlab",
        "our tests with JupyterLab in Chromium",
        "jupyter::jupyter_lab_runs_a_notebook_in_a_browser",
    ),
    dialect(
        "opensandbox",
        "our tests with `opensandbox` and `opensandbox-code-interpreter`",
        "opensandbox::client::the_libraries_of_opensandbox_work",
    ),
    of_test(
        "anthropic-python",
        "our tests with `anthropic` of PyPI",
        "cellblock-gateway",
        "responses",
        "messages::clients::anthropic_from_pypi_is_served",
    ),
    of_test(
        "anthropic-javascript",
        "our tests with `@anthropic-ai/sdk` of npm",
        "cellblock-gateway",
        "responses",
        "messages::clients::the_sdk_of_npm_is_served",
    ),
];
