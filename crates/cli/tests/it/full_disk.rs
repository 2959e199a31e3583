//! A full disk below the home and below the directory for files: what was being written is named,
//! and nothing is half made.

use anyhow::{Context as _, Result};
use cellblock_testkit::require;

use crate::support::{in_own_mounts, small_image};

/// `attempt` runs `cellblock` and tells its exit code, `rest` what is on the small disk at `/mnt`. No
/// template is frozen there meanwhile.
const START: &str = r#"
export CELLBLOCK_FROZEN=off
attempt() { status=0; "$cellblock" "$@" || status=$?; echo "code $status"; }
rest() { find /mnt -mindepth 1 -xdev \( -path /mnt/cache -o -path /mnt/locks \) -prune -o "$@" -printf 'rest %P\n' | sort; }
"#;
const HINT: &str = "hint: free some disk space, or set CELLBLOCK_HOME to a directory on a larger disk";

#[test]
fn a_file_that_does_not_fit_beside_the_others_is_named_and_not_half_there() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let script = r#"
mount -t tmpfs -o size=1m none /mnt
cd /mnt
code='open("small", "w").write("abc"); open("large", "wb").write(bytes(3 << 20))'
attempt run --image "$image" -c "$code"
rest -type f
mount -o remount,size=8m /mnt
attempt run --image "$image" -c "$code"
rest -type f -size +2M
"#;
    let ended = in_own_mounts(&format!("{START}{script}"))?;
    let lines: Vec<_> = ended.stdout.lines().collect();
    let (large, small) = ("rest cellblock-out/large", "rest cellblock-out/small");
    assert_eq!(lines.first(), Some(&"3145728"), "{}", ended.stderr);
    assert_eq!(lines[1], "code 70", "{}", ended.stderr);
    let first = lines.iter().position(|it| *it == "code 0").unwrap_or(lines.len());
    assert!(!lines[..first].contains(&large), "{lines:?}");
    let left: Vec<_> = lines[..first]
        .iter()
        .filter(|it| it.starts_with("rest "))
        .collect();
    assert!(left.iter().all(|it| **it == small), "{left:?}");
    assert_eq!(lines.last(), Some(&large), "{lines:?} {}", ended.stderr);
    for part in [
        "write `cellblock-out/large`",
        "No space left on device",
        "hint: free some disk space, or name another directory with `--out`",
    ] {
        assert!(
            ended.stderr.contains(part),
            "`{part}` is not in: {}",
            ended.stderr
        );
    }
    Ok(())
}

#[test]
fn a_file_that_does_not_fit_into_the_store_costs_a_cell_nothing_else() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let script = r#"
mount -t tmpfs -o size=8m none /mnt
for part in images refs/images cache; do
    mkdir -p /mnt/$part
    mount --bind "$home/$part" /mnt/$part
done
export CELLBLOCK_HOME=/mnt CELLBLOCK_SERVE__RUNS__KEEP=0
attempt run --json --image "$image" -c 'print("said"); open("large", "wb").write(bytes(12 << 20))'
"#;
    let ended = in_own_mounts(&format!("{START}{script}"))?;
    let report = ended.stdout.strip_suffix("code 0\n").unwrap_or_default();
    let report: serde_json::Value =
        serde_json::from_str(report).with_context(|| format!("{} {}", ended.stdout, ended.stderr))?;
    assert_eq!(report["outcome"], "completed", "{report:#}");
    assert_eq!(report["stdout"], "said\n", "{report:#}");
    let skipped = &report["skipped_files"][0];
    assert_eq!(skipped["path"], "/workspace/large", "{report:#}");
    let reason = skipped["reason"].as_str().unwrap_or_default();
    for part in ["it has 12582912 bytes", "the host's disk is full"] {
        assert!(reason.contains(part), "`{part}` is not in: {reason}");
    }
    Ok(())
}

#[test]
fn a_layer_that_does_not_fit_is_a_clear_error_and_is_made_when_it_does() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    let script = r#"
mount -t tmpfs -o size=64k none /mnt
for part in images refs/images cache; do
    mkdir -p /mnt/$part
    mount --bind "$home/$part" /mnt/$part
done
export CELLBLOCK_HOME=/mnt CELLBLOCK_SERVE__RUNS__KEEP=0
attempt run --image "$image" --require six -c 'import six; six.__name__'
rest -type f
mount -o remount,size=8m /mnt
attempt run --image "$image" --require six -c 'import six; six.__name__'
"#;
    let ended = in_own_mounts(&format!("{START}{script}"))?;
    assert_eq!(ended.stdout, "code 70\nsix\ncode 0\n", "{}", ended.stderr);
    for part in ["error: make a layer of packages", "No space left on device", HINT] {
        assert!(
            ended.stderr.contains(part),
            "`{part}` is not in: {}",
            ended.stderr
        );
    }
    Ok(())
}

#[test]
fn an_image_that_does_not_fit_is_a_clear_error_and_is_built_when_it_does() -> Result<()> {
    require!(Root);
    require!(Python313);
    small_image()?;
    let script = r#"
mount -t tmpfs -o size=16m none /mnt
mkdir /mnt/cache
mount --bind "$home/cache" /mnt/cache
mount -t tmpfs none "$home/staging"
export CELLBLOCK_HOME=/mnt
printf 'name = "empty"\npackages = []\npreload = []\n' > "$home/staging/empty.toml"
attempt image build "$home/staging/empty.toml"
rest -type f
mount -o remount,size=2g /mnt
attempt image build "$home/staging/empty.toml"
attempt run --image empty -c '6 * 7'
"#;
    let ended = in_own_mounts(&format!("{START}{script}"))?;
    let (failed, worked) = ended.stdout.split_once('\n').unwrap_or_default();
    assert_eq!(failed, "code 70", "{}", ended.stderr);
    assert!(!worked.contains("rest "), "{worked}");
    assert!(
        worked.ends_with("code 0\n42\ncode 0\n"),
        "{worked}{}",
        ended.stderr
    );
    for part in ["error: copy `", "No space left on device", HINT] {
        assert!(
            ended.stderr.contains(part),
            "`{part}` is not in: {}",
            ended.stderr
        );
    }
    Ok(())
}

#[test]
fn an_image_for_which_the_disk_becomes_too_small_is_a_clear_error_and_is_pulled_later() -> Result<()> {
    require!(Root);
    require!(UserNamespaces);
    small_image()?;
    // Bytes are counted before the first file is written; files are not.
    let script = r#"
mount -t tmpfs -o size=2g,nr_inodes=300 none /mnt
mount -t tmpfs none "$home/staging"
"$cellblock" image export cellblock-tests --level 1 --index --out "$home/staging" >&2
export CELLBLOCK_HOME=/mnt
attempt image pull cellblock-tests --from "$home/staging"
attempt image import "$home"/staging/*.zst
rest -type f
mount -o remount,nr_inodes=100k /mnt
attempt image pull cellblock-tests --from "$home/staging"
attempt run --image cellblock-tests -c '6 * 7'
"#;
    let ended = in_own_mounts(&format!("{START}{script}"))?;
    let (failed, worked) = ended
        .stdout
        .split_at("code 70\ncode 70\n".len().min(ended.stdout.len()));
    assert_eq!(failed, "code 70\ncode 70\n", "{}", ended.stderr);
    assert!(!worked.contains("rest "), "{worked}");
    assert!(
        worked.ends_with("code 0\n42\ncode 0\n"),
        "{worked}{}",
        ended.stderr
    );
    for part in ["No space left on device", HINT] {
        let times = ended.stderr.matches(part).count();
        assert_eq!(times, 2, "`{part}` in: {}", ended.stderr);
    }
    Ok(())
}
