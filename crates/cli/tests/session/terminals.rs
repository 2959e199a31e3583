//! `session attach` in a real terminal, which tmux is.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use cellblock_testkit::{binary, require, small_image};

use crate::support::{World, until};

/// A window of a tmux server of its own, with a shell in it.
struct Window<'a> {
    world: &'a World,
}

impl<'a> Window<'a> {
    fn open(world: &'a World) -> Result<Self> {
        let window = Self { world };
        // A plain shell with a prompt that nothing in a sandbox shows.
        window.tmux(&[
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            "env",
            "PS1=host> ",
            "sh",
        ])?;
        window.shows("host>")?;
        Ok(window)
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(self.world.work().join("tmux"))
            .args(["-f", "/dev/null"])
            .args(arguments)
            .current_dir(self.world.work())
            .env("CELLBLOCK_HOME", self.world.home())
            .env("cellblock", binary()?)
            .env_remove("TMUX")
            .output()?;
        ensure!(
            output.status.success(),
            "tmux {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Types text, without a newline.
    fn types(&self, text: &str) -> Result<()> {
        self.tmux(&["send-keys", "-l", "--", text]).map(drop)
    }

    fn line(&self, text: &str) -> Result<()> {
        self.types(text)?;
        self.key("Enter")
    }

    fn key(&self, key: &str) -> Result<()> {
        self.tmux(&["send-keys", key]).map(drop)
    }

    /// Waits until the window shows this.
    fn shows(&self, text: &str) -> Result<()> {
        until(text, || Ok(self.tmux(&["capture-pane", "-p"])?.contains(text)))
            .with_context(|| self.tmux(&["capture-pane", "-p"]).unwrap_or_default())
    }

    /// Waits until the window shows this, with colors and other attributes.
    fn shows_colored(&self, text: &str) -> Result<()> {
        until(text, || {
            Ok(self.tmux(&["capture-pane", "-p", "-e"])?.contains(text))
        })
        .with_context(|| format!("{:?}", self.tmux(&["capture-pane", "-p", "-e"])))
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_shell_of_a_session_has_colors_sizes_and_keys() -> Result<()> {
    require!(Tmux);
    let world = World::new()?;
    let id = world.start(&[])?;
    let window = Window::open(&world)?;
    window.line(&format!("\"$cellblock\" session attach {id} -- bash --norc -i"))?;
    window.shows("bash-")?;
    window.line("clear; stty size; tty; printf '\\033[31mre''d\\033[0m\\n'")?;
    window.shows("24 80")?;
    window.shows("/dev/pts/0")?;
    window.shows_colored("\x1b[31mred")?;
    window.tmux(&["resize-window", "-x", "100", "-y", "30"])?;
    // The change arrives when it does.
    until("the new size", || {
        window.line("clear; stty size")?;
        Ok(window.tmux(&["capture-pane", "-p"])?.contains("30 100"))
    })?;
    window.line("clear; (echo u''p; exec sleep 1000)")?;
    window.shows("up")?;
    window.key("C-c")?;
    window.line("echo co''de $?")?;
    window.shows("code 130")?;
    // The line discipline of the terminal edits lines, and Ctrl-D ends input.
    window.line("clear; cat; echo af''ter")?;
    window.line("lin")?;
    window.key("C-d")?;
    window.shows("after")?;
    window.line("exit 7")?;
    window.shows("host>")?;
    // The terminal of the host is as it was: it echoes, and its keys make signals.
    window.line("code=$?; clear; echo sta''tus $code; sleep 1000")?;
    window.shows("status 7")?;
    window.key("C-c")?;
    window.line("echo ag''ain")?;
    window.shows("again")?;
    Ok(())
}

#[test]
fn editors_pagers_and_python_work_and_a_program_is_left_and_found_again() -> Result<()> {
    require!(Tmux);
    let world = World::new()?;
    let id = world.start(&[])?;
    let window = Window::open(&world)?;
    window.line(&format!("\"$cellblock\" session attach {id} -- python -q"))?;
    window.shows(">>>")?;
    window.line("x = 'fo' + 'und'")?;
    window.key("C-p")?;
    window.key("C-q")?;
    window.shows("detached; `cellblock session attach")?;
    window.line("clear")?;
    // One line, because everything that is typed before the program ends is sent to the program.
    window.line(&format!(
        "\"$cellblock\" session attach {id} --process p1; code=$?; clear; echo sta''tus $code"
    ))?;
    window.line("x")?;
    window.shows("'found'")?;
    window.line("exit()")?;
    window.shows("status 0")?;
    for (name, command, shown, keys) in [
        // Both show the name of the file in their last line. Vim starts without its configuration,
        // most of which a sandbox lacks.
        ("less", "less /etc/passwd", "/etc/passwd", &["G", "q"][..]),
        (
            "vim",
            "vim -u NONE /workspace/note",
            "note\"",
            &["iwritten", "Escape", ":wq", "Enter"][..],
        ),
    ] {
        if !exists(name) {
            continue;
        }
        window.line(&format!(
            "clear; \"$cellblock\" session attach {id} -- {command}; code=$?; clear; echo {name} sta''tus \
             $code"
        ))?;
        window.shows(shown)?;
        for key in keys {
            window.key(key)?;
        }
        window.shows(&format!("{name} status 0"))?;
    }
    if exists("vim") {
        let shown = world.exec(&id, &["cat", "/workspace/note"])?;
        assert_eq!(shown["stdout"], "written\n");
    }
    Ok(())
}

fn exists(program: &str) -> bool {
    Path::new("/usr/bin").join(program).exists()
}

#[test]
fn attaching_needs_a_terminal() -> Result<()> {
    let world = World::new()?;
    small_image()?;
    let id = world.start(&[])?;
    let finished = world.cli(["session", "attach", &id]).run()?;
    assert_eq!(finished.code(), 2);
    assert!(
        finished
            .stderr
            .contains("standard input and output are not a terminal"),
        "{}",
        finished.stderr
    );
    Ok(())
}
