/** Metrics in the text form of Prometheus, and how some of them changed while somebody looked. */

import { signal } from "@preact/signals";
import { request } from "./api";

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export function parse(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    const found = line.startsWith("#") ? null : LINE.exec(line);
    if (!found) continue;
    const labels: Record<string, string> = {};
    for (const [, name, value] of (found[2] ?? "").matchAll(LABEL)) {
      labels[name!] = value!.replace(/\\(.)/g, (_, escaped) => (escaped === "n" ? "\n" : escaped));
    }
    samples.push({ name: found[1]!, labels, value: Number(found[3]) });
  }
  return samples;
}

/** The sum of a metric's samples. */
export function total(samples: Sample[], name: string): number {
  return samples.filter((sample) => sample.name === name).reduce((sum, { value }) => sum + value, 0);
}

/** The sums of a metric by one of its labels, the largest first. */
export function by(samples: Sample[], name: string, label: string): { key: string; value: number }[] {
  const sums = new Map<string, number>();
  for (const sample of samples) {
    const key = sample.labels[label];
    if (sample.name === name && key !== undefined) sums.set(key, (sums.get(key) ?? 0) + sample.value);
  }
  return [...sums].map(([key, value]) => ({ key, value })).sort((a, b) => b.value - a.value);
}

/** How many observations of a histogram are in each of its buckets. */
export function buckets(samples: Sample[], name: string): { upTo: string; count: number }[] {
  const bounds = by(samples, `${name}_bucket`, "le").sort((a, b) => bound(a.key) - bound(b.key));
  return bounds.map(({ key, value }, index) => ({ upTo: key === "+Inf" ? "more" : key, count: value - (bounds[index - 1]?.value ?? 0) }));
}

function bound(le: string): number {
  return le === "+Inf" ? Infinity : Number(le);
}

/** What was read at a time. */
export interface Reading {
  at: number;
  samples: Sample[];
}

/** Readings that are kept. */
const MOST = 120;

export const readings = signal<Reading[]>([]);

export async function read() {
  const text = await (await request("/metrics")).text();
  readings.value = [...readings.value, { at: Date.now(), samples: parse(text) }].slice(-MOST);
}
