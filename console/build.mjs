// Builds the console into crates/gateway/console, from where it is embedded in the binary. `--check` compares a fresh build
// with what is there instead. Files are stored as gzip, which every browser reads; the check compares what is in them, because
// versions of Node may compress differently.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "../crates/gateway/console");
process.chdir(here);

const { outputFiles, metafile } = await build({
  entryPoints: ["src/main.tsx", "src/style.css"],
  outdir: "out",
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: true,
  legalComments: "none",
  charset: "utf8",
  metafile: true,
  write: false,
});

const files = new Map();
const entry = {};
for (const { path, contents } of outputFiles) {
  const name = path.slice(path.lastIndexOf("/") + 1);
  files.set(`assets/${name}`, Buffer.from(contents));
}
for (const [path, { entryPoint }] of Object.entries(metafile.outputs)) {
  if (entryPoint) entry[entryPoint] = path.replace("out/", "");
}

const licenses = Buffer.from(licensesOf(Object.keys(metafile.inputs)));
const hash = createHash("sha256").update(licenses).digest("hex").slice(0, 8).toUpperCase();
files.set(`assets/licenses-${hash}.txt`, licenses);
const page = readFileSync("src/index.html", "utf8")
  .replace("STYLE", entry["src/style.css"])
  .replace("SCRIPT", entry["src/main.tsx"])
  .replace("LICENSES", `licenses-${hash}.txt`);
files.set("index.html", Buffer.from(page));

if (process.argv.includes("--check")) check();
else write();

/** The licenses of the packages from which files are bundled. */
function licensesOf(inputs) {
  const packages = new Set();
  for (const input of inputs) {
    const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input);
    if (found) packages.add(found[1]);
  }
  const texts = [...packages].sort().map((name) => {
    const folder = join("node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).sort().find((file) => /^licen[cs]e/i.test(file));
    const text = file ? readFileSync(join(folder, file), "utf8") : `License: ${license}\n`;
    return `${name} ${version}\n\n${text.trim()}\n`;
  });
  return texts.join("\n----\n\n");
}

function write() {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(join(target, "assets"), { recursive: true });
  let total = 0;
  for (const [name, bytes] of files) {
    const packed = gzipSync(bytes, { level: 9 });
    total += packed.length;
    writeFileSync(join(target, `${name}.gz`), packed);
    console.log(`${String(packed.length).padStart(8)}  ${name}`);
  }
  console.log(`${String(total).padStart(8)}  bytes in all`);
}

function check() {
  const there = readdirSync(target, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(target.length + 1, -3));
  const differing = new Set(there.filter((name) => !files.has(name)));
  for (const [name, bytes] of files) {
    const path = join(target, `${name}.gz`);
    if (!existsSync(path) || !gunzipSync(readFileSync(path)).equals(bytes)) differing.add(name);
  }
  if (differing.size > 0) {
    console.error(`crates/gateway/console differs from a build of console/: ${[...differing].join(", ")}`);
    console.error("Run `npm ci --ignore-scripts && npm run build` in console/.");
    process.exit(1);
  }
  console.log(`${files.size} files are as a fresh build makes them`);
}
