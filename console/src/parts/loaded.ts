/** Reading things from the server for as long as somebody looks at them. */

import { useCallback, useEffect, useState } from "preact/hooks";
import { get, said } from "../api";
import type { Listed } from "../types";

export interface Loaded<T> {
  value: T | null;
  failed: string | null;
  reload: () => void;
}

interface When<T> {
  /** After how many milliseconds it is read again, while the page is seen. */
  every?: (value: T | null) => number;
  /** Read again when this changes. */
  version?: unknown;
}

/** What an address answers. `null` reads nothing for now. */
export function useLoaded<T>(path: string | null, { every, version }: When<T> = {}): Loaded<T> {
  const [value, setValue] = useState<T | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const [count, setCount] = useState(0);
  const reload = useCallback(() => setCount((count) => count + 1), []);
  useEffect(() => {
    if (path === null) return;
    let stopped = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    // Answers that come too late are ignored. The requests are not aborted, because a session is interrupted by clients that go away.
    const load = async () => {
      let last: T | null = null;
      if (timer === undefined || !document.hidden) {
        try {
          const read = await get<T>(path);
          last = read;
          if (stopped) return;
          setValue(read);
          setFailed(null);
        } catch (error) {
          if (!stopped) setFailed(said(error));
        }
      }
      if (every && !stopped) timer = setTimeout(load, every(last));
    };
    void load();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [path, count, version]);
  return { value, failed, reload };
}

export interface Paged<T> {
  rows: T[] | null;
  failed: string | null;
  more: (() => void) | null;
  reload: () => void;
}

/** A long list, a page at a time. `path` has its own `?`. */
export function usePaged<T>(path: string): Paged<T> {
  const [rows, setRows] = useState<T[] | null>(null);
  const [after, setAfter] = useState<string | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const load = (from: string | null, so_far: T[]) => {
    get<Listed<T>>(`${path}${from === null ? "" : `&after=${encodeURIComponent(from)}`}`).then(
      (page) => {
        setRows([...so_far, ...page.data]);
        setAfter(page.has_more ? (page.last_id ?? null) : null);
        setFailed(null);
      },
      (error) => setFailed(said(error)),
    );
  };
  const reload = () => load(null, []);
  useEffect(reload, [path]);
  return { rows, failed, more: after === null ? null : () => load(after, rows ?? []), reload };
}
