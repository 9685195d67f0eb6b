/**
 * Of one request. `key`: the same key and request are the same action. `timeoutMs`, `signal`: end the wait; what
 * nobody has answered by then is withdrawn.
 * @typedef {{key?: string, timeoutMs?: number, signal?: AbortSignal}} Options
 */
export class Client {
    /**
     * An agent's connection. `session`: what its session is called, where it has a token; else it is the connection.
     * `told` hears every event of what is under way. `maxBytes`: of one answer; `result` reads the rest of one that is
     * `cut` or has a `nextOffset`.
     * @param {{token?: string, session?: string, socket?: string, maxBytes?: number,
     *   told?: (event: import("../proto/goex_pb.js").Event) => void}} [of]
     */
    constructor({ token, session, socket, maxBytes, told }?: {
        token?: string;
        session?: string;
        socket?: string;
        maxBytes?: number;
        told?: (event: import("../proto/goex_pb.js").Event) => void;
    });
    /** End the connection, and withdraw what nobody has answered. */
    close(): void;
    /**
     * Call one method of a connected service, and wait. Throws NotDone, Refused.
     * @param {string} method
     * @param {Record<string, unknown>} [given] its arguments
     * @param {Options & {account?: string}} [options]
     */
    call(method: string, given?: Record<string, unknown>, options?: Options & {
        account?: string;
    }): Promise<Result>;
    /**
     * Call several, in order, as one action.
     * @param {import("./requests.js").CallOf[]} wanted
     * @param {Options} [options]
     */
    calls(wanted: import("./requests.js").CallOf[], options?: Options): Promise<Result>;
    /**
     * Ask for something in words.
     * @param {string} words
     * @param {Options} [options]
     */
    ask(words: string, options?: Options): Promise<Result>;
    /**
     * Run a program in a container, on folders or with services.
     * @param {string} program
     * @param {Options & {language?: "shell" | "python", folders?: string[], services?: string[], methods?: string[],
     *   readOnly?: boolean}} [options]
     */
    run(program: string, options?: Options & {
        language?: "shell" | "python";
        folders?: string[];
        services?: string[];
        methods?: string[];
        readOnly?: boolean;
    }): Promise<Result>;
    /**
     * Run statements on a database, in one transaction.
     * @param {string} database
     * @param {string} statements
     * @param {Options & {policy?: string}} [options]
     */
    sql(database: string, statements: string, options?: Options & {
        policy?: string;
    }): Promise<Result>;
    /**
     * Propose what this client may then do without being asked again; resolves when the person has answered.
     * @param {string} title
     * @param {import("./requests.js").AllowanceOf[]} allows
     * @param {Options & {minutes?: number}} [options]
     */
    task(title: string, allows: import("./requests.js").AllowanceOf[], options?: Options & {
        minutes?: number;
    }): Promise<Result>;
    /** @param {Result | string} action @param {Options} [options] */
    undo(action: Result | string, options?: Options): Promise<Result>;
    /** @param {Result | string} action @param {Options} [options] */
    redo(action: Result | string, options?: Options): Promise<Result>;
    /** Keep it for good. @param {Result | string} action @param {Options} [options] */
    commit(action: Result | string, options?: Options): Promise<Result>;
    /**
     * What is connected, or the methods that fit.
     * @param {{query?: string, service?: string, method?: string}} [wanted]
     */
    find(wanted?: {
        query?: string;
        service?: string;
        method?: string;
    }): Promise<import("../proto/goex_pb.js").FindReply>;
    /**
     * How an action stands, with its answer if it has one.
     * @param {string} action
     */
    get(action: string): Promise<Result>;
    /**
     * A part of an action's answer: by a path like `$.stdout`, by fields of its objects, from an offset.
     * @param {Result | string} action
     * @param {{path?: string, fields?: string[], offset?: number, limit?: number, maxBytes?: number}} [part]
     */
    result(action: Result | string, { path, fields, offset, limit, maxBytes }?: {
        path?: string;
        fields?: string[];
        offset?: number;
        limit?: number;
        maxBytes?: number;
    }): Promise<Result>;
    /**
     * What calls, or an action of calls, would send; with a verb: what undoing it would. Nothing is sent, and nobody is
     * asked. Not for programs and SQL, whose dry run is the person's. Throws Refused.
     * @param {import("./requests.js").CallOf[] | Result | string} wanted
     * @param {"undo" | "redo" | "commit"} [verb]
     */
    preview(wanted: import("./requests.js").CallOf[] | Result | string, verb?: "undo" | "redo" | "commit"): Promise<import("../proto/goex_pb.js").DryRunReply>;
    /** @param {string} action */
    cancel(action: string): Promise<Result>;
    /** The latest ones. @param {number} [limit] */
    actions(limit?: number): Promise<Result[]>;
    /**
     * The events of a request until it has ended. Leaving the loop withdraws what nobody has answered.
     * @param {import("./requests.js").Request} request
     * @param {Options} [options]
     * @returns {AsyncGenerator<import("../proto/goex_pb.js").Event, void, undefined>}
     */
    start(request: import("./requests.js").Request, { signal, timeoutMs }?: Options): AsyncGenerator<import("../proto/goex_pb.js").Event, void, undefined>;
    /**
     * The end of a request. Throws NotDone, Refused, TimedOut.
     * @param {import("./requests.js").Request} request
     * @param {Options} [options]
     */
    wait(request: import("./requests.js").Request, options?: Options): Promise<Result>;
    #private;
}
/**
 * Of one request. `key`: the same key and request are the same action. `timeoutMs`, `signal`: end the wait; what
 * nobody has answered by then is withdrawn.
 */
export type Options = {
    key?: string;
    timeoutMs?: number;
    signal?: AbortSignal;
};
import { Result } from "./results.js";
