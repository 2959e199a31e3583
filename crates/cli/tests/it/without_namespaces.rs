//! `cellblock` where the machine refuses user namespaces.

use anyhow::Result;
use cellblock_testkit::{Cli, ORDINARY_UID, binary, home, require};
use serde_json::Value;

use crate::support::{answer, folder, small_image};

#[test]
fn a_strict_policy_fails_with_the_missing_protection_and_a_fix() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let image = small_image()?;
    let finished = Cli::new(["run", "--image", image, "-c", "1"])
        .without_user_namespaces(0)
        // A host that was started where namespaces are permitted has them.
        .env("CELLBLOCK_WARM", "off")
        .run()?;
    assert_eq!((finished.code(), finished.stdout.as_str()), (78, ""));
    assert!(
        finished.stderr.starts_with(
            "error: protection `user_namespace` is not available: this machine does not permit \
             new user namespaces"
        ),
        "{}",
        finished.stderr
    );
    assert!(
        finished
            .stderr
            .contains("permit running without them (`--without-namespaces`)"),
        "{}",
        finished.stderr
    );
    Ok(())
}

#[test]
fn one_namespace_that_stays_strict_refuses_as_well() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let strict = ["--without-namespaces", "--protection", "net_namespace=strict"];
    let finished = Cli::new(
        ["run", "--image", small_image()?, "-c", "1"]
            .iter()
            .chain(&strict),
    )
    .without_user_namespaces(0)
    .run()?;
    assert_eq!(finished.code(), 78);
    assert!(
        finished
            .stderr
            .contains("protection `net_namespace` is not available"),
        "{}",
        finished.stderr
    );
    Ok(())
}

#[test]
fn an_explicit_policy_runs_and_reports_inactive_protections() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let run = ["run", "--image", small_image()?, "--without-namespaces"];
    let finished = Cli::new(run.iter().chain(&["-c", "6 * 7"]))
        .without_user_namespaces(0)
        .run()?;
    assert_eq!((finished.code(), finished.stdout.as_str()), (0, "42\n"));
    assert!(
        finished.stderr.starts_with(
            "note: running without namespaces, as the policy allows: this machine does not \
             permit new user namespaces"
        ),
        "{}",
        finished.stderr
    );
    let cli = Cli::new(run.iter().chain(&["--json", "-c", "6 * 7"]));
    let (code, report) = answer(&cli.without_user_namespaces(0).run()?)?;
    assert_eq!(code, 0);
    let protections = &report["sandbox"]["protections"];
    for name in [
        "user_namespace",
        "pid_namespace",
        "mount_namespace",
        "net_namespace",
        "hidden_proc",
    ] {
        assert_eq!(protections[name]["state"], "degraded", "{protections:#}");
    }
    for name in [
        "seccomp",
        "landlock",
        "no_new_privs",
        "no_capabilities",
        "own_user_id",
    ] {
        assert_eq!(protections[name]["state"], "active", "{protections:#}");
    }
    Ok(())
}

#[test]
fn the_environment_allows_it_for_every_command() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let run = |value: &str| {
        let cli = Cli::new(["run", "-c", "6 * 7"]).env("CELLBLOCK_IMAGE", small_image()?);
        cli.env("CELLBLOCK_WITHOUT_NAMESPACES", value)
            // A host on a machine that has namespaces would have sandboxes.
            .env("CELLBLOCK_WARM", "off")
            .without_user_namespaces(0)
            .run()
    };
    let allowed = run("1")?;
    assert_eq!((allowed.code(), allowed.stdout.as_str()), (0, "42\n"));
    assert!(
        allowed.stderr.starts_with("note: running without namespaces"),
        "{}",
        allowed.stderr
    );
    for value in ["0", "", "perhaps"] {
        assert_eq!(run(value)?.code(), 78, "{value}");
    }
    Ok(())
}

#[test]
fn a_configuration_overrides_the_environment() -> Result<()> {
    let (_folder, path) = folder(&[("strict.yaml", b"protections: {without_namespaces: false}")])?;
    let shown = |file: &[&str]| -> Result<String> {
        let cli = Cli::new(["config", "show"].iter().chain(file)).folder(&path);
        let finished = cli.env("CELLBLOCK_WITHOUT_NAMESPACES", "1").run()?;
        let mut lines = finished.stdout.lines().map(str::trim);
        let line = lines.find(|line| line.starts_with("without_namespaces"));
        Ok(line
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "))
    };
    assert_eq!(
        shown(&[])?,
        "without_namespaces: true # CELLBLOCK_WITHOUT_NAMESPACES"
    );
    assert_eq!(
        shown(&["--config", "strict.yaml"])?,
        "without_namespaces: false # strict.yaml:1:35"
    );
    Ok(())
}

#[test]
fn available_namespaces_are_used_under_every_policy() -> Result<()> {
    require!(UserNamespaces);
    let cli = Cli::new([
        "run",
        "--image",
        small_image()?,
        "--without-namespaces",
        "--json",
        "-c",
        "1",
    ]);
    let (code, report) = answer(&cli.run()?)?;
    assert_eq!(code, 0);
    assert_eq!(
        report["sandbox"]["protections"]["user_namespace"]["state"],
        "active"
    );
    Ok(())
}

#[test]
fn landlock_and_seccomp_stay_where_nothing_else_would() -> Result<()> {
    require!(UserNamespaces);
    for protection in ["landlock=disabled", "seccomp=disabled"] {
        let off = ["--without-namespaces", "--protection", "user_namespace=disabled"];
        let run = [
            "run",
            "--image",
            small_image()?,
            "--protection",
            protection,
            "-c",
            "1",
        ];
        let finished = Cli::new(run.iter().chain(&off)).run()?;
        assert_eq!(finished.code(), 78, "{}", finished.stderr);
        assert!(
            finished
                .stderr
                .contains("it cannot be disabled without namespaces"),
            "{}",
            finished.stderr
        );
    }
    Ok(())
}

#[test]
fn one_namespace_alone_cannot_be_switched_off() -> Result<()> {
    let run = [
        "run",
        "--image",
        small_image()?,
        "--protection",
        "net_namespace=disabled",
        "-c",
        "1",
    ];
    let finished = Cli::new(run).run()?;
    assert_eq!(finished.code(), 78, "{}", finished.stderr);
    assert!(
        finished
            .stderr
            .contains("namespaces cannot be disabled one by one"),
        "{}",
        finished.stderr
    );
    Ok(())
}

#[test]
fn the_doctor_fails_and_with_the_policy_reports_protections() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let doctor = |arguments: &[&str], uid| -> Result<(i32, Value)> {
        let cli = Cli::new(["doctor", "--json"].iter().chain(arguments));
        let finished = cli.without_user_namespaces(uid).run()?;
        Ok((finished.code(), finished.json()?))
    };
    let state = |report: &Value, name: &str| {
        let all = report["protections"].as_array().into_iter().flatten();
        let found: Vec<_> = all.filter(|it| it["name"] == name).collect();
        found[0]["state"].as_str().unwrap_or_default().to_owned()
    };
    let (code, report) = doctor(&[], ORDINARY_UID)?;
    assert_eq!((code, report["ready"].as_bool()), (78, Some(false)));
    assert!(
        report["trial"]["error"].to_string().contains("user_namespace"),
        "{report:#}"
    );
    assert_eq!(report["ready_without_namespaces"], true, "{report:#}");
    let next = report["next"].to_string();
    assert!(next.contains("sysctl -w user.max_user_namespaces"), "{next}");
    let (code, report) = doctor(&["--without-namespaces"], ORDINARY_UID)?;
    assert_eq!((code, report["ready"].as_bool()), (0, Some(true)), "{report:#}");
    assert_eq!(state(&report, "user_namespace"), "missing");
    assert_eq!(state(&report, "own_user_id"), "missing");
    assert_eq!(state(&report, "seccomp"), "active");
    let (code, report) = doctor(&["--without-namespaces", "--image", small_image()?], 0)?;
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(state(&report, "own_user_id"), "active");
    Ok(())
}

/// A container as common engines make them: a user namespace may be made, but files of `/proc` are
/// covered, so that no fresh one may be mounted.
fn in_masked_container(arguments: &[&str]) -> Result<std::process::Output> {
    let script = "mount --bind /dev/null /proc/timer_list && exec unshare --user --map-user=1000 \
                  --map-group=1000 \"$@\"";
    let mut command = std::process::Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        "masked",
    ]);
    command.arg(binary()?).args(["run", "--image", small_image()?]);
    command.args(arguments).env("CELLBLOCK_HOME", home()?);
    // A host that was started outside has what is missing here.
    Ok(command.env("CELLBLOCK_WARM", "off").output()?)
}

#[test]
fn a_container_that_masks_proc_runs_only_by_policy() -> Result<()> {
    require!(UserNamespaces);
    let refused = in_masked_container(&["-c", "1"])?;
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(78), "{told}");
    assert!(
        told.starts_with(
            "error: protection `mount_namespace` is not available: this machine creates user namespaces \
             but grants no rights in them"
        ),
        "{told}"
    );
    let allowed = in_masked_container(&["--without-namespaces", "-c", "6 * 7"])?;
    let told = String::from_utf8_lossy(&allowed.stderr).into_owned();
    assert_eq!(
        (
            allowed.status.code(),
            String::from_utf8_lossy(&allowed.stdout).as_ref()
        ),
        (Some(0), "42\n"),
        "{told}"
    );
    assert!(told.starts_with("note: running without namespaces"), "{told}");
    Ok(())
}
