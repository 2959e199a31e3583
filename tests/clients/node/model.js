// A model without a mind: aimock, which knows these answers by heart, speaks Chat Completions and Responses. Below `/mcp` it is a server of tools.
//
// Prints its address, and ends when its standard input does.

import { LLMock } from "@copilotkit/aimock";

import { market } from "./market.js";
import { SCRIPTS } from "./scripts.js";

// What the gateway says itself, in the name of the user, when a tool has made pictures.
const PICTURES = "Pictures that the tools made:";

/** The text of a message, whichever form it has. */
function text(message) {
  if (typeof message.content === "string") return message.content;
  return (message.content ?? []).map((part) => part.text ?? "").join("");
}

/** The result of a tool without the exit code, which a model reads and does not repeat. */
function result(message) {
  return text(message).replace(/\n+\[exit code\] \d+\s*$/, "");
}

/** What the user said last, and the results of tools since then. */
function turn(request) {
  const said = request.messages.findLastIndex(
    (message) => message.role === "user" && !text(message).startsWith(PICTURES),
  );
  const results = request.messages.slice(said + 1).filter((message) => message.role === "tool");
  return { said: said < 0 ? "" : text(request.messages[said]), results: results.map(result) };
}

const mock = new LLMock({ port: 0, chunkSize: 7, logLevel: "warn" });
for (const [said, steps] of Object.entries(SCRIPTS)) {
  for (const { after, answer, ...pace } of steps) {
    const fits = (request) => {
      const now = turn(request);
      return now.said.includes(said) && now.results.length === after;
    };
    const respond = (request) => {
      if (typeof answer !== "function") return answer;
      const names = (request.tools ?? []).map((tool) => tool.function?.name ?? tool.name);
      return answer(turn(request).results, request.messages.map(text), names);
    };
    mock.on({ predicate: fits }, respond, pace);
  }
}
mock.mount("/mcp", market());
console.log(await mock.start());
process.stdin.resume().on("end", () => mock.stop().then(() => process.exit(0)));
