/** The key that one has signed in with: what it may do, and what of it is used. */

import { bytes, oneLine, plain, relative } from "../text";
import { type Loaded, useLoaded } from "./loaded";
import { Fact } from "./session-facts";

interface OwnKey {
  id: string;
  name?: string;
  created_at?: number;
  expires_at?: number;
  connectors: string[];
  minimum_backend?: string;
  max_network: string;
  admin: boolean;
  quotas: { quota: string; limit?: number; used?: number }[];
}

const EVERY = 10_000;

export function useOwnKey(): Loaded<OwnKey> {
  return useLoaded<OwnKey>("/v1/key", { every: () => EVERY });
}

export function Key({ own: { value: key, failed } }: { own: Loaded<OwnKey> }) {
  return (
    <section class="card" aria-labelledby="key-title">
      <h2 id="key-title">Your key</h2>
      {failed !== null && <p class="note">{plain(failed)}</p>}
      {key && (
        <>
          <dl>
            <Fact name="Name">{key.name === undefined ? "none: this server needs no key from this machine" : oneLine(key.name)}</Fact>
            <Fact name="Id">
              <code>{key.id}</code>
            </Fact>
            {key.created_at !== undefined && <Fact name="Created">{relative(key.created_at)}</Fact>}
            {key.name !== undefined && <Fact name="Expires">{key.expires_at === undefined ? "never" : relative(key.expires_at)}</Fact>}
            <Fact name="Widest network">{key.max_network}</Fact>
            {key.minimum_backend !== undefined && <Fact name="Weakest backend">{key.minimum_backend}</Fact>}
            <Fact name="Connectors">{key.connectors.length === 0 ? "none" : oneLine(key.connectors.map((name) => (name === "*" ? "all" : name)).join(", "))}</Fact>
          </dl>
          <h3>Quotas</h3>
          <ul class="quotas">
            {key.quotas.map(({ quota, limit, used }) => (
              <li key={quota}>
                <span>{quota.replaceAll("_", " ")}</span>
                <span class="number">
                  {used === undefined ? "" : `${amount(quota, used)} of `}
                  {limit === undefined ? "unlimited" : amount(quota, limit)}
                </span>
                {limit !== undefined && used !== undefined && <meter min={0} max={Math.max(1, limit)} high={0.8 * limit} value={Math.min(used, limit)} aria-label={quota} />}
              </li>
            ))}
          </ul>
        </>
      )}
      {key && !key.admin && (
        <p class="hint">
          A key sees nothing of other keys. Whoever runs this server makes, lists and revokes them with <code>cellblock key create NAME</code>, <code>cellblock key list</code> and{" "}
          <code>cellblock key revoke NAME</code>, or here with a key that <code>--admin</code> has made.
        </p>
      )}
    </section>
  );
}

function amount(quota: string, count: number): string {
  return quota.includes("bytes") ? bytes(count) : count.toLocaleString("en-US");
}
