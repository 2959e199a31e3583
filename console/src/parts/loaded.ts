/** Reading things from the server for as long as somebody looks at them. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, said } from "../api";
import type { Listed } from "../types";

export interface Loaded<T> {
  value: T | null;
  failed: string | null;
  reload: () => void;
}

interface When {
  /** Read again every so many milliseconds while the page is seen. */
  every?: number;
  /** Read again when this changes. */
  version?: unknown;
}

/** What an address answers. `null` reads nothing for now. */
export function useLoaded<T>(path: string | null, { every, version }: When = {}): Loaded<T> {
  const [value, setValue] = useState<T | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const [count, setCount] = useState(0);
  const reload = useCallback(() => setCount((count) => count + 1), []);
  const of = useRef(path);
  if (path !== null && path !== of.current) {
    // What another address answered is nothing here.
    if (of.current !== null) setValue(null);
    of.current = path;
  }
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    const load = () =>
      get<T>(path, stop.signal).then(
        (read) => {
          setValue(read);
          setFailed(null);
        },
        (error) => {
          if (!stop.signal.aborted) setFailed(said(error));
        },
      );
    void load();
    const timer = every === undefined ? undefined : setInterval(() => document.hidden || void load(), every);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [path, count, every, version]);
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
