/** All keys of the server, for a key that may manage them: make, list, revoke. */

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { refresh, signIn, state } from "../account";
import { send } from "../api";
import { oneLine, relative } from "../text";
import { Listing } from "./listing";
import { useLoaded } from "./loaded";
import { attempt } from "./notice";

interface ListedKey {
  id: string;
  name: string;
  usable: boolean;
  admin: boolean;
  created_at: number;
  expires_at?: number;
  revoked_at?: number;
  last_used_at?: number;
  quotas: Record<string, number | null>;
  connectors: string[];
  max_network?: string;
}

interface NewKey extends ListedKey {
  secret: string;
}

const DAY = 24 * 3600;
const EXPIRY: [string, number][] = [
  ["never", 0],
  ["in 7 days", 7 * DAY],
  ["in 30 days", 30 * DAY],
  ["in 90 days", 90 * DAY],
  ["in a year", 365 * DAY],
];
const QUOTAS = ["sandboxes", "concurrent_cells", "cells_per_minute", "cell_seconds_per_day", "fetches_per_minute", "fetched_bytes_per_day", "upload_bytes_per_day", "layers_per_day", "stored_bytes"];

/** The key that was just made. It is here, and not in a part of the page, because the first key closes the page for a moment. */
const made = signal<NewKey | null>(null);

export function Keys() {
  const first = state.value?.account?.name === undefined;
  const { value, failed, reload } = useLoaded<{ data: ListedKey[] }>("/v1/keys");
  return (
    <section class="card" aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      {made.value !== null && <Secret key={made.value.id} of={made.value} />}
      <Listing
        rows={value?.data ?? null}
        failed={failed}
        label="Keys, the oldest first"
        none="There are no keys: who reaches this server from its machine needs none."
        head={
          <>
            <th scope="col">Name</th>
            <th scope="col">State</th>
            <th scope="col">Last used</th>
            <th scope="col">Quotas of its own</th>
            <th scope="col">Connectors</th>
            <th scope="col">Network</th>
            <th scope="col">
              <span class="unseen">Actions</span>
            </th>
          </>
        }
        row={(key) => (
          <tr key={key.id}>
            <th scope="row" title={key.id}>
              {oneLine(key.name)}
              {key.admin && <span class="detail"> administrator</span>}
            </th>
            <td>
              <span class={`status ${key.usable ? "good" : "bad"}`}>{validity(key)}</span>
            </td>
            <td>{key.last_used_at === undefined ? "never" : relative(key.last_used_at)}</td>
            <td>{Object.entries(key.quotas).map(([quota, most]) => `${quota.replaceAll("_", " ")} ${most === null ? "unlimited" : most.toLocaleString("en-US")}`).join(", ") || "–"}</td>
            <td>{key.connectors.length === 0 ? "none" : oneLine(key.connectors.map((name) => (name === "*" ? "all" : name)).join(", "))}</td>
            <td>{key.max_network ?? "the server's"}</td>
            <td class="row-actions">{key.usable && <Revoke of={key} onRevoked={reload} />}</td>
          </tr>
        )}
      />
      <Make first={first} onMade={reload} />
    </section>
  );
}

function validity({ usable, revoked_at, expires_at }: ListedKey): string {
  if (revoked_at !== undefined) return `revoked ${relative(revoked_at)}`;
  if (!usable) return "expired";
  return expires_at === undefined ? "does not expire" : `expires ${relative(expires_at)}`;
}

/** Asks twice: a key that was revoked never comes back. */
function Revoke({ of, onRevoked }: { of: ListedKey; onRevoked: () => void }) {
  const [asked, setAsked] = useState(false);
  if (!asked) {
    return (
      <button type="button" class="danger" aria-label={`Revoke ${oneLine(of.name)}`} onClick={() => setAsked(true)}>
        Revoke
      </button>
    );
  }
  return (
    <>
      <button type="button" class="danger" onClick={() => void attempt(() => send("DELETE", `/v1/keys/${of.id}`)).then(onRevoked)}>
        Revoke {oneLine(of.name)} for good
      </button>
      <button type="button" onClick={() => setAsked(false)}>
        Leave it
      </button>
    </>
  );
}

/** The secret of a new key. */
function Secret({ of }: { of: NewKey }) {
  return (
    <div class="secret" role="status">
      <label>
        Secret of the key {oneLine(of.name)}. It is shown this once.
        <input class="code" readOnly value={of.secret} onFocus={(event) => event.currentTarget.select()} />
      </label>
      <button type="button" onClick={() => void attempt(() => navigator.clipboard.writeText(of.secret))}>
        Copy
      </button>
      <button type="button" onClick={() => (made.value = null)}>
        I have stored it
      </button>
    </div>
  );
}

function Make({ first, onMade }: { first: boolean; onMade: () => void }) {
  const [busy, setBusy] = useState(false);
  async function make(form: HTMLFormElement) {
    const data = new FormData(form);
    const text = (name: string) => String(data.get(name) ?? "").trim();
    const quotas = QUOTAS.filter((quota) => text(quota) !== "").map((quota) => [quota, Number(text(quota))]);
    const connectors = text("connectors").split(/[\s,]+/).filter((name) => name !== "");
    const expires = Number(text("expires"));
    setBusy(true);
    const done = await attempt(async () => {
      const key = await send<NewKey>("POST", "/v1/keys", {
        name: text("name"),
        quotas: Object.fromEntries(quotas),
        connectors,
        ...(expires > 0 ? { expires_in: expires } : {}),
        ...(text("network") === "" ? {} : { max_network: text("network") }),
      });
      made.value = key;
      if (first) await signIn(key.secret);
    });
    setBusy(false);
    if (!done) return void refresh();
    form.reset();
    onMade();
  }
  return (
    <details class="make">
      <summary>{first ? "Make the first key" : "Make a key"}</summary>
      <form
        class="tool"
        onSubmit={(event) => {
          event.preventDefault();
          void make(event.currentTarget);
        }}
      >
        {first && (
          <p class="warning">
            Without keys, everybody who reaches this server from its machine may do everything here. The first key ends that: every request then needs a key, programs that send none stop working, and sessions and files
            that were made without a key cannot be reached any more. Revoking all keys does not undo it. The first key is an administrator's, and you are signed in with it.
          </p>
        )}
        <label>
          Name
          <input name="name" required maxLength={100} autocomplete="off" />
        </label>
        <label>
          Expires
          <select name="expires">
            {EXPIRY.map(([name, seconds]) => (
              <option key={name} value={seconds}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          Connectors that its code can call, by name; * means all
          <input name="connectors" class="code" autocomplete="off" spellcheck={false} />
        </label>
        <label>
          Widest network
          <select name="network">
            <option value="">the server's</option>
            <option>none</option>
            <option>loopback</option>
            <option>egress</option>
          </select>
        </label>
        <fieldset>
          <legend>Quotas that differ from the server's</legend>
          {QUOTAS.map((quota) => (
            <label key={quota}>
              {quota.replaceAll("_", " ")}
              <input name={quota} type="number" min="0" step="1" placeholder="usual" />
            </label>
          ))}
        </fieldset>
        {first && (
          <label class="check">
            <input type="checkbox" required /> Close this server to everybody without a key
          </label>
        )}
        <button type="submit" class="primary" disabled={busy}>
          Make the key
        </button>
      </form>
    </details>
  );
}
