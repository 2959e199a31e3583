//! Warm hosts: a run with one is like a run without, and a host that is missing or broken is no error.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use cellblock_testkit::{Cli, CommandOutput, Count, LeakOwner, ORDINARY_UID, binary, require, small_image};
use rustix::process::{Pid, Signal, Uid, kill_process};
use serde_json::Value;

use crate::support::{PATIENCE, World, until};

/// Arguments of runs whose results do not depend on time, with what they are about.
const RUNS: [&[&str]; 11] = [
    &[
        "-c",
        "print('out')\nimport sys\nprint('err', file=sys.stderr)\n6 * 7",
    ],
    &["-c", "x = 20", "-c", "x += 1\ndisplay(pd.DataFrame({'a': [x]}))"],
    &["-c", "1 / 0"],
    &["-c", "raise SystemExit(3)"],
    &["-c", "def f(:"],
    &["--input", "sales=sales.csv", "-c", "int(sales.n.sum())"],
    &["--out", "saved", "-c", "open('a.txt', 'w').write('one')"],
    &["--timeout", "0.5", "-c", "import time\ntime.sleep(60)"],
    &["--memory", "3GiB", "-c", "'more than the default'"],
    &["-c", "import os\nos.kill(os.getpid(), 9)"],
    &[
        "-c",
        "import os\nsorted(os.environ), os.getcwd(), os.getuid(), os.umask(0o22)",
    ],
];

fn start(world: &World, options: &[&str]) -> Result<String> {
    let image = small_image()?;
    let arguments = ["warm", "start", "--image", image];
    world.said(arguments.into_iter().chain(options.iter().copied()))
}

fn running<'a>(world: &World, arguments: impl IntoIterator<Item = &'a str>) -> Result<Cli> {
    let image = small_image()?;
    let mut all = vec!["run", "--image", image];
    for argument in arguments {
        all.push(argument);
    }
    Ok(world.cli(all))
}

/// Runs a cell that completes; says whether a warm host was used.
fn is_warm(world: &World, options: &[&str]) -> Result<bool> {
    let arguments = ["--json", "-c", "1 + 1"];
    let finished = running(world, options.iter().copied().chain(arguments))?.run()?;
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    assert_eq!(finished.stderr, "");
    let report = finished.json()?;
    assert_eq!(report["outputs"][0]["value"], 2);
    Ok(report["warm"] == true)
}

fn hosts(world: &World) -> Result<Vec<Value>> {
    let status = world.cli(["warm", "status", "--json"]).run()?.json()?;
    Ok(status["hosts"].as_array().context("no hosts")?.clone())
}

/// The only host.
fn host(world: &World) -> Result<Value> {
    let mut hosts = hosts(world)?;
    assert_eq!(hosts.len(), 1, "{hosts:?}");
    hosts.pop().context("no host")
}

fn process(host: &Value) -> Result<u32> {
    Ok(u32::try_from(host["process"].as_u64().context("no process")?)?)
}

fn signal(process: u32, signal: Signal) -> Result<()> {
    let process = Pid::from_raw(i32::try_from(process)?).context("no process")?;
    Ok(kill_process(process, signal)?)
}

fn places(world: &World) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(world.home().join("warm"))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.is_dir()).collect())
}

#[test]
fn a_run_with_a_warm_host_prints_saves_and_exits_as_without() -> Result<()> {
    let world = World::new()?;
    fs::write(world.work().join("sales.csv"), "city,n\nOslo,3\nRome,4\n")?;
    let runs = || -> Result<Vec<(i32, String, String)>> {
        let run = |arguments: &&[&str]| {
            let finished = running(&world, arguments.iter().copied())?.run()?;
            Ok((finished.code(), finished.stdout, finished.stderr))
        };
        RUNS.iter().map(run).collect()
    };
    let without = runs()?;
    fs::remove_dir_all(world.work().join("saved"))?;
    start(&world, &[])?;
    assert!(is_warm(&world, &[])?);
    assert_eq!(runs()?, without);
    assert_eq!(fs::read_to_string(world.work().join("saved/a.txt"))?, "one");
    assert_eq!(host(&world)?["running"], 0);
    Ok(())
}

#[test]
fn each_run_has_a_new_session() -> Result<()> {
    let world = World::new()?;
    start(&world, &[])?;
    let run = |code: &str| -> Result<CommandOutput> { running(&world, ["-c", code])?.run() };
    let first = run("kept = 1\nopen('/tmp/kept', 'w').write('1')")?;
    assert_eq!(first.code(), 0, "{}", first.stderr);
    let second = run("import os\n'kept' in globals(), os.path.exists('/tmp/kept')")?;
    assert_eq!(second.stdout, "(False, False)\n");
    Ok(())
}

#[test]
fn a_host_is_used_for_its_image_and_policy_only() -> Result<()> {
    let world = World::new()?;
    start(&world, &[])?;
    assert!(is_warm(&world, &[])?);
    assert!(is_warm(&world, &["--timeout", "5", "--memory", "256MiB"])?);
    assert!(!is_warm(&world, &["--protection", "landlock_scopes=disabled"])?);
    let off = running(&world, ["--json", "-c", "1"])?.env("CELLBLOCK_WARM", "off");
    assert_eq!(off.run()?.json()?.get("warm"), None);
    Ok(())
}

#[test]
fn two_starts_at_once_lead_to_one_host() -> Result<()> {
    let world = World::new()?;
    let image = small_image()?;
    let started = (0..2)
        .map(|_| world.cli(["warm", "start", "--image", image]).start())
        .collect::<Result<Vec<_>>>()?;
    let mut ids = Vec::new();
    for running in started {
        let finished = running.finish()?;
        assert_eq!(finished.code(), 0, "{}", finished.stderr);
        ids.push(finished.stdout.split(' ').next().map(str::to_owned));
    }
    assert_eq!(ids[0], ids[1]);
    host(&world)?;
    Ok(())
}

#[test]
fn status_describes_a_host_until_it_is_stopped() -> Result<()> {
    let world = World::new()?;
    let none = "no warm host is running";
    assert_eq!(
        world.said(["warm", "status"])?,
        format!("{none}; `cellblock warm start` starts one")
    );
    assert_eq!(world.said(["warm", "stop"])?, none);
    let line = start(&world, &["--idle-timeout", "1h"])?;
    assert!(line.contains(" ready, ") && !line.contains(", 0 ready"), "{line}");
    until("the pool", || Ok(host(&world)?["ready"] == 2))?;
    let host = host(&world)?;
    assert_eq!(host["state"], "idle");
    assert_eq!(host["image"], small_image()?);
    assert_eq!(host["policy"], serde_json::json!({}));
    assert_eq!(host["idle_limit_seconds"], 3600.0);
    assert!(host["memory_bytes"].as_u64() > Some(1 << 20), "{host}");
    let id = host["id"].as_str().context("no id")?;
    let process = process(&host)?;
    assert!(
        line.starts_with(&format!("{id}  process {process}, image ")),
        "{line}"
    );
    let owner = LeakOwner::of(process);
    assert_eq!(
        world.said(["warm", "stop"])?,
        format!("stopped {id}, process {process}")
    );
    assert_eq!(places(&world)?, Vec::<PathBuf>::new());
    let mut owner = owner;
    owner
        .until(&Count::default(), PATIENCE)
        .map_err(|left| anyhow::anyhow!("{left}"))
}

#[test]
fn an_unused_host_ends() -> Result<()> {
    let world = World::new()?;
    start(&world, &["--idle-timeout", "1s"])?;
    // Looking at it does not keep it.
    until("the host's end", || Ok(hosts(&world)?.is_empty()))?;
    assert_eq!(places(&world)?, Vec::<PathBuf>::new());
    assert!(!is_warm(&world, &[])?);
    Ok(())
}

#[test]
fn the_variable_starts_a_host_for_the_runs_after() -> Result<()> {
    let world = World::new()?;
    let run = || -> Result<Value> {
        let cli = running(&world, ["--json", "-c", "1"])?.env("CELLBLOCK_WARM", "10m");
        let finished = cli.run()?;
        assert_eq!((finished.code(), finished.stderr.as_str()), (0, ""));
        finished.json()
    };
    assert_eq!(run()?.get("warm"), None);
    until("a run with the host", || Ok(run()?["warm"] == true))?;
    assert_eq!(host(&world)?["idle_limit_seconds"], 600.0);
    Ok(())
}

#[test]
fn an_invalid_variable_is_named_with_valid_values() -> Result<()> {
    let world = World::new()?;
    let cli = running(&world, ["-c", "1"])?.env("CELLBLOCK_WARM", "soon");
    let finished = cli.run()?;
    assert_eq!((finished.code(), finished.stdout.as_str()), (2, ""));
    assert_eq!(
        finished.stderr,
        "error: CELLBLOCK_WARM: invalid idle timeout `soon`: must be a time such as `15m`, `90s` or `1h`; \
         `off` uses no warm host\n"
    );
    Ok(())
}

#[test]
fn a_run_goes_on_without_a_host_that_hangs() -> Result<()> {
    let world = World::new()?;
    start(&world, &[])?;
    let process = process(&host(&world)?)?;
    signal(process, Signal::STOP)?;
    assert!(!is_warm(&world, &[])?);
    assert_eq!(host(&world)?["state"], "silent");
    let stopped = world.cli(["warm", "stop"]).limit(4 * PATIENCE).run()?;
    assert_eq!(stopped.code(), 0, "{}", stopped.stderr);
    assert_eq!(hosts(&world)?, Vec::<Value>::new());
    Ok(())
}

#[test]
fn a_host_that_is_killed_ends_its_run_and_not_the_next() -> Result<()> {
    let world = World::new()?;
    start(&world, &[])?;
    let host_before = host(&world)?;
    let (id, process) = (
        host_before["id"].as_str().context("no id")?,
        process(&host_before)?,
    );
    let busy = running(&world, ["-c", "import time\ntime.sleep(50)"])?.start()?;
    until("the run's start", || Ok(host(&world)?["running"] == 1))?;
    signal(process, Signal::KILL)?;
    let finished = busy.finish()?;
    assert_eq!(finished.code(), 70, "{}", finished.stderr);
    assert!(
        finished.stderr.contains(&format!(
            "the connection to warm host `{id}` was lost: the peer closed it"
        )),
        "{}",
        finished.stderr
    );
    // Its socket is still there.
    assert!(places(&world)?[0].join("socket").exists());
    assert!(!is_warm(&world, &[])?);
    start(&world, &[])?;
    assert!(is_warm(&world, &[])?);
    Ok(())
}

#[test]
fn the_host_of_another_program_file_is_known_but_not_used() -> Result<()> {
    let world = World::new()?;
    let other = world.work().join("cellblock");
    fs::copy(binary()?, &other)?;
    let script = format!("'{}' warm start --image \"$image\"", other.display());
    let (code, _, stderr) = world.script(&script)?;
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(host(&world)?["state"], "idle");
    assert!(!is_warm(&world, &[])?);
    world.said(["warm", "stop"])?;
    assert_eq!(hosts(&world)?, Vec::<Value>::new());
    Ok(())
}

#[test]
fn a_host_is_reached_however_long_the_path_of_the_home_is() -> Result<()> {
    let world = World::new()?;
    let deep = world.work().join("d".repeat(200)).join("home");
    fs::create_dir(deep.parent().context("no parent")?)?;
    symlink(world.home(), &deep)?;
    let image = small_image()?;
    let cli = |arguments: &[&str]| world.cli(arguments.iter().copied()).env("CELLBLOCK_HOME", &deep);
    let started = cli(&["warm", "start", "--image", image]).run()?;
    assert_eq!(started.code(), 0, "{}", started.stderr);
    let report = cli(&["run", "--image", image, "--json", "-c", "1"])
        .run()?
        .json()?;
    assert_eq!(report["warm"], true);
    Ok(())
}

#[test]
fn a_directory_that_cannot_be_used_stops_a_start_and_no_run() -> Result<()> {
    let world = World::new()?;
    let warm = world.home().join("warm");
    let image = small_image()?;
    let refused = || -> Result<()> {
        let started = world.cli(["warm", "start", "--image", image]).run()?;
        assert_eq!((started.code(), started.stdout.as_str()), (78, ""));
        let message = format!(
            "`{}` is not a directory that only the caller, user ",
            warm.display()
        );
        assert!(started.stderr.contains(&message), "{}", started.stderr);
        let run = running(&world, ["-c", "1"])?.env("CELLBLOCK_WARM", "1m").run()?;
        assert_eq!((run.code(), run.stderr.as_str()), (0, ""));
        Ok(())
    };
    fs::write(&warm, "")?;
    refused()?;
    fs::remove_file(&warm)?;
    fs::create_dir(&warm)?;
    fs::set_permissions(&warm, fs::Permissions::from_mode(0o755))?;
    refused()?;
    fs::set_permissions(&warm, fs::Permissions::from_mode(0o700))?;
    Ok(())
}

#[test]
fn a_host_without_home_is_in_the_data_directory() -> Result<()> {
    let world = World::new()?;
    symlink(world.home(), world.work().join("cellblock"))?;
    let script = "unset HOME CELLBLOCK_HOME; export XDG_DATA_HOME=\"$PWD\"; \
                  \"$cellblock\" warm start --image \"$image\"; \
                  \"$cellblock\" run --image \"$image\" --json -c 1 | grep -c '\"warm\":true'";
    let (code, stdout, stderr) = world.script(script)?;
    assert_eq!((code, stdout.lines().last()), (0, Some("1")), "{stderr}");
    Ok(())
}

#[test]
fn only_the_user_who_started_a_host_gets_its_sandboxes() -> Result<()> {
    require!(Root);
    let world = World::new()?;
    start(&world, &[])?;
    let place = places(&world)?.pop().context("no directory")?;
    let mode = |path: &PathBuf| -> Result<u32> { Ok(fs::metadata(path)?.permissions().mode() & 0o777) };
    let socket = place.join("socket");
    assert_eq!((mode(&place)?, mode(&socket)?), (0o700, 0o600));
    let ask = |user: u32| -> Result<Vec<u8>> {
        // Of this thread alone, which ends with it.
        let user = Uid::from_raw(user);
        rustix::thread::set_thread_res_uid(user, user, user)?;
        let mut stream = UnixStream::connect(&socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let question = br#"{"generation":1,"ask":{"do":"sandbox"}}"#;
        let mut frame = vec![b'm', u8::try_from(question.len())?, 0, 0, 0];
        frame.extend_from_slice(question);
        // The host may have hung up before all was said, or heard.
        let _ = stream.write_all(&frame);
        let mut heard = vec![0; 5];
        let count = stream.read(&mut heard).unwrap_or_default();
        heard.truncate(count);
        Ok(heard)
    };
    let ask = |user: u32| std::thread::scope(|scope| scope.spawn(move || ask(user)).join());
    let hear = |user: u32| ask(user).map_err(|_| anyhow::anyhow!("the thread panicked"))?;
    assert!(hear(ORDINARY_UID).is_err(), "the directory keeps others out");
    for (path, open) in [
        (world.home().join("warm"), 0o755),
        (place.clone(), 0o755),
        (socket.clone(), 0o666),
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(open))?;
    }
    for folder in [
        world.home(),
        world.work().parent().context("no parent")?.to_owned(),
    ] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    }
    assert_eq!(hear(ORDINARY_UID)?, b"", "the host hangs up on another user");
    assert_eq!(hear(0)?.first(), Some(&b'm'), "the host answers its own");
    fs::set_permissions(world.home().join("warm"), fs::Permissions::from_mode(0o700))?;
    Ok(())
}
