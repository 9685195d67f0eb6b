/** What can be asked for, as messages; and where the daemon is. */

import { homedir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";

import { ExecuteRequestSchema, PreviewRequestSchema, RevertRequestSchema } from "../proto/goex_pb.js";

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
export function path(socket) {
  const { GOEX_AGENT_SOCKET, XDG_RUNTIME_DIR, XDG_STATE_HOME } = process.env;
  const named = socket || GOEX_AGENT_SOCKET;
  if (named) return named;
  if (XDG_RUNTIME_DIR) return join(XDG_RUNTIME_DIR, "goex", "agent.sock");
  return join(XDG_STATE_HOME || join(homedir(), ".local", "state"), "goex", "run", "agent.sock");
}

/**
 * @param {string} [token]
 * @param {string} [session]
 */
export function headers(token = process.env.GOEX_AGENT_TOKEN, session = "") {
  const made = new Headers();
  if (token) made.set("authorization", `Bearer ${token}`);
  if (token && session) made.set("goex-session", session);
  return made;
}

/** @param {CallOf[]} wanted @param {string} [key] */
export function calls(wanted, key) {
  const made = wanted.map(({ method, arguments: given = {}, account = "" }) => {
    const [service = "", ...rest] = method.split(".");
    return { service, method: rest.join("."), argumentsJson: JSON.stringify(given), account };
  });
  return execute({ case: "calls", value: { calls: made } }, key);
}

/** @param {string} words @param {string} [key] */
export function ask(words, key) {
  return execute({ case: "intent", value: words }, key);
}

/**
 * @param {string} program
 * @param {{language?: string, folders?: string[], services?: string[], methods?: string[], key?: string,
 *   readOnly?: boolean}} of
 */
export function run(program, { language = "shell", folders = [], services = [], methods = [], key, readOnly }) {
  const [folder, ...more] = folders;
  const request = folder
    ? execute({ case: "files", value: { folder, language, program, more } }, key)
    : execute({ case: "code", value: { language, program, services, methods } }, key);
  request.readsOnly = readOnly ?? false;
  return request;
}

/** @param {string} database @param {string} statements @param {string} [policy] @param {string} [key] */
export function sql(database, statements, policy, key) {
  return execute({ case: "sql", value: { database, statements, policy } }, key);
}

/**
 * @param {string} title
 * @param {AllowanceOf[]} wanted
 * @param {{minutes?: number, key?: string}} [of]
 */
export function task(title, wanted, { minutes = 30, key } = {}) {
  const allows = wanted.map(({ method, arguments: bounds, times = 0, account = "" }) => {
    const [service = "", ...rest] = method.split(".");
    return { service, method: rest.join("."), argumentsJson: bounds ? JSON.stringify(bounds) : "", times, account };
  });
  return execute({ case: "task", value: { title, allows, seconds: minutes * 60 } }, key);
}

/** @param {CallOf[] | string | {action: string}} wanted @param {string} [verb] */
export function preview(wanted, verb) {
  if (Array.isArray(wanted)) return create(PreviewRequestSchema, { what: { case: "request", value: calls(wanted) } });
  const id = idOf(wanted);
  if (!verb) return create(PreviewRequestSchema, { what: { case: "actionId", value: id } });
  return create(PreviewRequestSchema, { what: { case: "revert", value: revert(id, verb) } });
}

/** @param {string | {action: string}} action */
export function idOf(action) {
  return typeof action === "string" ? action : action.action;
}

/** @param {string} action @param {string} verb @param {string} [key] */
export function revert(action, verb, key) {
  return create(RevertRequestSchema, { actionId: action, verb, key });
}

/** @param {What} what @param {string} [key] */
function execute(what, key) {
  return create(ExecuteRequestSchema, { what, key });
}
