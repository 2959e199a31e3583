//! Files of `deploy/` agree with the program and parse.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::{Cli, binary, fenced, require, workspace_root};
use serde_json::Value;

use crate::support::{export_to_mirror, folder};

fn read(file: &str) -> Result<String> {
    let path = workspace_root().join("deploy").join(file);
    fs::read_to_string(&path).with_context(|| format!("read `{}`", path.display()))
}

fn yaml(file: &str) -> Result<Value> {
    Ok(serde_saphyr::from_str(&read(file)?)?)
}

/// The environment that the Containerfile sets.
fn environment() -> Result<Vec<(String, String)>> {
    let text = read("container/Containerfile")?;
    let words = text.split_whitespace().skip_while(|word| *word != "ENV").skip(1);
    let pairs = words
        .filter(|word| *word != "\\")
        .map_while(|word| word.split_once('='));
    Ok(pairs
        .map(|(name, value)| (name.to_owned(), value.replace("${IMAGE}", "core")))
        .collect())
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[test]
fn a_container_listens_for_others_and_answers_only_with_a_key() -> Result<()> {
    let environment = environment()?;
    let (_folder, path) = folder(&[])?;
    let set = |cli: Cli| {
        let all = environment.iter().filter(|(name, _)| name != "CELLBLOCK_HOME");
        all.fold(cli, |cli, (name, value)| cli.env(name, value))
    };
    let shown = set(Cli::new(["config", "show"]).folder(&path)).run()?.stdout;
    let lines: Vec<_> = shown
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for line in [
        "listen: \"0.0.0.0:8080\" # CELLBLOCK_SERVE__LISTEN",
        "required: true # CELLBLOCK_SERVE__AUTH__REQUIRED",
        "image: core # CELLBLOCK_IMAGE",
        "without_namespaces: true # CELLBLOCK_WITHOUT_NAMESPACES",
    ] {
        assert!(lines.iter().any(|it| it == line), "{line}\n{shown}");
    }
    let help = Cli::new(["--help"]).run()?.stdout;
    for (name, _) in &environment {
        let known = name.starts_with("CELLBLOCK_SERVE__") || help.contains(&format!("  {name}\n"));
        assert!(known, "{name}");
    }
    Ok(())
}

#[test]
fn compose_files_name_the_ports_folders_and_profile_of_the_container() -> Result<()> {
    let containerfile = read("container/Containerfile")?;
    assert!(containerfile.contains("\nEXPOSE 8080\n"));
    let compose = yaml("compose/compose.yaml")?;
    let service = &compose["services"]["cellblock"];
    assert!(strings(&service["ports"]).all(|port| port.starts_with("127.0.0.1:") && port.ends_with(":8080")));
    let volumes: Vec<_> = strings(&service["volumes"])
        .filter_map(|it| it.split_once(':'))
        .collect();
    assert_eq!(volumes.len(), 2);
    for (name, folder) in volumes {
        assert!(containerfile.contains(&format!(" {folder}")), "{folder}");
        assert!(compose["volumes"].get(name).is_some(), "{name}");
    }
    let profile = strings(&service["security_opt"]).find_map(|it| it.strip_prefix("seccomp="));
    let profile = Path::new("compose").join(profile.context("no profile")?);
    serde_json::from_str::<Value>(&read(&profile.to_string_lossy())?)?;
    Ok(())
}

#[test]
fn open_webui_asks_the_server_with_its_key() -> Result<()> {
    let compose = yaml("compose/open-webui.yaml")?;
    let services = &compose["services"];
    let extends = &services["cellblock"]["extends"];
    let file = extends["file"].as_str().context("no file")?;
    let base = yaml(&format!("compose/{file}"))?;
    let service = extends["service"].as_str().context("no service")?;
    assert!(base["services"].get(service).is_some());
    for (name, _) in base["volumes"].as_object().context("no volumes")? {
        assert!(compose["volumes"].get(name).is_some(), "{name}");
    }
    let environment = &services["open-webui"]["environment"];
    assert_eq!(environment["OPENAI_API_BASE_URL"], "http://cellblock:8080/v1");
    assert_eq!(environment["OPENAI_API_KEY"], "${CELLBLOCK_KEY:-}");

    let arguments: Vec<_> = strings(&services["cellblock"]["command"]).collect();
    let inside = *arguments.last().context("no configuration")?;
    let mut volumes = strings(&services["cellblock"]["volumes"]);
    let mounted = volumes.find_map(|it| it.strip_suffix(&format!(":{inside}:ro")));
    let mounted = workspace_root()
        .join("deploy/compose")
        .join(mounted.context("not mounted")?);
    let file = mounted.to_string_lossy();
    let shown = Cli::new(["config", "show", "--config", &file]).run()?;
    assert_eq!(shown.code(), 0, "{}", shown.stderr);
    assert!(
        shown.stdout.contains("chat_completions: true"),
        "{}",
        shown.stdout
    );
    Ok(())
}

/// The image of a release has a release's program; this one has what the tests run, and a small
/// image of Python.
#[test]
fn buildah_builds_a_container_that_runs_a_cell_without_privileges() -> Result<()> {
    require!(Root);
    require!(Buildah);
    let (_folder, path) = folder(&[])?;
    let mirror = path.join("mirror");
    fs::create_dir(&mirror)?;
    export_to_mirror(&mirror)?;
    fs::copy(binary()?, path.join("cellblock"))?;
    let deploy = workspace_root().join("deploy");
    fs::copy(deploy.join("seccomp.json"), path.join("seccomp.json"))?;
    let mut command = Command::new(deploy.join("container/buildah"));
    command.arg(&path).arg("cellblock-tests");
    // The machine's own images stay as they are.
    command.env("BUILDAH_ROOT", path.join("store"));
    let built = command.stdin(Stdio::null()).output()?;
    let (stdout, stderr) = (
        String::from_utf8_lossy(&built.stdout),
        String::from_utf8_lossy(&built.stderr),
    );
    ensure!(built.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.ends_with("a cell printed 42\n"), "{stdout}\n{stderr}");
    Ok(())
}

/// The commands of the guide need an engine; `cargo xtask dist` runs them.
#[test]
fn the_guide_to_containers_names_what_ships() -> Result<()> {
    let guide = "docs/guides/containers.md";
    let guide = fs::read_to_string(workspace_root().join(guide))?;
    for (name, value) in environment()? {
        let row = guide
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` | `{value}`")));
        assert!(row.is_some(), "{name}={value}");
    }
    let ends = |c: char| c.is_whitespace() || "`()[],".contains(c);
    let files = guide.match_indices("deploy/").map(|(at, _)| &guide[at..]);
    for file in files.filter_map(|rest| rest.split(ends).next()) {
        assert!(workspace_root().join(file).exists(), "{file}");
    }
    let manifests = fenced(&guide, "yaml");
    let pod: Value = serde_saphyr::from_str(manifests.first().context("no manifest")?)?;
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["ports"][0]["containerPort"], 8080);
    assert_eq!(container["securityContext"]["procMount"], "Unmasked");
    let mounts = container["volumeMounts"].as_array().context("no mounts")?;
    let folders = mounts.iter().map(|mount| {
        format!(
            "{}:{}",
            mount["name"].as_str().unwrap_or_default(),
            mount["mountPath"].as_str().unwrap_or_default()
        )
    });
    let compose = yaml("compose/compose.yaml")?;
    assert_eq!(
        folders.collect::<Vec<_>>(),
        strings(&compose["services"]["cellblock"]["volumes"]).collect::<Vec<_>>()
    );
    Ok(())
}

#[test]
fn the_apparmor_profiles_are_valid() -> Result<()> {
    require!(AppArmorParser);
    let own = Cli::new(["doctor", "--apparmor-profile"]).run()?;
    assert_eq!(own.code(), 0, "{}", own.stderr);
    for profile in [read("apparmor/cellblock")?, own.stdout] {
        let mut file = tempfile::NamedTempFile::new()?;
        std::io::Write::write_all(&mut file, profile.as_bytes())?;
        let mut parser = std::process::Command::new("apparmor_parser");
        let parsed = parser
            .args(["--skip-kernel-load", "--skip-cache"])
            .arg(file.path())
            .output()?;
        assert!(
            parsed.status.success(),
            "{profile}\n{}",
            String::from_utf8_lossy(&parsed.stderr)
        );
    }
    Ok(())
}
