#!/usr/bin/env bash
# npm 10.9.3: `npm install` of a package.json whose only dependency is a range of vitest ends with an error of npm's own code.
#
# Seen, in an empty folder with {"dependencies": {"vitest": "4.1.10 - 4.1.12"}}:
#   npm install --package-lock-only                      exit status 1, "Cannot read properties of null (reading 'edgesOut')"
#   npm install --package-lock-only --legacy-peer-deps   exit status 0, a lock file
# With "4.1.12", which is what the range means here, both make a lock file.
# Expected: a lock file, or an error that names a package. vitest has optional peers that have vitest as their own peer.
# Workaround: `--legacy-peer-deps`, for `npm install` and for `npm ci`.
# Exits with 0 while npm behaves like this, else with 1. Needs Node 22 and npm.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --prefix "$folder/npm" --ignore-scripts --no-audit --no-fund --loglevel=error npm@10.9.3 >/dev/null

# lock OPTION…: makes a lock file in an empty folder; prints the exit status and what npm says.
lock() {
  rm -rf "$folder/project" && mkdir "$folder/project"
  echo '{"name": "probe", "private": true, "dependencies": {"vitest": "4.1.10 - 4.1.12"}}' >"$folder/project/package.json"
  local status=0 said
  said=$(cd "$folder/project" && node "$folder/npm/node_modules/npm/bin/npm-cli.js" install --package-lock-only \
    --ignore-scripts --no-audit --no-fund --loglevel=error "$@" 2>&1) || status=$?
  printf '%d %s\n' "$status" "$(grep -o "Cannot read properties of null (reading 'edgesOut')" <<<"$said" | head -n 1)"
}

node "$folder/npm/node_modules/npm/bin/npm-cli.js" --version
plain=$(lock)
legacy=$(lock --legacy-peer-deps)
echo "plain: $plain | with --legacy-peer-deps: $legacy"
[[ $plain == "1 Cannot read properties of null (reading 'edgesOut')" && $legacy == "0 " ]]
