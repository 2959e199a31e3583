/** What a session is: its limits, and the sandbox that its last cell ran in. */

import type { ComponentChildren } from "preact";
import { bytes, duration, oneLine, plain } from "../text";
import type { Protection, Sandbox, Session } from "../types";

export function Facts({ session, sandbox }: { session: Session; sandbox: Sandbox | undefined }) {
  const { limits } = session;
  return (
    <section aria-labelledby="facts-title">
      <h2 id="facts-title">Session</h2>
      <dl>
        <Fact name="Id">
          <code>{session.id}</code>
        </Fact>
        <Fact name="Toolset">{session.toolset}</Fact>
        <Fact name="Network">{session.network}</Fact>
        <Fact name="Cells">{session.cells}</Fact>
        <Fact name="Ends">{duration(session.idle_timeout * 1000)} after its last use</Fact>
        {limits.memory_bytes != null && <Fact name="Memory">{bytes(limits.memory_bytes)} at most</Fact>}
        {limits.disk_bytes != null && <Fact name="Disk">{bytes(limits.disk_bytes)} at most</Fact>}
        {limits.processes != null && <Fact name="Processes">{limits.processes} at most</Fact>}
        {session.project !== undefined && <Fact name="Project">{oneLine(session.project)}</Fact>}
        {sandbox && (
          <>
            <Fact name="Backend">
              {sandbox.backend}
              {sandbox.wall !== undefined && ` (${sandbox.wall})`}
            </Fact>
            <Fact name="Image">
              <code title={sandbox.image}>{sandbox.image.slice(0, 16)}</code>
            </Fact>
          </>
        )}
      </dl>
      {sandbox && <Protections protections={sandbox.protections} />}
    </section>
  );
}

/** How many protections are in force, and which are not. */
export function Protections({ protections }: { protections: Record<string, Protection> }) {
  const all = Object.entries(protections);
  const weak = all.filter(([, protection]) => protection.state !== "active");
  return (
    <>
      <dl>
        <Fact name="Protections">
          {all.length - weak.length} active{weak.length > 0 && `, ${weak.length} not`}
        </Fact>
      </dl>
      {weak.length > 0 && (
        <details>
          <summary>Protections that are not active</summary>
          <ul class="plain">
            {weak.map(([name, protection]) => (
              <li key={name}>
                <code>{name}</code>: {protection.state}
                {protection.reason !== undefined && `, ${plain(protection.reason)}`}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
