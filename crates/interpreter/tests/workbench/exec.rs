//! Commands: what they find, how they end, and what is left of them.

use std::time::{Duration, Instant};

use cellblock_interpreter::workbench::{Workbench, WorkbenchOptions};
use serde_json::json;

use crate::support::{bench, block_on, hint, limited, running};

#[test]
fn an_answer_has_every_field_of_the_contract() {
    block_on(async {
        let bench = bench().await;
        let mut ended = bench
            .sh("echo out; echo err >&2; echo a,b > /tmp/output/r.csv")
            .await;
        let time = ended["execution_time"].take().as_f64().unwrap();
        assert!(time > 0.0 && time < 60.0, "{time}");
        assert_eq!(
            ended,
            json!({
                "exit_code": 0,
                "stdout": "out\n",
                "stderr": "err\n",
                "stdout_truncated": false,
                "stderr_truncated": false,
                "output_files": ["r.csv"],
                "total_output_files": 1,
                "execution_time": null,
                "timed_out": false,
                "hint": {
                    "code": "executed_with_files",
                    "message": "Code executed successfully. 1 output files created. Consider presenting \
                                the results.",
                },
            })
        );
    });
}

#[test]
fn the_usual_programs_are_there() {
    block_on(async {
        let bench = bench().await;
        bench.put("/tmp/t.txt", "b 2\na 1\nc 3\n").await;
        for (command, told) in [
            (&["python", "-c", "print(6 * 7)"][..], "42\n"),
            (
                &["python3", "-c", "import numpy; print(numpy.arange(4).sum())"],
                "6\n",
            ),
            (&["head", "-1", "/tmp/t.txt"], "b 2\n"),
            (&["cat", "/tmp/t.txt"], "b 2\na 1\nc 3\n"),
            (&["grep", "-c", "1", "/tmp/t.txt"], "1\n"),
            (&["ls", "/tmp/t.txt"], "/tmp/t.txt\n"),
            (&["wc", "-l", "/tmp/t.txt"], "3 /tmp/t.txt\n"),
            (&["find", "/tmp", "-name", "t.txt"], "/tmp/t.txt\n"),
            (&["sed", "-n", "2p", "/tmp/t.txt"], "a 1\n"),
            (&["awk", "{s += $2} END {print s}", "/tmp/t.txt"], "6\n"),
            (&["sort", "/tmp/t.txt"], "a 1\nb 2\nc 3\n"),
            (&["sh", "-c", "sort /tmp/t.txt | tail -1"], "c 3\n"),
            (&["pwd"], "/workspace\n"),
            (
                &["python", "-c", "import sys; print(sys.stdin.read() == '')"],
                "True\n",
            ),
            (&["sh", "-c", "echo $HOME $MPLBACKEND"], "/workspace Agg\n"),
        ] {
            let ended = bench.call("sandbox_exec", json!({"command": command})).await;
            assert_eq!(
                (&ended["stdout"], &ended["exit_code"]),
                (&json!(told), &json!(0)),
                "{ended:#}"
            );
        }
    });
}

#[test]
fn codes_signals_and_missing_programs_are_distinguished() {
    block_on(async {
        let bench = bench().await;
        for (line, code) in [
            ("exit 3", 3),
            ("kill -TERM $$", 143),
            ("kill -KILL $$", 137),
            ("kill -SEGV $$", 139),
            ("exit 124", 124),
        ] {
            let ended = bench.sh(line).await;
            assert_eq!(
                (&ended["exit_code"], &ended["timed_out"]),
                (&json!(code), &json!(false)),
                "{line}"
            );
            assert_eq!(hint(&ended), "execution_failed", "{line}");
        }
        let missing = bench.exec(["no-such-program"]).await;
        assert_eq!(missing["exit_code"], json!(127));
        assert!(
            missing["stderr"]
                .as_str()
                .unwrap()
                .starts_with("no-such-program: "),
            "{missing:#}"
        );
        bench.put("/tmp/plain", "x").await;
        assert_eq!(bench.exec(["/tmp/plain"]).await["exit_code"], json!(126));
        // A reader that goes away ends a writer by SIGPIPE, as in a shell outside.
        assert_eq!(
            bench.sh("(yes; echo $? >&2) | head -1").await["stderr"],
            json!("141\n").clone()
        );
    });
}

#[test]
fn at_its_deadline_a_command_is_killed_with_all_that_it_has_started() {
    block_on(async {
        let bench = bench().await;
        // The same test runs at the same time as an ordinary user, and processes are looked for on
        // the whole machine.
        let mark = format!("98765.{}", std::process::id());
        let python = "import os, sys, time, ctypes\n\
                      for kind in range(3):\n\
                      \x20   if os.fork() == 0:\n\
                      \x20       os.setsid()\n\
                      \x20       if os.fork(): os._exit(0)\n\
                      \x20       if kind == 1: ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n\
                      \x20       open(f'/tmp/up{kind}', 'w').close()\n\
                      \x20       if kind == 2: os.execvp('sleep', ['sleep', sys.argv[1]])\n\
                      \x20       time.sleep(1000)\n\
                      print('waiting', flush=True)\n\
                      time.sleep(1000)";
        let start = Instant::now();
        let ended = bench
            .call(
                "sandbox_exec",
                json!({"command": ["python", "-c", python, mark], "timeout": 3}),
            )
            .await;
        assert!(start.elapsed() < Duration::from_secs(30));
        assert_eq!(ended["exit_code"], json!(124), "{ended:#}");
        assert_eq!(ended["timed_out"], json!(true));
        assert_eq!(
            ended["stdout"],
            json!("waiting\n"),
            "what it wrote before is kept"
        );
        assert_eq!(hint(&ended), "timed_out");
        assert_eq!(
            bench.stdout(["sh", "-c", "ls /tmp/up*"]).await,
            "/tmp/up0\n/tmp/up1\n/tmp/up2\n"
        );
        assert_eq!(running(&mark), 0);
    });
}

#[test]
fn no_process_continues_after_a_command_has_ended() {
    block_on(async {
        let bench = bench().await;
        let start = Instant::now();
        let ended = bench
            .sh("sleep 87654.5 & setsid sleep 87654.5 & echo started")
            .await;
        assert_eq!(
            (&ended["exit_code"], &ended["stdout"]),
            (&json!(0), &json!("started\n"))
        );
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "a child holds the pipe, and is not waited for"
        );
        assert_eq!(running("87654.5"), 0);
    });
}

#[test]
fn processes_of_a_cell_survive_commands() {
    block_on(async {
        let bench = bench().await;
        let started = bench
            .session
            .execute(
                "import subprocess\nchild = subprocess.Popen(['sleep', '76543'], \
                 start_new_session=True)\nx = 5",
            )
            .await
            .unwrap();
        assert_eq!(
            started.outcome,
            cellblock_interpreter::execution::Outcome::Completed
        );
        let ended = bench
            .call(
                "sandbox_exec",
                json!({"command": ["sleep", "1000"], "timeout": 1}),
            )
            .await;
        assert_eq!(ended["exit_code"], json!(124));
        let alive = bench.session.execute("print(child.poll(), x)").await.unwrap();
        assert_eq!(alive.stdout.text, "None 5\n");
    });
}

#[test]
fn a_process_that_forks_without_end_is_ended() {
    block_on(async {
        let bench = bench().await;
        let hare = "import os, time\n\
                    if os.fork() == 0:\n\
                    \x20   os.setsid()\n\
                    \x20   end = time.time() + 20\n\
                    \x20   while time.time() < end:\n\
                    \x20       if os.fork(): os._exit(0)\n";
        let ended = bench
            .call(
                "sandbox_exec",
                json!({"command": ["python", "-c", hare, "76543.5"], "timeout": 2}),
            )
            .await;
        assert_eq!(ended["exit_code"], json!(0), "{ended:#}");
        assert_eq!(running("76543.5"), 0);
        assert_eq!(bench.stdout(["echo", "on"]).await, "on\n");
        assert_eq!(
            bench.session.execute("print(1)").await.unwrap().stdout.text,
            "1\n"
        );
    });
}

#[test]
fn an_interrupt_of_the_session_stops_a_command() {
    block_on(async {
        let bench = bench().await;
        bench.stdout(["true"]).await;
        let mut events = bench.tools.events();
        let tools = bench.tools.clone();
        let running = tokio::spawn(async move {
            let python = "import time\ntry:\n  print('up', flush=True)\n  time.sleep(1000)\n\
                          except KeyboardInterrupt:\n  print('asked')";
            tools
                .call("sandbox_exec", json!({"command": ["python", "-c", python]}))
                .await
                .unwrap()
        });
        events.recv().await.unwrap();
        bench.session.interrupt();
        let ended = running.await.unwrap();
        assert_eq!(ended["exit_code"], json!(130), "{ended:#}");
        assert_eq!(ended["stdout"], json!("up\nasked\n"));
        assert_eq!(ended["note"], json!("the command was interrupted"));
    });
}

#[test]
fn long_output_is_cut_in_the_middle_and_kept_whole_in_the_sandbox() {
    block_on(async {
        let bench = bench().await;
        let ended = bench.sh("seq 1 100000; seq 1 5 >&2").await;
        assert_eq!(
            (&ended["stdout_truncated"], &ended["stderr_truncated"]),
            (&json!(true), &json!(false))
        );
        let text = ended["stdout"].as_str().unwrap();
        assert!(text.len() <= 10 * 1024 && text.len() > 9 * 1024, "{}", text.len());
        assert!(text.starts_with("1\n2\n") && text.ends_with("\n99999\n100000\n"));
        let mark = text.lines().find(|line| line.starts_with("[…")).unwrap();
        let left_out: usize = mark.split(' ').nth(1).unwrap().parse().unwrap();
        let lines: Vec<_> = (1..=100_000).map(|n| n.to_string()).collect();
        let whole = lines.join("\n") + "\n";
        assert_eq!(text.len() - (mark.len() + 2) + left_out, whole.len());
        assert_eq!(
            mark,
            format!(
                "[… {left_out} of {} bytes left out; all of it is in /tmp/.cellblock/exec-1.stdout …]",
                whole.len()
            )
        );
        let path = "/tmp/.cellblock/exec-1.stdout";
        assert_eq!(bench.session.read_file(path).await.unwrap(), whole.as_bytes());
        assert_eq!(bench.stdout(["sed", "-n", "50000p", path]).await, "50000\n");
        assert_eq!(ended["total_output_files"], json!(0), "it is no output file");
    });
}

#[test]
fn a_stream_of_exactly_the_limit_is_whole() {
    block_on(async {
        let bench = bench().await;
        for (bytes, truncated) in [(10_240, false), (10_241, true)] {
            let ended = bench.sh(&format!("head -c {bytes} /dev/zero | tr '\\0' x")).await;
            assert_eq!(ended["stdout_truncated"], json!(truncated), "{bytes}");
            if !truncated {
                assert_eq!(ended["stdout"], json!("x".repeat(bytes)));
            }
        }
    });
}

#[test]
fn a_command_that_floods_is_killed() {
    block_on(async {
        let bench = limited(|limits| limits.stream_bytes = 1 << 20).await;
        let ended = bench.exec(["yes"]).await;
        assert_eq!(ended["exit_code"], json!(137), "{ended:#}");
        assert_eq!(
            ended["note"],
            json!("the command was killed because it wrote more than 1048576 bytes")
        );
        assert_eq!(bench.stdout(["echo", "on"]).await, "on\n");
    });
}

#[test]
fn invalid_utf8_is_replaced() {
    block_on(async {
        let ended = bench().await.sh("printf 'a\\377\\0b'").await;
        assert_eq!(ended["stdout"], json!("a\u{fffd}\0b"));
    });
}

#[test]
fn a_command_beyond_the_memory_limit_says_so() {
    cellblock_testkit::require!(CgroupV1);
    block_on(async {
        let bench = limited(|limits| limits.memory_bytes = 256 << 20).await;
        let ended = bench.exec(["python", "-c", "x = b'x' * (1 << 30)"]).await;
        assert_eq!(ended["exit_code"], json!(137), "{ended:#}");
        assert!(
            ended["note"]
                .as_str()
                .unwrap()
                .contains("the memory limit of 268435456 bytes was exceeded"),
            "{ended:#}"
        );
        assert_eq!(bench.stdout(["echo", "on"]).await, "on\n");
    });
}

#[test]
fn wrong_calls_are_rejected_with_the_field_named() {
    block_on(async {
        let bench = bench().await;
        for (tool, args, told) in [
            (
                "sandbox_exec",
                json!({"command": []}),
                "`command` is empty: give a program and its arguments",
            ),
            (
                "sandbox_exec",
                json!({"command": ["ls"], "timeout": 301}),
                "Timeout max is 300 seconds",
            ),
            (
                "sandbox_exec",
                json!({"command": ["a\u{0}b"]}),
                "`command` holds a NUL character, which no program can be given",
            ),
            (
                "sandbox_exec",
                json!(null),
                "the arguments must be an object, not null",
            ),
            (
                "sandbox_write_file",
                json!({"content": "x"}),
                "`file_path` is missing",
            ),
            (
                "sandbox_edit_file",
                json!({"file_path": "/tmp/a"}),
                "`old_string` is missing",
            ),
            ("sandbox_delete", json!({}), "there is no tool \"sandbox_delete\""),
        ] {
            let answer = bench.call(tool, args).await;
            assert_eq!(
                (&answer["success"], &answer["error"]),
                (&json!(false), &json!(told))
            );
            assert_eq!(hint(&answer), "invalid_call");
        }
        // None of it needed a sandbox.
        assert!(
            bench
                .session
                .read_file("/tmp/x")
                .await
                .unwrap_err()
                .to_string()
                .contains("nothing has run")
        );
        let ended = bench
            .call(
                "sandbox_exec",
                json!({"command": ["true"], "timeout": 300, "reasoning_trace": "why not"}),
            )
            .await;
        assert_eq!(ended["exit_code"], json!(0));
    });
}

#[test]
fn a_closed_session_is_an_error() {
    block_on(async {
        let bench = bench().await;
        bench.stdout(["true"]).await;
        bench.tools.close().await.unwrap();
        let error = bench
            .tools
            .call("sandbox_exec", json!({"command": ["true"]}))
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "the session is closed");
    });
}

#[test]
fn calls_that_come_together_are_answered_one_after_the_other() {
    block_on(async {
        let bench = bench().await;
        let calls = (0..8).map(|n| {
            let tools = bench.tools.clone();
            let line =
                format!("test ! -e /tmp/busy && touch /tmp/busy && sleep 0.05 && rm /tmp/busy && echo {n}");
            tokio::spawn(async move {
                tools
                    .call("sandbox_exec", json!({"command": ["sh", "-c", line]}))
                    .await
                    .unwrap()
            })
        });
        for (n, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
            assert_eq!(call.await.unwrap()["stdout"], json!(format!("{n}\n")));
        }
    });
}

#[test]
fn a_command_that_kills_all_it_can_reach_ends_itself_and_no_more() {
    use cellblock_sandbox::jail::protection::Protection;

    block_on(async {
        let bench = bench().await;
        bench.session.execute("kept = 5").await.unwrap();
        let shoot = "import os, signal\nfor pid in range(2, 400):\n  if pid != os.getpid():\n    \
                     try: os.kill(pid, signal.SIGKILL)\n    except OSError: pass\nprint('shot')";
        let ended = bench.exec(["python", "-c", shoot]).await;
        let report = crate::support::interpreter().await.report();
        if report.is_active(Protection::LandlockScopes) {
            assert_eq!(
                (&ended["exit_code"], &ended["stdout"]),
                (&json!(0), &json!("shot\n")),
                "{ended:#}"
            );
            let alive = bench.session.execute("print(kept)").await.unwrap();
            assert_eq!(alive.stdout.text, "5\n");
        } else {
            assert_eq!(ended["exit_code"], json!(137), "{ended:#}");
        }
        assert_eq!(bench.stdout(["echo", "on"]).await, "on\n");
    });
}

#[test]
fn a_command_that_kills_its_warden_costs_the_sandbox_its_other_processes_only() {
    block_on(async {
        let interpreter = crate::support::without_landlock().await;
        let session = interpreter.session(cellblock_interpreter::session::SessionOptions::default());
        let tools = Workbench::new(session.clone(), WorkbenchOptions::default());
        session.execute("kept = 5").await.unwrap();
        let line = "setsid sleep 54321.5 & echo up > /tmp/up; kill -9 $PPID; sleep 1000";
        let ended = tools
            .call("sandbox_exec", json!({"command": ["sh", "-c", line]}))
            .await
            .unwrap();
        assert_eq!(ended["exit_code"], json!(137), "{ended:#}");
        assert_eq!(
            ended["note"],
            json!(
                "the command ended the process that watches over it, so every other process of the \
                 sandbox was ended"
            )
        );
        assert_eq!(running("54321.5"), 0);
        assert_eq!(session.execute("print(kept)").await.unwrap().stdout.text, "5\n");
        session.close().await.unwrap();
    });
}
