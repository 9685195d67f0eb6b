/**
 * A failed call of a look as one of these.
 * @param {unknown} error
 * @returns {unknown}
 */
export function translated(error: unknown): unknown;
/**
 * A request whose stream failed; the reason of the signal where the caller itself ended it.
 * @param {unknown} error
 * @param {string} action what it had become; "" where nothing was heard of it
 * @param {{token: boolean, signal?: AbortSignal, key?: string}} of `token`: it was sent with one; `signal`: the
 *   caller's; `key`: its own, with which it may have been sent before
 * @returns {unknown}
 */
export function left(error: unknown, action: string, { token, signal, key }: {
    token: boolean;
    signal?: AbortSignal;
    key?: string;
}): unknown;
/**
 * A request whose stream ended without its end.
 * @param {string} action
 * @param {boolean} token it was sent with one
 */
export function untold(action: string, token: boolean): GoexError & {
    changed: string;
    action: string;
};
/**
 * `retry`: "no", "changed" (another request may do) or "later"; `who` can do `next`: "agent" or "person". `changed` is
 * "unknown" where a request may have been taken, and its end wasn't told; `action` is its id then, if one came.
 */
export class GoexError extends Error {
    /**
     * @param {string} message
     * @param {{code?: string, next?: string, retry?: string, who?: string, cause?: unknown}} [facts]
     */
    constructor(message: string, { code, next, retry, who, cause }?: {
        code?: string;
        next?: string;
        retry?: string;
        who?: string;
        cause?: unknown;
    });
    changed: string;
    action: string;
    code: string;
    next: string;
    retry: string;
    who: string;
}
/** The daemon can't be reached. */
export class NotRunning extends GoexError {
    /**
     * @param {unknown} cause
     * @param {{message?: string, next?: string, retry?: string}} [facts]
     */
    constructor(cause: unknown, { message, next, retry }?: {
        message?: string;
        next?: string;
        retry?: string;
    });
}
/** The time to wait is over: what nobody had answered was withdrawn. What runs already goes on. */
export class TimedOut extends GoexError {
    /** @param {string} [message] @param {string} [next] */
    constructor(message?: string, next?: string);
}
/** The request wasn't taken: nothing was begun. */
export class Refused extends GoexError {
    /** @param {import("../proto/goex_pb.js").Problem} problem */
    constructor(problem: import("../proto/goex_pb.js").Problem);
    details: string[];
}
/** The action didn't end well; `result` says how it did. */
export class NotDone extends GoexError {
    /** @param {import("./results.js").Result} result */
    constructor(result: import("./results.js").Result);
    result: import("./results.js").Result;
}
