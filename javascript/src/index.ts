/** A client for Cellblock: sandboxes for the code of AI agents. */
export * from "./client.js";
export * from "./errors.js";
export type * as api from "./generated.js";
export { Process, Terminal, type TerminalEnd } from "./process.js";
export * from "./results.js";
export { type CellOptions, type Content, Session, type SessionOptions, type StreamEvent, Try } from "./session.js";
