//! Files out: what is handed over, once, under which names, and what is not.

use cellblock_interpreter::toolset::ToolEvent;
use serde_json::{Value, json};

use crate::support::{Bench, bench, block_on, hint, interpreter, limited};

fn names(ended: &Value) -> Vec<&str> {
    let names = ended["output_files"].as_array().unwrap();
    names.iter().map(|name| name.as_str().unwrap()).collect()
}

fn skipped(ended: &Value) -> Vec<(&str, &str)> {
    let skipped = ended["skipped_files"].as_array().unwrap();
    skipped
        .iter()
        .map(|file| (file["path"].as_str().unwrap(), file["reason"].as_str().unwrap()))
        .collect()
}

fn visualizations(bench: &mut tokio::sync::broadcast::Receiver<ToolEvent>) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    while let Ok(event) = bench.try_recv() {
        if let ToolEvent::Visualization {
            path,
            sha256,
            media_type,
        } = event
        {
            found.push((path.display().to_string(), sha256, media_type));
        }
    }
    found
}

#[test]
fn new_and_changed_files_come_once_with_their_folders() {
    block_on(async {
        let bench = bench().await;
        let first = bench
            .sh("cd /tmp/output; mkdir -p a/b; echo 1 > r.csv; echo 2 > a/b/r.csv")
            .await;
        assert_eq!(names(&first), ["a/b/r.csv", "r.csv"]);
        assert_eq!(
            (&first["total_output_files"], hint(&first)),
            (&json!(2), "executed_with_files")
        );
        assert_eq!(
            (bench.handed_over("r.csv"), bench.handed_over("a/b/r.csv")),
            (b"1\n".to_vec(), b"2\n".to_vec())
        );
        let second = bench.sh("ls /tmp/output; touch /tmp/elsewhere").await;
        assert_eq!(names(&second), [""; 0]);
        assert_eq!(hint(&second), "executed_without_files");
        let third = bench.sh("echo 3 > /tmp/output/r.csv").await;
        assert_eq!(names(&third), ["r.csv"]);
        assert_eq!(bench.handed_over("r.csv"), b"3\n");
        // A failure has files, too.
        let failed = bench.sh("echo 4 > /tmp/output/late.csv; exit 1").await;
        assert_eq!(
            (names(&failed), hint(&failed)),
            (vec!["late.csv"], "execution_failed")
        );
    });
}

#[test]
fn an_earlier_version_stays_in_the_store() {
    block_on(async {
        let bench = bench().await;
        let store = interpreter().await.store();
        let before = store.list().await.unwrap();
        let mark = std::process::id();
        bench.sh(&format!("echo first {mark} > /tmp/output/v.txt")).await;
        bench.sh(&format!("echo second {mark} > /tmp/output/v.txt")).await;
        let mut found = Vec::new();
        for id in store.list().await.unwrap() {
            if !before.contains(&id) {
                found.push(String::from_utf8_lossy(&store.get(id).await.unwrap()).into_owned());
            }
        }
        for text in [format!("first {mark}\n"), format!("second {mark}\n")] {
            assert!(found.contains(&text), "{found:?}");
        }
    });
}

#[test]
fn at_most_twenty_come_at_a_time_and_the_rest_with_the_next_commands() {
    block_on(async {
        let bench = bench().await;
        let first = bench
            .sh("cd /tmp/output; for n in $(seq 10 54); do echo $n > f$n; done")
            .await;
        assert_eq!(
            (names(&first).len(), &first["total_output_files"]),
            (20, &json!(45))
        );
        assert_eq!(names(&first)[..2], ["f10", "f11"]);
        let told = first["hint"]["message"].as_str().unwrap();
        assert!(
            told.contains(
                "45 output files created. 20 of them are handed over now, 25 with the next command."
            ),
            "{told}"
        );
        let second = bench.exec(["true"]).await;
        assert_eq!(
            (names(&second).len(), &second["total_output_files"]),
            (20, &json!(25))
        );
        let third = bench.exec(["true"]).await;
        assert_eq!(
            (names(&third).len(), &third["total_output_files"]),
            (5, &json!(5))
        );
        assert_eq!(bench.exec(["true"]).await["total_output_files"], json!(0));
        assert_eq!(std::fs::read_dir(bench.output_dir()).unwrap().count(), 45);
    });
}

#[test]
fn pictures_raise_an_event_and_what_only_has_their_name_does_not() {
    block_on(async {
        let bench = bench().await;
        let mut events = bench.tools.events();
        let draw = "import matplotlib; matplotlib.use('Agg')\nimport matplotlib.pyplot as plt\n\
                    plt.plot([1, 2])\n\
                    for kind in ('png', 'jpg', 'svg', 'pdf'): plt.savefig(f'/tmp/output/p.{kind}')\n\
                    open('/tmp/output/fake.png', 'w').write('<html>')";
        let ended = bench.exec(["python", "-c", draw]).await;
        assert_eq!(
            names(&ended),
            ["fake.png", "p.jpg", "p.pdf", "p.png", "p.svg"],
            "{ended:#}"
        );
        let seen = visualizations(&mut events);
        let kinds: Vec<_> = seen
            .iter()
            .map(|(path, _, kind)| (path.rsplit('/').next().unwrap(), &**kind))
            .collect();
        assert_eq!(
            kinds,
            [
                ("p.jpg", "image/jpeg"),
                ("p.png", "image/png"),
                ("p.svg", "image/svg+xml")
            ]
        );
        let (path, sha256, _) = &seen[1];
        let stored = interpreter()
            .await
            .store()
            .get(sha256.parse().unwrap())
            .await
            .unwrap();
        assert_eq!(std::fs::read(path).unwrap(), stored);
        bench.exec(["true"]).await;
        assert_eq!(
            visualizations(&mut events),
            [],
            "an unchanged picture is not shown again"
        );
    });
}

#[test]
fn what_is_no_plain_file_is_refused_and_reported() {
    block_on(async {
        let bench = limited(|limits| limits.collected_file_bytes = 1 << 20).await;
        let ended = bench
            .sh(
                "cd /tmp/output; ln -s /etc/passwd link; ln -s / root; mkfifo pipe; truncate -s 2M sparse; \
                 python -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"; \
                 ln /tmp/output/good hard 2>/dev/null; echo x > \"$(printf 'new\\nline')\"; echo ok > good",
            )
            .await;
        assert_eq!(names(&ended), ["good"]);
        let mut refused = skipped(&ended);
        refused.sort_unstable();
        assert_eq!(
            refused,
            [
                ("/tmp/output/link", "is a symbolic link"),
                (
                    "/tmp/output/new\\nline",
                    "its name cannot be used outside the sandbox"
                ),
                ("/tmp/output/pipe", "is a FIFO"),
                ("/tmp/output/root", "is a symbolic link"),
                ("/tmp/output/sock", "is a socket"),
                ("/tmp/output/sparse", "it has 2097152 bytes, the limit is 1048576"),
            ]
        );
        assert_eq!(std::fs::read_dir(bench.output_dir()).unwrap().count(), 1);
        let again = bench.exec(["true"]).await;
        assert_eq!(
            again.get("skipped_files"),
            None,
            "what was reported is not reported again: {again:#}"
        );
    });
}

#[test]
fn the_host_follows_no_link_that_an_earlier_command_could_have_led_it_to() {
    block_on(async {
        let bench = bench().await;
        let bait = bench.folder().join("bait");
        std::fs::create_dir(&bait).unwrap();
        std::fs::create_dir_all(bench.output_dir()).unwrap();
        std::os::unix::fs::symlink(&bait, bench.output_dir().join("sub")).unwrap();
        std::os::unix::fs::symlink(bait.join("file"), bench.output_dir().join("direct")).unwrap();
        let ended = bench
            .sh("cd /tmp/output; mkdir sub; echo x > sub/file; echo y > direct")
            .await;
        assert_eq!(names(&ended), ["direct"]);
        assert_eq!(skipped(&ended).len(), 1);
        assert_eq!(std::fs::read_dir(&bait).unwrap().count(), 0);
        assert_eq!(bench.handed_over("direct"), b"y\n");
        assert!(
            !ended.to_string().contains(bench.folder().to_str().unwrap()),
            "{ended:#}"
        );
    });
}

#[test]
fn links_swapped_in_while_files_are_collected_lead_nowhere() {
    block_on(async {
        let bench = bench().await;
        let swap = "import os, threading\ngoing = True\n\
                    def swap():\n    n = 0\n    while going:\n        n += 1\n        for make in (lambda \
                    p: os.symlink('/etc/passwd', p), lambda p: open(p, 'w').write(f'own \
                    {n}')):\n            make('/tmp/x'); os.rename('/tmp/x', '/tmp/output/f')\n\
                    threading.Thread(target=swap, daemon=True).start()";
        bench.session.execute(swap).await.unwrap();
        for _ in 0..40 {
            bench.exec(["true"]).await;
            if let Ok(content) = std::fs::read_to_string(bench.output_dir().join("f")) {
                assert!(content.is_empty() || content.starts_with("own "), "{content}");
            }
        }
        bench.session.execute("going = False").await.unwrap();
    });
}

#[test]
fn a_cell_and_a_command_see_the_same_files() {
    block_on(async {
        let bench = bench().await;
        bench
            .put(
                "/workspace/job.py",
                "open('/tmp/output/by_job.txt', 'w').write('job')\nprint('ran')",
            )
            .await;
        assert_eq!(bench.stdout(["python", "job.py"]).await, "ran\n");
        let cell = bench
            .session
            .execute("exec(open('job.py').read())\nopen('made.txt', 'w').write('cell')")
            .await
            .unwrap();
        assert_eq!(cell.stdout.text, "ran\n");
        assert_eq!(bench.stdout(["cat", "/workspace/made.txt"]).await, "cell");
    });
}

#[test]
fn what_a_command_has_handed_over_is_not_a_file_of_the_next_cell() {
    block_on(async {
        let bench: Bench = bench().await;
        bench.sh("echo 1 > /tmp/output/once.csv").await;
        let cell = bench.session.execute("print(1)").await.unwrap();
        assert_eq!(cell.files, []);
        let cell = bench
            .session
            .execute("open('/tmp/output/of_cell.csv', 'w').write('1')")
            .await
            .unwrap();
        let names: Vec<_> = cell.files.iter().map(|file| &*file.name).collect();
        assert_eq!(names, ["of_cell.csv"]);
    });
}
