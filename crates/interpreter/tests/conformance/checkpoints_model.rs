//! Random histories of cells, checkpoints, rollbacks, tries, forks and deaths of the kernel: the
//! session's state is always that of a session in which the cells that count were run one after the
//! other.

use std::fmt::Write as _;

use cellblock_interpreter::Session;
use cellblock_interpreter::execution::VariablesState;
use cellblock_interpreter::session::fork::ForkOptions;
use serde_json::Value;

use crate::limited::rescuing;
use crate::support::{block_on, run, value};

const START: &str = "\
import os, random, shutil
os.makedirs('/workspace/d', exist_ok=True)
random.seed(1)
items = []
def count():
    n = 0
    while True:
        n += 1
        yield n
counter = count()
open('/workspace/log', 'w').write('0123456789' * 100)
log = open('/workspace/log', 'r+')";

/// Effects of cells on variables, and on what the kernel has open.
const VARIABLES: [&str; 6] = [
    "items.append(len(items) * 7 + next(counter))",
    "items.append(random.randrange(1000))",
    "items[:] = items[-3:]",
    "_ = log.read(3)",
    "os.chdir('/workspace/d' if os.getcwd() == '/workspace' else '/workspace')",
    "alias = items if random.random() < 0.5 else list(items)",
];

/// Effects of cells on files; in each `{n}` is a number.
const FILES: [&str; 9] = [
    "open('/workspace/f{n}', 'w').write('content {n}' * {n})",
    "open('/workspace/f{n}', 'a').write('more')",
    "open('/workspace/d/g{n}', 'w').write('below')",
    "[os.remove(p) for p in ['/workspace/f{n}'] if os.path.lexists(p)]",
    "os.replace('/workspace/d/g{n}', '/workspace/f{n}') if os.path.exists('/workspace/d/g{n}') else None",
    "[os.remove(p) for p in ['/tmp/l{n}'] if os.path.lexists(p)]; os.symlink('/workspace/f{n}', '/tmp/l{n}')",
    "shutil.rmtree('/tmp/t{n}', ignore_errors=True); os.makedirs('/tmp/t{n}/a/b')",
    "[os.chmod(p, 0o600 + {n}) for p in ['/workspace/f{n}'] if os.path.exists(p) and not os.path.islink(p)]",
    "[os.link('/workspace/f{n}', p) for p in ['/workspace/h{n}'] if os.path.exists('/workspace/f{n}') and \
     not os.path.lexists(p)]",
];

/// Everything that must be equal, as a text.
const STATE: &str = "\
def _state():
    found = []
    for root in ('/workspace', '/tmp'):
        for folder, folders, files in os.walk(root):
            if folder == '/tmp':
                folders[:] = [name for name in folders if name.startswith('t') and name[1:].isdigit()]
                files = [name for name in files if name.startswith('l') and name[1:].isdigit()]
            for name in folders + files:
                path = os.path.join(folder, name)
                about = os.lstat(path)
                kind = oct(about.st_mode)
                content = (os.readlink(path) if os.path.islink(path)
                           else open(path).read() if os.path.isfile(path) else about.st_nlink)
                found.append((path, kind, content, about.st_nlink))
    return repr((items, globals().get('alias'), globals().get('alias') is items, log.tell(),
                 os.getcwd(), random.getstate()[1][-1], sorted(found)))
_state()";

/// A generator of numbers, which are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn on_variables(&mut self) -> String {
        VARIABLES[self.below(VARIABLES.len())].to_owned()
    }

    fn on_files(&mut self) -> String {
        let number = 1 + self.below(4);
        FILES[self.below(FILES.len())].replace("{n}", &number.to_string())
    }
}

async fn state(session: &Session) -> Value {
    value(session, STATE).await
}

/// The state of a session in which just these cells were run.
async fn replayed(cells: &[String]) -> Value {
    let session = rescuing(|_| {}).await;
    run(&session, START).await;
    run(&session, &cells.join("\n")).await;
    let state = state(&session).await;
    session.close().await.unwrap();
    state
}

async fn check(session: &Session, cells: &[String], history: &str) {
    assert_eq!(state(session).await, replayed(cells).await, "{history}");
}

async fn history(seed: u64, steps: usize) {
    let mut numbers = Numbers(seed);
    let mut session = rescuing(|_| {}).await;
    run(&session, START).await;
    let mut cells: Vec<String> = Vec::new();
    let mut kept: Vec<(String, Vec<String>)> = Vec::new();
    let mut history = format!("seed {seed}\n");
    for _ in 0..steps {
        match numbers.below(14) {
            0..4 => {
                let code = format!("{}\n{}", numbers.on_variables(), numbers.on_files());
                writeln!(history, "run {code}").unwrap();
                run(&session, &code).await;
                cells.push(code);
            }
            4..6 => {
                let made = session.checkpoint(None).await.unwrap();
                writeln!(history, "keep {}", made.checkpoint.id).unwrap();
                kept.retain(|(id, _)| made.evicted.as_ref().is_none_or(|evicted| evicted.id != *id));
                kept.push((made.checkpoint.id, cells.clone()));
            }
            6..8 if !kept.is_empty() => {
                let (id, before) = kept[numbers.below(kept.len())].clone();
                writeln!(history, "back to {id}").unwrap();
                session.roll_back(&id).await.unwrap();
                cells = before;
                check(&session, &cells, &history).await;
            }
            8 if kept.len() > 2 => {
                let (id, _) = kept.remove(numbers.below(kept.len()));
                writeln!(history, "drop {id}").unwrap();
                session.drop_checkpoint(id).await.unwrap();
            }
            9..12 => {
                let (code, files) = (numbers.on_variables(), numbers.on_files());
                let dies = numbers.below(4) == 0;
                let keep = numbers.below(2) == 0;
                writeln!(history, "try {code}; {files}; dies: {dies}, kept: {keep}").unwrap();
                let end = if dies { "os._exit(1)" } else { "" };
                let tried = session
                    .try_run(format!("{code}\n{files}\n{end}").as_str())
                    .await
                    .unwrap();
                assert!(tried.undecided, "{history}{tried:?}");
                session.decide_try(keep).await.unwrap();
                if keep {
                    // A kernel that has died leaves only its files.
                    if !dies {
                        cells.push(code);
                    }
                    cells.push(files);
                } else {
                    check(&session, &cells, &history).await;
                }
            }
            12 => {
                writeln!(history, "go on with a fork").unwrap();
                let options = ForkOptions {
                    reseed: false,
                    ..ForkOptions::new(1)
                };
                let fork = session.fork(options).await.unwrap().remove(0);
                check(&fork, &cells, &history).await;
                run(&session, &format!("{}\nitems.clear()", numbers.on_files())).await;
                // What the parent does later, and its end, do not matter.
                std::mem::replace(&mut session, fork).close().await.unwrap();
                kept.clear();
            }
            _ => {
                // Its files stay, its variables do not.
                let (lost, left) = (numbers.on_variables(), numbers.on_files());
                writeln!(history, "die after {lost}; {left}").unwrap();
                let ended = run(&session, &format!("{lost}\n{left}\nos._exit(1)")).await;
                assert_eq!(ended.state, VariablesState::Rescued, "{history}{ended:?}");
                cells.push(left);
            }
        }
    }
    check(&session, &cells, &history).await;
    session.close().await.unwrap();
}

#[test]
fn the_state_is_always_that_of_the_cells_that_lead_to_it() {
    needs!(Checkpoints, Rescue, Forks);
    block_on(async {
        for seed in [
            0x9e37_79b9_7f4a_7c15,
            0xdead_beef_cafe_f00d,
            0x0123_4567_89ab_cdef,
        ] {
            history(seed, 20).await;
        }
    });
}
