/** The server: whether it is ready, and what it offers. */

import { useEffect, useState } from "preact/hooks";
import { state } from "../account";
import { Fact } from "../parts/session-facts";
import { bytes, plain } from "../text";

interface Condition {
  status: string;
  reason?: string;
}

export function Server() {
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
  const { version, server, account } = state.value!;
  const sandboxes = server?.sandboxes;
  const limits = Object.entries(sandboxes?.limits ?? {}).filter(([, value]) => typeof value === "number");
  return (
    <>
      <h1>Server</h1>
      <section class="card" aria-label="Server">
        <dl>
          <Fact name="State">
            <span class={`status ${ready?.status === "ok" ? "good" : ready ? "bad" : "going"}`}>{ready ? (ready.status === "ok" ? "ready" : ready.status.replace("_", " ")) : "…"}</span>
            {ready?.reason !== undefined && ` ${plain(ready.reason)}`}
          </Fact>
          <Fact name="Version">{version}</Fact>
          <Fact name="You are">{account?.name ?? "local, without a key"}</Fact>
          <Fact name="Toolsets">{server?.toolsets.join(", ")}</Fact>
          <Fact name="Widest network">{server?.max_network}</Fact>
          <Fact name="Longest cell">{server?.max_cell_timeout} s</Fact>
          {sandboxes && (
            <>
              <Fact name="Backend">{sandboxes.backend}</Fact>
              <Fact name="Python">{sandboxes.python}</Fact>
            </>
          )}
        </dl>
      </section>
      {limits.length > 0 && (
        <section class="card" aria-labelledby="limits-title">
          <h2 id="limits-title">Limits of a session</h2>
          <dl>
            {limits.map(([name, value]) => (
              <Fact key={name} name={name}>
                {name.endsWith("_bytes") ? bytes(value!) : value!.toLocaleString("en-US")}
              </Fact>
            ))}
          </dl>
        </section>
      )}
    </>
  );
}
