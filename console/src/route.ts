/** Where in the console one is: `#/panel/detail`. */

import { signal } from "@preact/signals";

export interface Route {
  panel: string;
  detail: string;
}

function read(): Route {
  const [panel = "", detail = ""] = location.hash.replace(/^#\/?/, "").split("/");
  // What comes by an address is only ever an id.
  return { panel, detail: /^[A-Za-z0-9_-]*$/.test(detail) ? detail : "" };
}

export const route = signal(read());

addEventListener("hashchange", () => {
  route.value = read();
});

export function go(panel: string, detail = "") {
  location.hash = `#/${panel}${detail && `/${detail}`}`;
}
