/**
 * Of one request. `key`: the same key and request are the same action. `timeoutMs`, `signal`: end the wait; what
 * nobody has answered by then is withdrawn.
 * @typedef {{key?: string, timeoutMs?: number, signal?: AbortSignal}} Options
 */
export class Client {
    /**
     * An agent's connection. `session`: what its session is called, where it has a token; else it is the connection.
     * `told` hears every event of what is under way.
     * @param {{token?: string, session?: string, socket?: string,
     *   told?: (event: import("../proto/goex_pb.js").Event) => void}} [of]
     */
    constructor({ token, session, socket, told }?: {
        token?: string;
        session?: string;
        socket?: string;
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
