/** Requests to this server. Each carries the header without which the sign-in's cookie is ignored. */

import type { CellEvent, Listed } from "./types";

const OWN = { "x-cellblock-console": "1" };

/** A request that the server rejected, or could not answer. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** Called when the server asks for a key. */
let onSignedOut = () => {};

export function whenSignedOut(callback: () => void) {
  onSignedOut = callback;
}

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers: { ...OWN, ...init.headers }, credentials: "same-origin" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", "the server cannot be reached; is it still running?");
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  const { code, message } = body?.error ?? {};
  const error = new ApiError(response.status, code ?? "error", message ?? `the server answered ${response.status}`);
  if (response.status === 401 && !path.startsWith("/console/")) onSignedOut();
  throw error;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request(path, signal ? { signal } : {})).json();
}

export async function list<T>(path: string, signal?: AbortSignal): Promise<T[]> {
  return (await get<Listed<T>>(path, signal)).data;
}

export async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  const response = await request(path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  return response.status === 204 ? (undefined as T) : response.json();
}

/** The events of a cell are lost, and its result has to be looked for. */
export class Dropped extends Error {}

/** How long a lost connection is tried again, and how often. */
const PATIENCE = 60_000;
const AGAIN = 500;

interface CellCallbacks {
  onEvent: (event: CellEvent) => void;
  /** Called when the connection is lost. Events go on once it is there again. */
  onLost: () => void;
}

/** Runs a cell and calls back for each of its events, once, also if the connection is lost meanwhile. */
export async function runCell(
  session: string,
  cell: { code: string; language: string; timeout?: number; producer?: string },
  { onEvent, onLost }: CellCallbacks,
): Promise<void> {
  const path = `/v1/sessions/${session}`;
  const stream = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  let last = -1;
  let ended = false;
  const take = (event: CellEvent) => {
    if (event.sequence_number <= last) return;
    last = event.sequence_number;
    ended = event.type === "cell.done" || event.type === "cell.error";
    onEvent(event);
  };
  try {
    const response = await request(`${path}/cells`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ ...cell, stream_id: stream }),
    });
    await readEvents(response, take);
  } catch (error) {
    if (!isLost(error)) throw error;
  }
  if (ended) return;
  onLost();
  let until = Date.now() + PATIENCE;
  while (!ended && Date.now() < until) {
    const before = last;
    try {
      await readEvents(await request(`${path}/streams/${stream}${last < 0 ? "" : `?starting_after=${last}`}`), take);
      // The server ended the stream before the cell did.
      if (last === before) break;
    } catch (error) {
      // The events are not kept anymore, or the cell never arrived.
      if (!isLost(error)) break;
    }
    if (last > before) until = Date.now() + PATIENCE;
    if (!ended) await new Promise((resolve) => setTimeout(resolve, AGAIN));
  }
  if (!ended) throw new Dropped();
}

/** Whether there was no whole answer. */
function isLost(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof ApiError && error.status === 0);
}

async function readEvents(response: Response, onEvent: (event: CellEvent) => void) {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  // Pieces are joined once an event is whole: one of megabytes comes in many.
  let pieces: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const joined = (pieces.at(-1) ?? "").slice(-1) + value;
    pieces.push(value);
    if (!joined.includes("\n\n")) continue;
    const frames = pieces.join("").split("\n\n");
    pieces = [frames.pop()!];
    for (const frame of frames) {
      const data = frame.split("\n").filter((line) => line.startsWith("data:"));
      if (data.length > 0) onEvent(JSON.parse(data.map((line) => line.slice(5)).join("\n")));
    }
  }
}

/** The address of a file in a session. */
export function filePath(session: string, path: string): string {
  const parts = path.split("/").filter((part) => part !== "");
  return `/v1/sessions/${session}/files/${parts.map(encodeURIComponent).join("/")}`;
}

/** Saves what an address has as a file of the person's own. */
export async function download(path: string, name: string) {
  const blob = await (await request(path)).blob();
  // Of no type that a browser would show.
  const url = URL.createObjectURL(new Blob([blob], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name.slice(name.lastIndexOf("/") + 1);
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** What an error says. */
export function said(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
