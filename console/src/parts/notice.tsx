/** The one place where a failed action is reported. */

import { signal } from "@preact/signals";
import { said } from "../api";
import { plain } from "../text";

export const failure = signal<string | null>(null);

export function Failure() {
  return (
    <div role="alert">
      {failure.value !== null && (
        <p class="failure">
          <span>{plain(failure.value)}</span>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => (failure.value = null)}>
            ✕
          </button>
        </p>
      )}
    </div>
  );
}

/** Does something and reports its failure. */
export async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    failure.value = null;
    await work();
    return true;
  } catch (error) {
    failure.value = said(error);
    return false;
  }
}
