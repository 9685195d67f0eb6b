/**
 * One call of a method. A value may be `{"$from": N, "path": "$.a.b"}`: from the answer to call N, from 0.
 * @typedef {{method: string, arguments?: Record<string, unknown>, account?: string}} CallOf
 * One line of a task. `arguments`: their bounds by name ({is}, {in}, {least, most}, {any}); left out: any, for reads
 * alone. `times`: how many calls; left out: any number, for reads alone.
 * @typedef {{method: string, arguments?: Record<string, object>, times?: number, account?: string}} AllowanceOf
 * @typedef {import("../proto/goex_pb.js").ExecuteRequest | import("../proto/goex_pb.js").RevertRequest} Request
 * @typedef {import("@bufbuild/protobuf").MessageInitShape<typeof ExecuteRequestSchema>["what"]} What
 */
/**
 * Where the daemon is: as named, or by GOEX_AGENT_SOCKET, or where it lies for this user.
 * @param {string} [socket]
 */
export function path(socket?: string): string;
/**
 * @param {string} [token]
 * @param {string} [session]
 */
export function headers(token?: string, session?: string): Headers;
/** @param {CallOf[]} wanted @param {string} [key] */
export function calls(wanted: CallOf[], key?: string): import("../proto/goex_pb.js").ExecuteRequest;
/** @param {string} words @param {string} [key] */
export function ask(words: string, key?: string): import("../proto/goex_pb.js").ExecuteRequest;
/**
 * @param {string} program
 * @param {{language?: string, folders?: string[], services?: string[], methods?: string[], key?: string,
 *   readOnly?: boolean}} of
 */
export function run(program: string, { language, folders, services, methods, key, readOnly }: {
    language?: string;
    folders?: string[];
    services?: string[];
    methods?: string[];
    key?: string;
    readOnly?: boolean;
}): import("../proto/goex_pb.js").ExecuteRequest;
/** @param {string} database @param {string} statements @param {string} [policy] @param {string} [key] */
export function sql(database: string, statements: string, policy?: string, key?: string): import("../proto/goex_pb.js").ExecuteRequest;
/**
 * @param {string} title
 * @param {AllowanceOf[]} wanted
 * @param {{minutes?: number, key?: string}} [of]
 */
export function task(title: string, wanted: AllowanceOf[], { minutes, key }?: {
    minutes?: number;
    key?: string;
}): import("../proto/goex_pb.js").ExecuteRequest;
/** @param {CallOf[] | string | {action: string}} wanted @param {string} [verb] */
export function preview(wanted: CallOf[] | string | {
    action: string;
}, verb?: string): import("../proto/goex_pb.js").PreviewRequest;
/** @param {string | {action: string}} action */
export function idOf(action: string | {
    action: string;
}): string;
/** @param {string} action @param {string} verb @param {string} [key] */
export function revert(action: string, verb: string, key?: string): import("../proto/goex_pb.js").RevertRequest;
/**
 * One line of a task. `arguments`: their bounds by name ({is}, {in}, {least, most}, {any}); left out: any, for reads
 * alone. `times`: how many calls; left out: any number, for reads alone.
 */
export type CallOf = {
    method: string;
    arguments?: Record<string, unknown>;
    account?: string;
};
/**
 * One call of a method. A value may be `{"$from": N, "path": "$.a.b"}`: from the answer to call N, from 0.
 */
export type AllowanceOf = {
    method: string;
    arguments?: Record<string, object>;
    times?: number;
    account?: string;
};
/**
 * One call of a method. A value may be `{"$from": N, "path": "$.a.b"}`: from the answer to call N, from 0.
 */
export type Request = import("../proto/goex_pb.js").ExecuteRequest | import("../proto/goex_pb.js").RevertRequest;
/**
 * One call of a method. A value may be `{"$from": N, "path": "$.a.b"}`: from the answer to call N, from 0.
 */
export type What = import("@bufbuild/protobuf").MessageInitShape<typeof ExecuteRequestSchema>["what"];
import { ExecuteRequestSchema } from "../proto/goex_pb.js";
