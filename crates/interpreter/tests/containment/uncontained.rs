//! Every probe without a sandbox: each reaches what it tries, so that none holds by being broken.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use cellblock_testkit::require;

use crate::probe::{self, folder};
use crate::support::{block_on, image, python};
use crate::verdict::Verdict;

#[test]
fn without_a_sandbox_every_probe_reaches_but_those_that_say_why_not() {
    require!(Root);
    let image = block_on(image());
    let scratch = tempfile::tempdir().unwrap();
    let output = Command::new("unshare")
        .args([
            "--mount",
            "--pid",
            "--net",
            "--ipc",
            "--uts",
            "--cgroup",
            "--fork",
            "--kill-child",
            "--",
        ])
        .arg(python(&image))
        .args(["-I", "-B"])
        .arg(folder().join("uncontained.py"))
        .args([&folder(), image.root(), scratch.path()])
        .arg(std::env::var("CELLBLOCK_PROBES").unwrap_or_default())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    let said: BTreeMap<String, String> = serde_json::from_slice(&output.stdout).unwrap();
    let mut complaints = Vec::new();
    let (mut reached, mut all) = (0, 0);
    for probe in probe::chosen() {
        all += 1;
        let said = said.get(&probe.name).map_or("", String::as_str);
        match (Verdict::said(said), &probe.uncontained) {
            (Some(Verdict::Reached(_)), None) => reached += 1,
            (Some(Verdict::Reached(what)), Some(_)) => complaints.push(format!(
                "{} reached {what}, though its header says why it cannot",
                probe.name
            )),
            (_, Some(_)) => {}
            (_, None) => complaints.push(format!("{} did not reach anything: {said}", probe.name)),
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    // Not through `print!`, which a passing test swallows.
    let _ = writeln!(
        std::io::stderr(),
        "uncontained probes that reached what they try: {reached} of {all}"
    );
}
