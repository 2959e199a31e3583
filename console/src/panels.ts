/** The panels of the console. A new one is one more line here. */

import type { FunctionComponent } from "preact";
import { Artifacts } from "./panels/artifacts";
import { Operations } from "./panels/operations";
import { Playground } from "./panels/playground";
import { Responses } from "./panels/responses";
import { Runs } from "./panels/runs";
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
  { id: "runs", title: "Runs", view: Runs },
  { id: "responses", title: "Responses", view: Responses },
  { id: "artifacts", title: "Artifacts", view: Artifacts },
  { id: "operations", title: "Operations", view: Operations },
];
