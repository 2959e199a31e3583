/** The server's machine, for administrators: sandboxes, images, and which backends work there. */

import { useState } from "preact/hooks";
import { list } from "../api";
import { bytes, oneLine, plain, relative } from "../text";
import { Listing } from "./listing";
import { useLoaded } from "./loaded";
import { attempt } from "./notice";
import { Fact } from "./session-facts";

interface Server {
  pool?: { ready: number; in_use: number; taken: number };
  images: { id: string; name: string; python: string; packages: number; bytes: number; created_at: number; in_use: boolean; notes: string[] }[];
  builds: Build[];
}

interface Build {
  what: string;
  stage: string;
  done?: number;
  total?: number;
  began: number;
}

interface Backend {
  name: string;
  works: boolean;
  in_use: boolean;
  detail: string;
}

const EVERY = 5000;
/** While something is built, which takes seconds. */
const EVERY_OF_A_BUILD = 1000;

export function Machine() {
  const { value: server, failed } = useLoaded<Server>("/v1/server", {
    every: (server) => (server?.builds.length ? EVERY_OF_A_BUILD : EVERY),
  });
  return (
    <section class="card" aria-labelledby="machine-title">
      <h2 id="machine-title">Machine</h2>
      {server?.pool && (
        <dl>
          <Fact name="Sandboxes ready">{server.pool.ready}</Fact>
          <Fact name="Sandboxes in use">{server.pool.in_use}</Fact>
          <Fact name="Taken so far">{server.pool.taken.toLocaleString("en-US")}</Fact>
        </dl>
      )}
      <h3>Images</h3>
      <ul class="plain-list" aria-label="Running builds" aria-live="polite">
        {server?.builds.map((build) => (
          <li key={`${build.began} ${build.what}`}>
            <Running {...build} />
          </li>
        ))}
      </ul>
      <Listing
        rows={server?.images ?? null}
        failed={failed}
        label="Images, the last that was built first"
        none="This machine has no images; sandboxes are made elsewhere."
        head={
          <>
            <th scope="col">Image</th>
            <th scope="col">Id</th>
            <th scope="col">Python</th>
            <th scope="col" class="number">Packages</th>
            <th scope="col" class="number">Size</th>
            <th scope="col">Built</th>
            <th scope="col">Notes of its build</th>
          </>
        }
        row={(image) => (
          <tr key={image.id}>
            <th scope="row">
              {oneLine(image.name)}
              {image.in_use && <span class="detail"> in use</span>}
            </th>
            <td>
              <code title={image.id}>{image.id.slice(0, 16)}</code>
            </td>
            <td>{oneLine(image.python)}</td>
            <td class="number">{image.packages}</td>
            <td class="number">{bytes(image.bytes)}</td>
            <td>{relative(image.created_at)}</td>
            <td>{oneLine(image.notes.join("; "))}</td>
          </tr>
        )}
      />
      <Backends />
    </section>
  );
}

function Running({ what, stage, done, total, began }: Build) {
  return (
    <>
      <span class="status">building</span> {oneLine(what)}: {oneLine(stage)}
      {done !== undefined && total !== undefined && (
        <>
          {" "}
          <progress value={done} max={total} aria-label={`${oneLine(what)}: ${oneLine(stage)}`} />{" "}
          <span class="detail">
            {bytes(done)} of {bytes(total)}
          </span>
        </>
      )}{" "}
      <span class="detail">started {relative(began)}</span>
    </>
  );
}

/** Trying them starts programs, so it is done only when somebody wants to know. */
function Backends() {
  const [found, setFound] = useState<Backend[] | null>(null);
  const [busy, setBusy] = useState(false);
  async function look() {
    setBusy(true);
    await attempt(async () => setFound(await list<Backend>("/v1/server/backends")));
    setBusy(false);
  }
  return (
    <>
      <h3>Backends</h3>
      {found !== null && (
        <ul class="plain-list" aria-label="Backends">
          {found.map(({ name, works, in_use, detail }) => (
            <li key={name}>
              <span class={`status ${works ? "good" : "bad"}`}>{works ? "works" : "missing"}</span> <code>{name}</code>
              {in_use && <span class="detail"> in use</span>} <span class="detail">{plain(detail)}</span>
            </li>
          ))}
        </ul>
      )}
      <button type="button" disabled={busy} onClick={() => void look()}>
        Check the backends
      </button>
    </>
  );
}
