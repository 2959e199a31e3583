/** A table of things, or the reason why there is none. */

import type { ComponentChildren } from "preact";
import { plain } from "../text";

interface Listing<T> {
  /** What was read so far. */
  rows: T[] | null;
  failed: string | null;
  /** What reads the next page, if there is one, and what the things are called there, such as "runs". */
  older?: { load: (() => void) | null; name: string };
  /** The table's name for screen readers. */
  label: string;
  /** Shown if there are none. */
  none: ComponentChildren;
  /** The cells of the header. */
  head: ComponentChildren;
  /** A row of the table. */
  row: (item: T) => ComponentChildren;
}

export function Listing<T>({ rows, failed, older, label, none, head, row }: Listing<T>) {
  return (
    <>
      {failed !== null && <p class="note">{plain(failed)}</p>}
      {rows?.length === 0 && <p class="hint">{none}</p>}
      {rows !== null && rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={label}>
          <table class="sessions">
            <thead>
              <tr>{head}</tr>
            </thead>
            <tbody>{rows.map(row)}</tbody>
          </table>
        </div>
      )}
      {older?.load && (
        <button type="button" onClick={older.load}>
          Show older {older.name}
        </button>
      )}
    </>
  );
}
