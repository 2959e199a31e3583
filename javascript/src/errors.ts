import type { Result } from "./results.js";

/** An error of Cellblock, of its server or of the connection to it. */
export class CellblockError extends Error {
  override name = "CellblockError";
}

/** A server that refused a request or failed. Its message says how to repair the request. */
export class ServerError extends CellblockError {
  override name = "ServerError";

  constructor(
    /** HTTP status. */
    readonly status: number,
    /** Kind of error, such as `session_not_found`. */
    readonly code: string | null,
    message: string,
    /** Seconds after which the request may succeed, if the server named them. */
    readonly retryAfter: number | null,
  ) {
    super(message);
  }
}

/** Code that raised, was interrupted, or exceeded a limit. */
export class CellError extends CellblockError {
  override name = "CellError";

  constructor(
    /** Everything that the code did before. */
    readonly result: Result,
  ) {
    super(result.describeError());
  }
}
