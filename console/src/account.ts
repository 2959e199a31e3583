/** Who uses the console, and what the server offers them. */

import { signal } from "@preact/signals";
import { get, send, whenSignedOut } from "./api";
import type { ConsoleState } from "./types";

export const state = signal<ConsoleState | null>(null);

export async function refresh() {
  state.value = await get<ConsoleState>("/console/state");
}

export async function signIn(key: string) {
  await send("POST", "/console/sign-in", { key });
  await refresh();
}

export async function signOut() {
  await send("POST", "/console/sign-out");
  // Nothing of one key stays on the page for another.
  location.reload();
}

whenSignedOut(() => void refresh());
