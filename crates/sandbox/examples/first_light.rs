//! scratch
use cellblock_protocol::*;
use cellblock_sandbox::{
    Limits,
    backend::{Backend, process::*},
    channel::*,
    pool,
};
use std::sync::Arc;
use std::time::Instant;
fn main() {
    cellblock_sandbox::boot();
    tracing_subscriber_init();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(run());
}
fn tracing_subscriber_init() {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
}
async fn run() {
    let python = std::env::args().nth(1).unwrap();
    let preload: Vec<String> = std::env::args().skip(2).collect();
    let t = Instant::now();
    let backend = Arc::new(
        ProcessBackend::start(&ProcessConfig {
            python: python.into(),
            interpreter: "python3.13".into(),
            layers: None,
            preload,
            demands: Default::default(),
            launcher: None,
        })
        .await
        .unwrap(),
    );
    eprintln!("launcher {:?}", t.elapsed());
    backend.warmed().await.unwrap();
    eprintln!("warmed {:?} {:?}", t.elapsed(), backend.failed_modules());
    for round in 0..20 {
        let t = Instant::now();
        let mut lease = pool::create(backend.as_ref(), &Limits::default()).await.unwrap();
        let t1 = t.elapsed();
        let kernel = &mut lease.kernel;
        let (frames, w) = (&mut kernel.frames, &mut kernel.writer);
        write_frame(
            w,
            &ToKernel::Configure {
                prelude: vec!["analysis".into()],
                guard: Guard::Off,
                limits: OutputLimits {
                    outputs: 64,
                    output_bytes: 1 << 28,
                    text_chars: 100_000,
                    rows_preview: 100,
                },
                sys_path: vec![],
            },
            &[],
        )
        .await
        .unwrap();
        let code = "1+1";
        write_frame(
            w,
            &ToKernel::Execute {
                cell: 1,
                code: code.into(),
                name: "<cell>".into(),
                line: 1,
                mode: CellMode::Exec,
                echo: true,
                store: true,
            },
            &[],
        )
        .await
        .unwrap();
        let mut got = vec![];
        loop {
            match frames.next().await.unwrap() {
                Some(f) => {
                    let done = matches!(f.message, FromKernel::Done { .. });
                    got.push(f.message);
                    if done {
                        break;
                    }
                }
                None => {
                    eprintln!("ended");
                    break;
                }
            }
        }
        let t2 = t.elapsed();
        let mut warm = vec![];
        for i in 0..30 {
            let t = Instant::now();
            write_frame(
                w,
                &ToKernel::Execute {
                    cell: 2 + i,
                    code: code.into(),
                    name: "<cell>".into(),
                    line: 1,
                    mode: CellMode::Exec,
                    echo: true,
                    store: true,
                },
                &[],
            )
            .await
            .unwrap();
            while let Some(f) = frames.next().await.unwrap() {
                if matches!(f.message, FromKernel::Done { .. }) {
                    break;
                }
            }
            warm.push(t.elapsed());
        }
        warm.sort();
        if round == 0 {
            eprintln!("{got:?}");
        }
        let mut err = vec![0; 65536];
        if let Ok(n) = kernel.stderr.try_read(&mut err) {
            if n > 0 {
                eprintln!("stderr: {}", String::from_utf8_lossy(&err[..n]));
            }
        }
        eprintln!(
            "create {t1:?} first {t2:?} warm {:?} usage {:?}",
            warm[15],
            lease.sandbox.usage().await.unwrap()
        );
        let t = Instant::now();
        lease.sandbox.destroy().await.unwrap();
        eprintln!("destroy {:?}", t.elapsed());
    }
}
