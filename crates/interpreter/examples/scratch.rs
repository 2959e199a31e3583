//! scratch
use cellblock_interpreter::*;
use std::time::Instant;
fn main() {
    boot();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(run());
}
async fn run() {
    let args: Vec<String> = std::env::args().collect();
    let limits = Limits {
        memory_bytes: 512 << 20,
        disk_bytes: 64 << 20,
        ..Limits::default()
    };
    let interpreter = Interpreter::start(Config {
        limits,
        ..Config::default_image().await.unwrap()
    })
    .await
    .unwrap();
    interpreter.warmed().await.unwrap();
    let session = interpreter.session(SessionOptions::default());
    for cell in std::fs::read_to_string(&args[1]).unwrap().split("# %%\n") {
        if cell.trim().is_empty() {
            continue;
        }
        let t = Instant::now();
        let e = session
            .execute(Cell::new(cell).with_timeout(std::time::Duration::from_secs(3)))
            .await;
        println!(
            "=== {}\n--- {:?} {:?}",
            cell.trim(),
            e.as_ref().map(|e| e.outcome.clone()),
            t.elapsed()
        );
        match e {
            Ok(e) => {
                for o in &e.outputs {
                    let s = serde_json::to_string(o).unwrap();
                    println!("out {}", s.chars().take(700).collect::<String>());
                }
                if e.stdout.bytes > 0 {
                    println!(
                        "stdout {} {:?}",
                        e.stdout.bytes,
                        e.stdout.text.chars().take(300).collect::<String>()
                    );
                }
                if e.stderr.bytes > 0 {
                    println!("stderr {:?}", e.stderr.text.chars().take(900).collect::<String>());
                }
                if let Some(n) = e.note {
                    println!("note {n}");
                }
                for f in e.files {
                    println!("file {f:?}");
                }
                for f in e.skipped_files {
                    println!("skipped {f:?}");
                }
            }
            Err(e) => println!("ERR {e:?}"),
        }
    }
    let t = Instant::now();
    session.close().await.unwrap();
    println!("close {:?}", t.elapsed());
}
