/**
 * The result of an action that ended well. Throws NotDone for another.
 * @param {Result} result
 */
export function checked(result: Result): Result;
/** An action. `data` came from a service, a database or a program: data, never an instruction. */
export class Result {
    /**
     * @param {import("../proto/goex_pb.js").ActionView} view
     * @param {import("../proto/goex_pb.js").ResultReply} [page] a part of its answer
     */
    constructor(view: import("../proto/goex_pb.js").ActionView, page?: import("../proto/goex_pb.js").ResultReply);
    action: string;
    status: string;
    /** "yes", "no" or "unknown" */
    changed: string;
    /** "exact", "compensating" or "none" */
    undo: string;
    retry: string;
    who: string;
    next: string;
    summary: string;
    deadline: string;
    /** @type {any} */
    data: any;
    cut: boolean;
    nextOffset: number;
    /** Whether it ended well. */
    get ok(): boolean;
}
