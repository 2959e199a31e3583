//! `cellblock doctor`.

use anyhow::Result;
use cellblock_testkit::{Cli, require};

use crate::support::{folder, small_image};

#[test]
fn a_machine_that_runs_sandboxes_is_ready() -> Result<()> {
    require!(UserNamespaces);
    small_image()?;
    let finished = Cli::new(["doctor", "--image", "cellblock-tests", "--json"])
        .env("CELLBLOCK_FROZEN", "off")
        .run()?;
    let report = finished.json()?;
    assert_eq!(report["image"]["frozen"], "none: `CELLBLOCK_FROZEN` is `off`");
    assert_eq!(
        (finished.code(), report["ready"].as_bool()),
        (0, Some(true)),
        "{report:#}"
    );
    assert_eq!(report["trial"]["error"], serde_json::Value::Null);
    let features = report["features"].as_array().map_or(0, Vec::len);
    assert!(!cfg!(feature = "full") || features == 5, "{report:#}");
    let protections = report["protections"].as_array().into_iter().flatten();
    let strict: Vec<_> = protections
        .filter(|it| it["demand"] == "strict")
        .map(|it| it["state"].clone())
        .collect();
    assert_eq!(strict, vec!["active"; 10]);
    Ok(())
}

#[test]
fn without_an_image_the_other_checks_run() -> Result<()> {
    require!(UserNamespaces);
    let (_folder, path) = folder(&[])?;
    let finished = Cli::new(["doctor"]).env("CELLBLOCK_HOME", &path).run()?;
    assert_eq!(finished.code(), 0, "{}", finished.stdout);
    assert!(
        finished.stdout.contains("`cellblock image build` builds one"),
        "{}",
        finished.stdout
    );
    assert!(
        finished.stdout.contains("started a sandbox without a kernel"),
        "{}",
        finished.stdout
    );
    assert!(
        finished
            .stdout
            .ends_with("ready: every strict protection is active\n"),
        "{}",
        finished.stdout
    );
    Ok(())
}

#[test]
fn an_ordinary_user_sees_the_advantages_of_root() -> Result<()> {
    require!(OrdinaryUser);
    let finished = Cli::new(["doctor", "--json"]).ordinary_user().run()?;
    let report = finished.json()?;
    let protections = report["protections"].as_array().into_iter().flatten();
    let own: Vec<_> = protections.filter(|it| it["name"] == "own_user_id").collect();
    assert_eq!(own[0]["state"], "missing");
    assert!(
        own[0]["remedy"]
            .as_str()
            .is_some_and(|remedy| remedy.contains("uidmap") && remedy.contains("root")),
        "{own:?}"
    );
    Ok(())
}

#[test]
fn sandboxes_of_a_user_with_subordinate_ids_have_ids_of_their_own() -> Result<()> {
    require!(SubordinateIds);
    let finished = Cli::new(["doctor", "--json"]).with_subordinate_ids().run()?;
    let report = finished.json()?;
    let protections = report["protections"].as_array().into_iter().flatten();
    let own: Vec<_> = protections.filter(|it| it["name"] == "own_user_id").collect();
    assert_eq!(own[0]["state"], "active", "{report:#}");
    Ok(())
}
