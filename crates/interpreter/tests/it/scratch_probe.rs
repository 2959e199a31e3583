//! probe
use crate::support::*;
#[test]
fn probe() {
    block_on(async {
        let session = limited(|limits| limits.processes = 64).await;
        for _ in 0..3 {
            let ended = run(&session, "import os\nwhile True:\n    os.fork()").await;
            eprintln!("{:?} {:?} {:?}", ended.outcome, ended.note, ended.duration);
            for _ in 0..4 {
                let t = std::time::Instant::now();
                let e = run(
                    &session,
                    "import os\nlen([p for p in os.listdir('/proc') if p.isdigit()])",
                )
                .await;
                eprintln!(
                    "{:?} {:?} {:?} {}",
                    e.outcome,
                    e.outputs,
                    t.elapsed(),
                    e.stderr.text.len()
                );
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            }
        }
        for code in [
            "import os\nos.mkfifo('/tmp/x')",
            "import os\nos.mkdir('/workspace/d')\nos.fork()\nprint(1)\n5",
            "import threading,time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('late'), display(7))).start()",
        ] {
            let e = run(&session, code).await;
            eprintln!("{:?} {:?} {:?} {:?}", e.outcome, e.outputs, e.stdout, e.stderr);
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let e = run(&session, "print('mine')").await;
        eprintln!("{:?} {:?} {:?} {:?}", e.outcome, e.outputs, e.stdout, e.stderr);
    });
}
