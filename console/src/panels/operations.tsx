/** The server: whether it is ready, what it offers, what it counts, and the key of whoever looks. */

import { useEffect, useState } from "preact/hooks";
import { state } from "../account";
import { Decisions } from "../parts/decisions";
import { Keys } from "../parts/keys";
import { Machine } from "../parts/machine";
import { Metrics } from "../parts/metrics";
import { Key, useOwnKey } from "../parts/own-key";
import { Fact, Protections } from "../parts/session-facts";
import { bytes, oneLine, plain } from "../text";

interface Condition {
  status: string;
  reason?: string;
}

export function Operations() {
  const { version, server } = state.value!;
  const sandboxes = server?.sandboxes;
  const own = useOwnKey();
  const limits = Object.entries(sandboxes?.limits ?? {}).filter(([, value]) => typeof value === "number");
  return (
    <>
      <h1>Operations</h1>
      <div class="columns">
        <section class="card" aria-labelledby="server-title">
          <h2 id="server-title">Server</h2>
          <dl>
            <Ready />
            <Fact name="Version">{version}</Fact>
            <Fact name="Toolsets">{server?.toolsets.join(", ")}</Fact>
            <Fact name="Longest cell">{server?.max_cell_timeout} s</Fact>
            {sandboxes && (
              <>
                <Fact name="Backend">{sandboxes.backend}</Fact>
                <Fact name="Image">
                  {oneLine(sandboxes.image.name)} <code title={sandboxes.image.digest}>{sandboxes.image.digest.slice(0, 16)}</code>
                </Fact>
                <Fact name="Python">{sandboxes.python}</Fact>
              </>
            )}
          </dl>
          {sandboxes && <Protections protections={sandboxes.protections} />}
          {(sandboxes?.failed_modules ?? []).length > 0 && (
            <details>
              <summary>Modules of the image that cannot be imported</summary>
              <ul class="plain">
                {sandboxes!.failed_modules.map((module) => (
                  <li key={module}>{plain(module)}</li>
                ))}
              </ul>
            </details>
          )}
          {limits.length > 0 && (
            <details>
              <summary>Limits of a session</summary>
              <dl>
                {limits.map(([name, value]) => (
                  <Fact key={name} name={name}>
                    {name.endsWith("_bytes") ? bytes(value!) : value!.toLocaleString("en-US")}
                  </Fact>
                ))}
              </dl>
            </details>
          )}
        </section>
        <Key own={own} />
      </div>
      {own.value?.admin && <Machine />}
      {own.value?.admin && <Keys />}
      <Decisions />
      <Metrics />
    </>
  );
}

function Ready() {
  const [ready, setReady] = useState<Condition | null>(null);
  useEffect(() => {
    const look = async () => {
      try {
        // Its answer is of use with either status.
        setReady(await (await fetch("/readyz", { credentials: "omit" })).json());
      } catch {
        setReady({ status: "unreachable" });
      }
    };
    void look();
    const timer = setInterval(() => void look(), 5000);
    return () => clearInterval(timer);
  }, []);
  return (
    <Fact name="State">
      <span class={`status ${ready?.status === "ok" ? "good" : ready ? "bad" : "going"}`}>{ready ? (ready.status === "ok" ? "ready" : ready.status.replace("_", " ")) : "…"}</span>
      {ready?.reason !== undefined && ` ${plain(ready.reason)}`}
    </Fact>
  );
}
