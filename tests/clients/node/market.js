// A server of tools: aimock's, with two series by day and a tool that fails.

import { MCPMock } from "@copilotkit/aimock";

const DAYS = 90;

/** A series of numbers by day. */
function series(key) {
  const two = (number) => String(number).padStart(2, "0");
  return Array.from({ length: DAYS }, (_, day) => ({
    date: `2026-${two(1 + Math.floor(day / 28))}-${two(1 + (day % 28))}`,
    [key]: 100 + ((day * 3) % 17),
  }));
}

export const PRICES = series("close");
export const FLOWS = series("net_flow");

const SYMBOL = { type: "object", properties: { symbol: { type: "string" } }, required: ["symbol"] };

/** The server, which is mounted beside the model. */
export function market() {
  const server = new MCPMock({ serverInfo: { name: "market", version: "1" } });
  const offer = (name, description, give) =>
    server.addTool({ name, description, inputSchema: SYMBOL }).onToolCall(name, give);
  offer("get_price_history", "Closing prices by day.", () => JSON.stringify(PRICES));
  offer("get_net_flow", "Net flow by day.", () => JSON.stringify(FLOWS));
  offer("get_balances", "Balances by day.", ({ symbol }) => {
    throw new Error(`nobody tells the balances of ${symbol}`);
  });
  return server;
}
