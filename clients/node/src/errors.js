/** One root for what can go wrong; each says who can do what next. */

import { Code, ConnectError, decodeBinaryHeader } from "@connectrpc/connect";

import { ProblemSchema } from "../proto/goex_pb.js";

const PROBLEM_KEY = "goex-problem-bin";
const UNKNOWN = 9; // the exit status of a problem that says itself that it can't be known
// The codes of problems that may come before a request was read: none says whether its key was used before.
const UNNAMED = "unauthenticated";
const CROWDED = "crowded";
const UNREAD = [CROWDED, "sealed", UNNAMED];
const AGAIN = "Send it again on this connection, with the same key.";
const TOO_LARGE = "SERVER: Received message larger"; // gRPC's words for a request that it doesn't take
const NOBODY_THERE = ["ENOENT", "ECONNREFUSED", "EACCES", "ENOTSOCK"];
const GONE = [...NOBODY_THERE, "ECONNRESET", "EPIPE"];

/**
 * `retry`: "no", "changed" (another request may do) or "later"; `who` can do `next`: "agent" or "person". `changed` is
 * "unknown" where a request may have been taken, and its end wasn't told; `action` is its id then, if one came.
 */
export class GoexError extends Error {
  changed = "no";
  action = "";

  /**
   * @param {string} message
   * @param {{code?: string, next?: string, retry?: string, who?: string, cause?: unknown}} [facts]
   */
  constructor(message, { code = "error", next = "", retry = "no", who = "", cause } = {}) {
    super(`${message} ${next}`.trimEnd(), { cause });
    this.name = new.target.name;
    this.code = code;
    this.next = next;
    this.retry = retry;
    this.who = who;
  }
}

/** The daemon can't be reached. */
export class NotRunning extends GoexError {
  /**
   * @param {unknown} cause
   * @param {{message?: string, next?: string, retry?: string}} [facts]
   */
  constructor(cause, { message = "The daemon can't be reached.", next, retry = "later" } = {}) {
    super(message, { code: "daemon", next: next ?? "Start it with: goex daemon start", retry, who: "person", cause });
  }
}

/** The time to wait is over: what nobody had answered was withdrawn. What runs already goes on. */
export class TimedOut extends GoexError {
  /** @param {string} [message] @param {string} [next] */
  constructor(message = "The daemon took too long to answer.", next = "Ask again.") {
    super(message, { code: "timed-out", next, retry: "later", who: "agent" });
  }
}

/** The request wasn't taken: nothing was begun. */
export class Refused extends GoexError {
  /** @param {import("../proto/goex_pb.js").Problem} problem */
  constructor(problem) {
    const { code, retry, who } = problem;
    super(problem.message, { code, next: problem.nextStep, retry, who });
    this.details = problem.details;
  }
}

/** The action didn't end well; `result` says how it did. */
export class NotDone extends GoexError {
  /** @param {import("./results.js").Result} result */
  constructor(result) {
    const { status, summary, next, retry, who } = result;
    super(`${status}: ${summary}`, { code: status, next, retry, who });
    this.result = result;
    this.changed = result.changed;
    this.action = result.action;
  }
}

/**
 * A failed call of a look as one of these.
 * @param {unknown} error
 * @returns {unknown}
 */
export function translated(error) {
  if (!(error instanceof ConnectError)) return error;
  const problem = problemOf(error);
  if (problem !== undefined) return new Refused(problem);
  if (error.code === Code.DeadlineExceeded) return new TimedOut();
  if (isGone(error)) return new NotRunning(error);
  if (error.code === Code.ResourceExhausted) {
    const said = `The request or its answer is too large: ${error.rawMessage}.`;
    return new GoexError(said, { next: "Ask for less at once.", retry: "changed", who: "agent", cause: error });
  }
  return new GoexError(`The daemon failed (${Code[error.code]}): ${error.rawMessage}`, { cause: error });
}

/**
 * A request whose stream failed; the reason of the signal where the caller itself ended it.
 * @param {unknown} error
 * @param {string} action what it had become; "" where nothing was heard of it
 * @param {{token: boolean, signal?: AbortSignal, key?: string}} of `token`: it was sent with one; `signal`: the
 *   caller's; `key`: its own, with which it may have been sent before
 * @returns {unknown}
 */
export function left(error, action, { token, signal, key = "" }) {
  if (signal?.aborted) return signal.reason;
  if (!(error instanceof ConnectError)) return error;
  const problem = problemOf(error);
  const taken =
    problem !== undefined
      ? problem.exitStatus === UNKNOWN || (key !== "" && UNREAD.includes(problem.code))
      : !error.rawMessage.includes(TOO_LARGE) && (key !== "" || !unread(error));
  if (!action && !taken) return translated(error);
  // A key is its agent's: of one without a name, or that was removed since, it would begin another action.
  const named = token && problem?.code !== UNNAMED;
  const look = lookFor(action, named);
  let made = translated(error);
  if (problem !== undefined && problem.code === CROWDED && !action && !named) {
    // The connection is there, and a key of one without a name lasts as long.
    made = new GoexError(problem.message, { code: CROWDED, next: AGAIN, who: "agent", cause: error });
  } else if (problem !== undefined) {
    const { message, code } = problem;
    const next = `${look}. ${problem.nextStep}`.trimEnd();
    const who = problem.who || (action || named ? "agent" : "person");
    made = new GoexError(message, { code, next, who, cause: error });
  } else if (made instanceof NotRunning || error.code === Code.Canceled) {
    // Node's HTTP/2 says of a connection that broke that its streams were cancelled.
    const next = `${look} when the daemon is back; don't send it anew.`;
    const message = unread(error) ? undefined : "The connection to the daemon ended meanwhile.";
    made = new NotRunning(error, { message, next, retry: "no" });
  } else if (made instanceof TimedOut) {
    const message = "The time to wait is over; what nobody had answered was withdrawn.";
    made = new TimedOut(message, `${look} before you ask again.`);
  }
  return Object.assign(/** @type {GoexError} */ (made), { changed: "unknown", action });
}

/**
 * A request whose stream ended without its end.
 * @param {string} action
 * @param {boolean} token it was sent with one
 */
export function untold(action, token) {
  const next = `${lookFor(action, token)}.`;
  const made = new GoexError("The daemon ended the request without saying how.", { next, who: "agent" });
  return Object.assign(made, { changed: "unknown", action });
}

/** @param {string} action @param {boolean} named */
function lookFor(action, named) {
  if (action) return `See how ${action} stands`;
  return named ? "Look at the latest actions, or send it with the same key" : "Ask the person what was begun";
}

/** @param {ConnectError} error */
function problemOf(error) {
  const value = error.metadata.get(PROBLEM_KEY);
  return value === null ? undefined : decodeBinaryHeader(value, ProblemSchema);
}

/** @param {ConnectError} error */
function unread(error) {
  return error.code === Code.Unimplemented || causes(error).some((code) => NOBODY_THERE.includes(code));
}

/** @param {ConnectError} error */
function isGone(error) {
  const why = causes(error);
  return error.code === Code.Unavailable || GONE.some((code) => why.includes(code));
}

/**
 * @param {unknown} error
 * @returns {string[]} the codes of Node in what led to an error
 */
function causes(error) {
  const found = [];
  for (let each = error; each instanceof Error && found.length < 10; each = each.cause)
    found.push("code" in each ? String(each.code) : "");
  return found;
}
