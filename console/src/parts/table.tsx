/** A table by pages. The server reads a page's rows from the stored Parquet, however long the table is. */

import { useEffect, useState } from "preact/hooks";
import { download, get, said } from "../api";
import { oneLine, shortened } from "../text";
import type { Rows } from "../types";
import { attempt, failure } from "./notice";

const PAGE = 20;

interface Sort {
  column: number;
  descending: boolean;
}

export function Table({ sha256, name, types }: { sha256: string; name: string; types?: string[] }) {
  const [page, setPage] = useState(0);
  const [sort, setSort] = useState<Sort | null>(null);
  const [loaded, setLoaded] = useState<Rows | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const order = sort ? `&sort=${sort.column}&descending=${sort.descending}` : "";

  useEffect(() => {
    const stop = new AbortController();
    get<Rows>(`/v1/artifacts/${sha256}/rows?offset=${page * PAGE}&limit=${PAGE}${order}`, stop.signal)
      .then((rows) => {
        setLoaded(rows);
        setFailed(null);
      })
      .catch((error) => {
        if (stop.signal.aborted) return;
        if (!sort) return setFailed(said(error));
        // The rows as they are can still be read.
        failure.value = said(error);
        setSort(null);
      });
    return () => stop.abort();
  }, [sha256, page, order]);

  if (failed !== null) return <p class="note">{failed}</p>;
  if (!loaded) return <p class="note">Loading the table …</p>;
  const shown = loaded.rows;
  const pages = Math.max(1, Math.ceil(loaded.total_rows / PAGE));
  const first = page * PAGE + 1;
  const last = Math.min((page + 1) * PAGE, loaded.total_rows);
  const numeric = loaded.columns.map((_, column) => shown.some((row) => typeof row[column] === "number"));
  function reorder(column: number) {
    setPage(0);
    setSort(sort?.column !== column ? { column, descending: false } : sort.descending ? null : { column, descending: true });
  }
  return (
    <div class="table">
      <div class="scroll" tabIndex={0} role="region" aria-label={name}>
        <table>
          <thead>
            <tr>
              {loaded.columns.map((column, index) => {
                const direction = sort?.column === index ? (sort.descending ? "descending" : "ascending") : undefined;
                return (
                  <th key={index} scope="col" aria-sort={direction} class={numeric[index] ? "number" : ""} title={types?.[index]}>
                    <button type="button" onClick={() => reorder(index)}>
                      {oneLine(column)}
                      <span aria-hidden="true">{direction === "ascending" ? " ↑" : direction === "descending" ? " ↓" : ""}</span>
                    </button>
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {shown.map((row, index) => (
              <tr key={index}>
                {row.map((value, column) => (
                  <td key={column} class={value === null ? "null" : numeric[column] ? "number" : ""}>
                    {cell(value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="pager">
        <button type="button" disabled={page === 0} onClick={() => setPage(page - 1)}>
          Previous
        </button>
        <button type="button" disabled={page + 1 >= pages} onClick={() => setPage(page + 1)}>
          Next
        </button>
        <span aria-live="polite">
          {loaded.total_rows === 0 ? "No rows" : `${first.toLocaleString("en-US")}–${last.toLocaleString("en-US")} of ${loaded.total_rows.toLocaleString("en-US")} rows`}
        </span>
        {pages > 2 && (
          <label>
            Row{" "}
            <input
              type="number"
              min="1"
              max={loaded.total_rows}
              onChange={(event) => {
                const row = Math.trunc(Number(event.currentTarget.value));
                if (row >= 1 && row <= loaded.total_rows) setPage(Math.floor((row - 1) / PAGE));
              }}
            />
          </label>
        )}
        <button type="button" class="quiet end" onClick={() => void attempt(() => download(`/v1/artifacts/${sha256}`, `${name}.parquet`))}>
          Parquet ↓
        </button>
      </div>
    </div>
  );
}

function cell(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "string") return oneLine(shortened(value, 500));
  return oneLine(shortened(JSON.stringify(value), 500));
}
