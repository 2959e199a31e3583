//! `cellblock` where a directory that it needs is missing, read-only, not the user's, or without
//! the right to execute.

use anyhow::Result;
use cellblock_testkit::require;

use crate::support::{SetupResult, in_own_mounts, small_image};

/// Moves into a root directory without `/tmp`, from bind mounts of everything that is needed.
const WITHOUT_TMP: &str = r#"
mount -t tmpfs none /mnt
bind() { mkdir -p "/mnt$1"; mount --rbind "$1" "/mnt$1"; }
for top in bin sbin lib lib64 usr; do
    if [ -L /$top ]; then cp -P /$top /mnt/$top; elif [ -d /$top ]; then bind /$top; fi
done
bind /etc; bind /proc; bind /sys; bind /dev
mkdir -p /mnt/opt/target /mnt/opt/old /mnt/opt/out
mount --rbind "$(dirname "$home")" /mnt/opt/target
touch /mnt/opt/cellblock
mount --bind "$cellblock" /mnt/opt/cellblock
cp "$image" /mnt/opt/image.toml
cellblock=/opt/cellblock image=/opt/image.toml CELLBLOCK_HOME=/opt/target/$(basename "$home")
unset TMPDIR
cd /mnt
pivot_root . opt/old
umount -l /opt/old
cd /opt/out
[ ! -e /tmp ]
"#;

/// Writes a file that is too large to be stored from memory.
const LARGE_FILE: &str = r#"open("x", "w").write("x" * 5_000_000)"#;

fn fails(ended: &SetupResult, wanted: &[&str]) {
    assert_eq!(ended.code, 70, "{}{}", ended.stdout, ended.stderr);
    for part in wanted {
        assert!(
            ended.stderr.contains(part),
            "`{part}` is not in: {}",
            ended.stderr
        );
    }
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

/// The cell ran: it keeps its outcome, and the file that could not be stored is named with the reason.
fn says_what_is_not_saved(ended: &SetupResult) {
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    for part in [
        "/workspace/x was not saved: it has 5000000 bytes and could not be stored",
        "`TMPDIR`",
    ] {
        assert!(
            ended.stderr.contains(part),
            "`{part}` is not in: {}",
            ended.stderr
        );
    }
}

#[test]
fn a_host_without_tmp_runs_code_and_says_which_outputs_it_cannot_keep() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    small_image()?;
    let run = |code: &str| in_own_mounts(&format!("{WITHOUT_TMP}\n{code}"));
    let worked = run(
        "\"$cellblock\" run --image \"$image\" -c 'open(\"/tmp/x\", \"w\").write(\"abc\")'; ls -A \
         /opt/out; [ ! -e /tmp ]",
    )?;
    assert_eq!(
        (worked.code, worked.stdout.as_str()),
        (0, "3\n"),
        "{}",
        worked.stderr
    );
    let file = format!(
        "code=0; \"$cellblock\" run --image \"$image\" -c '{LARGE_FILE}' || code=$?; ls -A \
         /opt/out; exit $code"
    );
    let file = run(&file)?;
    says_what_is_not_saved(&file);
    assert_eq!(
        file.stdout, "5000000\n",
        "nothing half made in the working directory"
    );
    // A table is written in the store's folder, which is not below `/tmp`.
    let table =
        run("\"$cellblock\" run --image \"$image\" -c 'import pandas; pandas.DataFrame({\"a\": [1]})'")?;
    assert_eq!(table.code, 0, "{}", table.stderr);
    let elsewhere = format!(
        "mkdir /opt/temporary; export TMPDIR=/opt/temporary; \"$cellblock\" run --image \"$image\" -c \
         '{LARGE_FILE}'; code=$?; ls -A /opt/temporary; exit $code"
    );
    let elsewhere = run(&elsewhere)?;
    assert_eq!(elsewhere.code, 0, "{}", elsewhere.stderr);
    assert!(!elsewhere.stdout.contains("tmp"), "{}", elsewhere.stdout);
    Ok(())
}

#[test]
fn a_temporary_directory_that_cannot_be_written_is_named() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let script = format!(
        "mount -t tmpfs -o ro none /mnt; cd /mnt; export TMPDIR=/mnt; \
         exec \"$cellblock\" run --image \"$image\" -c '{LARGE_FILE}'"
    );
    says_what_is_not_saved(&in_own_mounts(&script)?);
    Ok(())
}

#[test]
fn a_home_that_cannot_be_used_is_named_with_the_repair() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let run = "\"$cellblock\" run --image \"$image\" -c 1";
    let cases = [
        (
            format!(
                "mount --bind \"$home\" /mnt; mount -o remount,ro,bind /mnt; export CELLBLOCK_HOME=/mnt; \
                 exec {run}"
            ),
            [
                "write to `/mnt`: Read-only file system",
                "set CELLBLOCK_HOME to a writable directory",
            ],
        ),
        (
            format!(
                "mount -t tmpfs -o mode=755 none /mnt; export CELLBLOCK_HOME=/mnt; cd /; \
                 exec setpriv --reuid 65534 --regid 65534 --clear-groups {run}"
            ),
            [
                "write to `/mnt`: Permission denied",
                "set CELLBLOCK_HOME to a writable directory",
            ],
        ),
        (
            format!(
                "mount -t tmpfs -o mode=755 none /mnt; export CELLBLOCK_HOME=/mnt/new; cd /; \
                 exec setpriv --reuid 65534 --regid 65534 --clear-groups {run}"
            ),
            [
                "create `/mnt/new`: Permission denied",
                "set CELLBLOCK_HOME to a writable directory",
            ],
        ),
        (
            format!(
                "mount --bind \"$home\" /mnt; mount -o remount,noexec,bind /mnt; export \
                 CELLBLOCK_HOME=/mnt; exec {run}"
            ),
            [
                "start the interpreter (is the image's directory mounted `noexec`?) `/opt/python/bin/python3",
                "Permission denied",
            ],
        ),
    ];
    for (script, wanted) in cases {
        fails(&in_own_mounts(&script)?, &wanted);
    }
    Ok(())
}

#[test]
fn a_directory_from_which_no_program_runs_is_named_before_anything_is_downloaded() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let script = "mount -t tmpfs -o noexec none /mnt; export CELLBLOCK_HOME=/mnt; cd /mnt; printf 'name = \
                  \"empty\"\\npackages = []\\n' > empty.toml; code=0; \"$cellblock\" image build \
                  empty.toml || code=$?; ls /mnt/cache 2>/dev/null || true; exit $code";
    let ended = in_own_mounts(script)?;
    let wanted = [
        "programs cannot run from `/mnt`, because its filesystem is mounted `noexec`",
        "set CELLBLOCK_HOME",
    ];
    fails(&ended, &wanted);
    assert_eq!(ended.stdout, "");
    Ok(())
}

#[test]
fn without_a_home_directory_the_data_directory_is_in_var_tmp() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let script = "mount -t tmpfs none /var/tmp; unset HOME XDG_DATA_HOME CELLBLOCK_HOME; \"$cellblock\" \
                  image list; mkdir -p /var/tmp/cellblock-0; chmod 777 /var/tmp/cellblock-0; exec \
                  \"$cellblock\" image list";
    let ended = in_own_mounts(script)?;
    assert!(
        ended.stdout.starts_with("no image is built yet"),
        "{}",
        ended.stdout
    );
    fails(
        &ended,
        &["`/var/tmp/cellblock-0` exists, but must be a directory that only user 0 can enter"],
    );
    Ok(())
}
