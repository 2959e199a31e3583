/** The panels of the console. A new one is one more line here. */

import type { FunctionComponent } from "preact";
import { Artifacts } from "./panels/artifacts";
import { Playground } from "./panels/playground";
import { Server } from "./panels/server";
import { Sessions } from "./panels/sessions";

export interface Panel {
  id: string;
  title: string;
  /** Gets what the address says after the panel's name. */
  view: FunctionComponent<{ detail: string }>;
}

export const panels: Panel[] = [
  { id: "playground", title: "Playground", view: Playground },
  { id: "sessions", title: "Sessions", view: Sessions },
  { id: "artifacts", title: "Artifacts", view: Artifacts },
  { id: "server", title: "Server", view: Server },
];
