//! The testing checklist of the toolset's specification, item by item.

use std::time::{Duration, Instant};

use cellblock_interpreter::toolset::ToolEvent;
use cellblock_interpreter::workbench::DatasetSource;
use cellblock_testkit::wait::until;
use serde_json::json;

use crate::support::{Bench, bench, block_on, hint, running};

/// Three groups of points.
const POINTS: &str =
    "volume,count\n1,1\n1.1,0.9\n0.9,1.2\n10,10\n10.2,9.8\n9.9,10.1\n20,1\n20.2,1.1\n19.8,0.9\n";

async fn with_points(bench: &Bench) {
    let path = bench.folder().join("points.csv");
    std::fs::write(&path, POINTS).unwrap();
    bench
        .tools
        .add_dataset("prescribers", DatasetSource::File(path))
        .await
        .unwrap();
}

#[test]
fn simple_python_execution() {
    block_on(async {
        let ended = bench().await.exec(["python", "-c", "print('hello world')"]).await;
        assert_eq!(
            (&ended["exit_code"], &ended["stdout"]),
            (&json!(0), &json!("hello world\n"))
        );
    });
}

#[test]
fn csv_loading_from_tmp_data() {
    block_on(async {
        let bench = bench().await;
        with_points(&bench).await;
        assert_eq!(
            bench.stdout(["head", "-2", "/tmp/data/prescribers.csv"]).await,
            "volume,count\n1,1\n"
        );
        let load = "import csv; print(len(list(csv.DictReader(open('/tmp/data/prescribers.csv')))))";
        assert_eq!(bench.stdout(["python", "-c", load]).await, "9\n");
    });
}

#[test]
fn polars_analysis_with_results() {
    block_on(async {
        let bench = bench().await;
        with_points(&bench).await;
        bench
            .put(
                "/tmp/analysis.py",
                "import polars as pl\ndf = pl.read_csv('/tmp/data/prescribers.csv')\n\
                 df.filter(pl.col('volume') > 15).write_csv('/tmp/output/large.csv')\nprint(df.height)\n",
            )
            .await;
        let ended = bench.exec(["python", "/tmp/analysis.py"]).await;
        assert_eq!(
            (&ended["stdout"], &ended["output_files"]),
            (&json!("9\n"), &json!(["large.csv"])),
            "{ended:#}"
        );
        assert_eq!(
            bench.handed_over("large.csv"),
            b"volume,count\n20.0,1.0\n20.2,1.1\n19.8,0.9\n"
        );
    });
}

#[test]
fn sklearn_clustering_and_visualization() {
    block_on(async {
        let bench = bench().await;
        with_points(&bench).await;
        let mut events = bench.tools.events();
        bench
            .put(
                "/tmp/cluster.py",
                "import polars as pl\nimport matplotlib\nmatplotlib.use('Agg')\n\
                 import matplotlib.pyplot as plt\n\
                 from sklearn.cluster import KMeans\n\
                 df = pl.read_csv('/tmp/data/prescribers.csv')\n\
                 X = df.select(['volume', 'count']).to_numpy()\n\
                 kmeans = KMeans(n_clusters=3, random_state=42).fit(X)\n\
                 df.with_columns(pl.Series('cluster', \
                 kmeans.labels_)).write_csv('/tmp/output/clustered.csv')\n\
                 plt.scatter(X[:, 0], X[:, 1], c=kmeans.labels_)\nplt.savefig('/tmp/output/plot.png')\n\
                 print(f'Created {len(set(kmeans.labels_))} clusters')\n",
            )
            .await;
        let ended = bench.exec(["python", "/tmp/cluster.py"]).await;
        assert_eq!(ended["stdout"], json!("Created 3 clusters\n"), "{ended:#}");
        assert_eq!(ended["output_files"], json!(["clustered.csv", "plot.png"]));
        let mut shown = Vec::new();
        while let Ok(event) = events.try_recv() {
            if let ToolEvent::Visualization { media_type, .. } = event {
                shown.push(media_type);
            }
        }
        assert_eq!(shown, ["image/png"]);
    });
}

#[test]
fn error_recovery() {
    block_on(async {
        let bench = bench().await;
        bench
            .put("/tmp/a.py", "values = [1, 2, 3]\nprint(sum(valuse))\n")
            .await;
        let failed = bench.exec(["python", "/tmp/a.py"]).await;
        assert_eq!(
            (&failed["exit_code"], hint(&failed)),
            (&json!(1), "execution_failed")
        );
        assert!(
            failed["stderr"]
                .as_str()
                .unwrap()
                .contains("NameError: name 'valuse' is not defined")
        );
        assert_eq!(
            bench.edit("/tmp/a.py", "valuse", "values").await["success"],
            json!(true)
        );
        assert_eq!(bench.stdout(["python", "/tmp/a.py"]).await, "6\n");
    });
}

#[test]
fn edit_uniqueness_error_then_read_then_fix() {
    block_on(async {
        let bench = bench().await;
        bench.put("/tmp/a.py", "x = 3\ny = 3\nprint(x + y)\n").await;
        let refused = bench.edit("/tmp/a.py", "3", "5").await;
        assert_eq!(
            refused["error"],
            json!("old_string found 2 times - not unique. Include more context.")
        );
        assert_eq!(
            bench.stdout(["cat", "/tmp/a.py"]).await,
            "x = 3\ny = 3\nprint(x + y)\n"
        );
        assert_eq!(
            bench.edit("/tmp/a.py", "y = 3", "y = 5").await["success"],
            json!(true)
        );
        assert_eq!(bench.stdout(["python", "/tmp/a.py"]).await, "8\n");
    });
}

#[test]
fn multiple_files_in_tmp_output() {
    block_on(async {
        let bench = bench().await;
        let ended = bench
            .sh("cd /tmp/output; echo a > a.txt; echo '{}' > b.json; mkdir sub; echo c > sub/a.txt")
            .await;
        assert_eq!(ended["output_files"], json!(["a.txt", "b.json", "sub/a.txt"]));
        assert_eq!(
            (bench.handed_over("a.txt"), bench.handed_over("sub/a.txt")),
            (b"a\n".to_vec(), b"c\n".to_vec())
        );
    });
}

#[test]
fn large_stdout_truncation() {
    block_on(async {
        let ended = bench()
            .await
            .exec(["python", "-c", "print('x' * 50_000); print('end')"])
            .await;
        assert_eq!(ended["stdout_truncated"], json!(true));
        let text = ended["stdout"].as_str().unwrap();
        assert!(
            text.len() <= 10 * 1024 && text.starts_with("xxx") && text.ends_with("x\nend\n"),
            "{}",
            text.len()
        );
    });
}

#[test]
fn path_validation() {
    block_on(async {
        let bench = bench().await;
        assert_eq!(
            bench.write(concat!("/home", "/bad.py"), "x").await,
            json!({
                "success": false,
                "error": "Invalid path: must be /tmp/* or /workspace/*",
                "file_path": concat!("/home", "/bad.py"),
                "hint": {
                    "code": "invalid_path",
                    "message": "Invalid path. Use /tmp/ or /workspace/ only; no links, and \
                                nothing below /tmp/data/.",
                },
            })
        );
        assert_eq!(
            bench.edit(concat!("/home", "/bad.py"), "x", "y").await["error"],
            json!("Invalid path: must be /tmp/* or /workspace/*")
        );
    });
}

#[test]
fn network_blocking() {
    block_on(async {
        let bench = bench().await;
        let connect = "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:1/', timeout=5)";
        let ended = bench.exec(["python", "-c", connect]).await;
        assert_eq!(ended["exit_code"], json!(1));
        assert!(
            ended["stderr"]
                .as_str()
                .unwrap()
                .contains("Operation not permitted"),
            "{ended:#}"
        );
        let socket = "import socket\ntry:\n  socket.socket()\nexcept PermissionError as e:\n  print(e.errno)";
        assert_eq!(bench.stdout(["python", "-c", socket]).await, "1\n");
        let interfaces =
            "import os; print(sorted(set(l.split(':')[0].strip() for l in list(open('/proc/net/dev'))[2:])))";
        assert_eq!(bench.stdout(["python", "-c", interfaces]).await, "['lo']\n");
    });
}

#[test]
fn timeout_enforcement() {
    block_on(async {
        let bench = bench().await;
        let start = Instant::now();
        let ended = bench
            .call(
                "sandbox_exec",
                json!({"command": ["python", "-c", "while True: pass"], "timeout": 1}),
            )
            .await;
        assert_eq!(
            (&ended["exit_code"], &ended["timed_out"]),
            (&json!(124), &json!(true))
        );
        assert!(start.elapsed() >= Duration::from_secs(1));
        let refused = bench
            .call("sandbox_exec", json!({"command": ["true"], "timeout": 301}))
            .await;
        assert_eq!(refused["error"], json!("Timeout max is 300 seconds"));
    });
}

#[test]
fn context_cleanup() {
    block_on(async {
        let bench = bench().await;
        bench.stdout(["true"]).await;
        let sandbox = bench.session.prepare().await.unwrap();
        assert!(!sandbox.made, "the command made it");
        bench
            .session
            .execute("import subprocess\nsubprocess.Popen(['sleep', '65432'])")
            .await
            .unwrap();
        // A process that is being executed has no arguments for an instant.
        until("it is started", || running("65432") > 0).await;
        bench.tools.close().await.unwrap();
        assert_eq!(running("65432"), 0);
        assert!(
            !crate::support::interpreter()
                .await
                .sandboxes_in_use()
                .contains(&sandbox.sandbox)
        );
    });
}
