/**
 * A failed call as one of these; the reason of the signal where the caller itself ended it.
 * @param {unknown} error
 * @param {AbortSignal} [signal] the caller's
 * @returns {unknown}
 */
export function translated(error: unknown, signal?: AbortSignal): unknown;
/** `retry`: "no", "changed" (another request may do) or "later"; `who` can do `next`: "agent" or "person". */
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
    code: string;
    next: string;
    retry: string;
    who: string;
}
/** The daemon can't be reached. */
export class NotRunning extends GoexError {
    /** @param {unknown} cause */
    constructor(cause: unknown);
}
/** The time to wait is over: what nobody had answered was withdrawn. */
export class TimedOut extends GoexError {
    constructor();
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
