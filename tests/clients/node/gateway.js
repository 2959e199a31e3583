// Where the gateway is, and what the scenarios of every client share.

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";

export const URL = process.env.CELLBLOCK_URL;
export const KEY = process.env.CELLBLOCK_KEY;

// One model behind two kinds of provider.
export const MODELS = ["mock-chat", "mock-responses"];

export const SALES = "region,revenue\nnorth,10.5\nsouth,20\nnorth,20\n";
export const TOTALS = "region,revenue\nnorth,30.5\nsouth,20.0\n";
export const HELLO = "Hello! Grüße, 你好 👋 from the model.";
export const ANALYSIS = "{'north': 30.5, 'south': 20.0} Here it is: [totals](sandbox:/mnt/data/totals.csv).";

// Two turns of one conversation: the second reads a variable that the first one set.
export const FIRST_TURN = "Set x to forty-one.";
export const SECOND_TURN = "What is x plus one?";
export const SUM = "It is 42.";

export const WEATHER = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

// Longer than any answer takes on a busy machine: what waits so long hangs.
export const PATIENCE = 120_000;

/** Waits until something holds. */
export async function until(holds) {
  const deadline = Date.now() + PATIENCE / 2;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, "it does not come to that");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** What was written to stdout and stderr, and the values that were shown. */
export function logs(outputs) {
  return (outputs ?? [])
    .filter((output) => output.type === "logs")
    .map((output) => output.logs)
    .join("");
}

/** The one picture among outputs is a PNG with something in it. */
export async function assertPicture(outputs) {
  const urls = outputs.filter((output) => output.type === "image").map((output) => output.url);
  assert.equal(urls.length, 1);
  const answer = await fetch(urls[0], urls[0].startsWith("data:") ? {} : { headers: { Authorization: `Bearer ${KEY}` } });
  const picture = Buffer.from(await answer.arrayBuffer());
  assert.equal(picture.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n");
  assert.ok(picture.length > 1000);
}

/** Breaks something off until its code had begun; the next code in its container sees that it ended before its time was over. */
export async function assertInterrupted(breakOff, whatWasThere) {
  for (let tries = 0; tries < 10; tries += 1) {
    // The event comes before the code runs: each try waits longer after it.
    const after = await whatWasThere(await breakOff(tries * 30));
    if (after === "['began', 'ended']") return;
    // It was broken off sooner than it began.
    assert.ok(["[]", "['ended']"].includes(after), after);
  }
  assert.fail("the code never began");
}
