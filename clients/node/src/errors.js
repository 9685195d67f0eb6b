/** One root for what can go wrong; each says who can do what next. */

import { Code, ConnectError, decodeBinaryHeader } from "@connectrpc/connect";

import { ProblemSchema } from "../proto/goex_pb.js";

const PROBLEM_KEY = "goex-problem-bin";
const NOBODY_THERE = ["ENOENT", "ECONNREFUSED", "EACCES", "ENOTSOCK"];

/** `retry`: "no", "changed" (another request may do) or "later"; `who` can do `next`: "agent" or "person". */
export class GoexError extends Error {
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
  /** @param {unknown} cause */
  constructor(cause) {
    const next = "Start it with: goex daemon start";
    super("The daemon can't be reached.", { code: "daemon", next, retry: "later", who: "person", cause });
  }
}

/** The time to wait is over: what nobody had answered was withdrawn. */
export class TimedOut extends GoexError {
  constructor() {
    super("The time to wait is over; what nobody had answered was withdrawn.", {
      code: "timed-out",
      next: "Look at the latest actions before you ask again.",
      retry: "later",
      who: "agent",
    });
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
  }
}

/**
 * A failed call as one of these; the reason of the signal where the caller itself ended it.
 * @param {unknown} error
 * @param {AbortSignal} [signal] the caller's
 * @returns {unknown}
 */
export function translated(error, signal) {
  if (signal?.aborted) return signal.reason;
  if (!(error instanceof ConnectError)) return error;
  const problem = error.metadata.get(PROBLEM_KEY);
  if (problem !== null) return new Refused(decodeBinaryHeader(problem, ProblemSchema));
  if (error.code === Code.DeadlineExceeded) return new TimedOut();
  if (error.code === Code.Unavailable || causes(error).some((code) => NOBODY_THERE.includes(code)))
    return new NotRunning(error);
  return new GoexError(`The daemon failed (${Code[error.code]}): ${error.rawMessage}`, { cause: error });
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
