#!/usr/bin/env bash
# Cargo 1.95.0: a package whose settings a profile overrides loses the profile's `strip`, although the override does not name it.
#
# Seen, with `strip = "symbols"` in `[profile.release]`:
#   no override                                              rustc -C strip=symbols    no .symtab in the program
#   [profile.release.package] probe = { opt-level = 1 }      rustc -C strip=debuginfo  the program has its symbols
#   … probe = { opt-level = 1, strip = "symbols" }           rustc -C strip=symbols    no .symtab in the program
# Expected: the override changes what it names. A program of 111 MB had 144 MB, and nothing said so.
# Workaround: name `strip` in the override of the package that is the program.
# Exits with 0 while Cargo behaves like this, else with 1. Needs the toolchain 1.95.0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cargo --version
mkdir "$folder/src"
echo 'fn main() {}' >"$folder/src/main.rs"

# stripped OVERRIDE: prints the value of `-C strip` that rustc is given for the program.
stripped() {
  printf '[package]\nname = "probe"\nversion = "0.1.0"\nedition = "2024"\n[profile.release]\nstrip = "symbols"\n%s\n' "$1" >"$folder/Cargo.toml"
  cargo build --release --verbose --manifest-path "$folder/Cargo.toml" --target-dir "$folder/target" 2>&1 |
    sed -n 's/.*-C strip=\([a-z]*\).*/\1/p'
  rm -rf "$folder/target"
}

whole=$(stripped '')
overridden=$(stripped '[profile.release.package]
probe = { opt-level = 1 }')
named=$(stripped '[profile.release.package]
probe = { opt-level = 1, strip = "symbols" }')
echo "no override: $whole | opt-level overridden: $overridden | strip named: $named"
[[ $whole == symbols && $overridden == debuginfo && $named == symbols ]]
