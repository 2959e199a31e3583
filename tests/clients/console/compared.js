// Pictures of the main views, compared with those in pictures/. They are made small first, so that the edges of letters, which each machine
// draws in its own way, are no difference, and what moves, vanishes or changes its color is. CONSOLE_UPDATE=1 writes them anew; look at them.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pixelmatch from "pixelmatch";
import { PNG } from "pngjs";

const FOLDER = join(import.meta.dirname, "pictures");
const { CONSOLE_UPDATE, CONSOLE_PICTURES } = process.env;
/** Pixels of a screenshot in each direction that are one of the small picture. */
const SHRUNK = 4;
/** Difference of two colors that counts, and the part of pixels that may differ: texts such as ids and durations do. */
const THRESHOLD = 0.2;
const MOST = 0.01;
/** What is different each time: it is covered. */
const CHANGING = ["time", ".took", ".charts", ".quotas", "h1.id", "dl code", ".trail", ".links", "meter"];

/** Compares what is seen of a page, or of a part of one, with the picture of this name. */
export async function compared(place, name) {
  const page = place.page?.() ?? place;
  await page.evaluate(() => scrollTo(0, 0));
  const mask = CHANGING.map((selector) => page.locator(selector));
  const taken = await place.screenshot({ animations: "disabled", caret: "hide", mask, maskColor: "#808080" });
  const now = shrunk(PNG.sync.read(taken));
  const path = join(FOLDER, `${name}.png`);
  if (CONSOLE_UPDATE) return writeFileSync(path, PNG.sync.write(now, { colorType: 2 }));
  const before = PNG.sync.read(readFileSync(path));
  assert.deepEqual([now.width, now.height], [before.width, before.height], name);
  const seen = new PNG({ width: now.width, height: now.height });
  const count = pixelmatch(before.data, now.data, seen.data, now.width, now.height, { threshold: THRESHOLD, includeAA: true });
  const part = count / (now.width * now.height);
  if (CONSOLE_PICTURES) console.log(`${name}: ${(100 * part).toFixed(2)} % of the pixels differ`);
  if (part <= MOST) return;
  const out = CONSOLE_PICTURES ?? join(import.meta.dirname, "../../../target/console-pictures");
  mkdirSync(out, { recursive: true });
  for (const [what, picture] of [["now", now], ["difference", seen]]) writeFileSync(join(out, `${name}-${what}.png`), PNG.sync.write(picture));
  assert.fail(`${name}: ${(100 * part).toFixed(1)} % of the pixels differ from pictures/${name}.png, at most ${100 * MOST} % may; see ${out}. If the view was changed on purpose, run the test with CONSOLE_UPDATE=1 and look at the picture.`);
}

/** A picture of which each pixel is the average of a square. */
function shrunk({ width, height, data }) {
  const small = new PNG({ width: Math.floor(width / SHRUNK), height: Math.floor(height / SHRUNK) });
  for (let y = 0; y < small.height; y++) {
    for (let x = 0; x < small.width; x++) {
      const sum = [0, 0, 0, 0];
      for (let inner = 0; inner < SHRUNK * SHRUNK; inner++) {
        const at = 4 * ((y * SHRUNK + Math.floor(inner / SHRUNK)) * width + x * SHRUNK + (inner % SHRUNK));
        for (let part = 0; part < 4; part++) sum[part] += data[at + part];
      }
      for (let part = 0; part < 4; part++) small.data[4 * (y * small.width + x) + part] = Math.round(sum[part] / SHRUNK ** 2);
    }
  }
  return small;
}
