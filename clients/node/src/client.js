/** The client. One connection is one session, and leaving a request withdraws what nobody has answered. */

import { connect } from "node:net";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { GoexError, left, translated, untold } from "./errors.js";
import { Actions } from "../proto/goex_pb.js";
import * as requests from "./requests.js";
import { Result, checked } from "./results.js";

const MAX_BYTES = 6400; // of an answer: with what stands around it, below 2,000 tokens
const UNARY_MS = 60_000;
const HOST = "http://localhost"; // as HTTP/2 wants one; the socket decides who is there

/**
 * Of one request. `key`: the same key and request are the same action. `timeoutMs`, `signal`: end the wait; what
 * nobody has answered by then is withdrawn.
 * @typedef {{key?: string, timeoutMs?: number, signal?: AbortSignal}} Options
 */

export class Client {
  #token;
  #session;
  #told;
  #maxBytes;
  #connection;
  #actions;

  /**
   * An agent's connection. `session`: what its session is called, where it has a token; else it is the connection.
   * `told` hears every event of what is under way. `maxBytes`: of one answer; `result` reads the rest of one that is
   * `cut` or has a `nextOffset`.
   * @param {{token?: string, session?: string, socket?: string, maxBytes?: number,
   *   told?: (event: import("../proto/goex_pb.js").Event) => void}} [of]
   */
  constructor({ token, session, socket, maxBytes = MAX_BYTES, told = () => {} } = {}) {
    const path = requests.path(socket);
    this.#token = token;
    this.#session = session;
    this.#told = told;
    this.#maxBytes = maxBytes;
    this.#connection = new Http2SessionManager(HOST, {}, { createConnection: () => connect({ path }) });
    const transport = createGrpcTransport({ baseUrl: HOST, sessionManager: this.#connection });
    this.#actions = createClient(Actions, transport);
  }

  /** End the connection, and withdraw what nobody has answered. */
  close() {
    this.#connection.abort();
  }

  /**
   * Call one method of a connected service, and wait. Throws NotDone, Refused.
   * @param {string} method
   * @param {Record<string, unknown>} [given] its arguments
   * @param {Options & {account?: string}} [options]
   */
  call(method, given = {}, options = {}) {
    return this.calls([{ method, arguments: given, account: options.account }], options);
  }

  /**
   * Call several, in order, as one action.
   * @param {import("./requests.js").CallOf[]} wanted
   * @param {Options} [options]
   */
  calls(wanted, options = {}) {
    return this.wait(requests.calls(wanted, options.key), options);
  }

  /**
   * Ask for something in words.
   * @param {string} words
   * @param {Options} [options]
   */
  ask(words, options = {}) {
    return this.wait(requests.ask(words, options.key), options);
  }

  /**
   * Run a program in a container, on folders or with services.
   * @param {string} program
   * @param {Options & {language?: "shell" | "python", folders?: string[], services?: string[], methods?: string[],
   *   readOnly?: boolean}} [options]
   */
  run(program, options = {}) {
    return this.wait(requests.run(program, options), options);
  }

  /**
   * Run statements on a database, in one transaction.
   * @param {string} database
   * @param {string} statements
   * @param {Options & {policy?: string}} [options]
   */
  sql(database, statements, options = {}) {
    return this.wait(requests.sql(database, statements, options.policy, options.key), options);
  }

  /**
   * Propose what this client may then do without being asked again; resolves when the person has answered.
   * @param {string} title
   * @param {import("./requests.js").AllowanceOf[]} allows
   * @param {Options & {minutes?: number}} [options]
   */
  task(title, allows, options = {}) {
    return this.wait(requests.task(title, allows, options), options);
  }

  /** @param {Result | string} action @param {Options} [options] */
  undo(action, options) {
    return this.#revert(action, "undo", options);
  }

  /** @param {Result | string} action @param {Options} [options] */
  redo(action, options) {
    return this.#revert(action, "redo", options);
  }

  /** Keep it for good. @param {Result | string} action @param {Options} [options] */
  commit(action, options) {
    return this.#revert(action, "commit", options);
  }

  /**
   * What is connected, or the methods that fit.
   * @param {{query?: string, service?: string, method?: string}} [wanted]
   */
  find(wanted = {}) {
    return told(this.#actions.find(wanted, this.#options()));
  }

  /**
   * How an action stands, with its answer if it has one.
   * @param {string} action
   */
  async get(action) {
    return this.#withAnswer(await told(this.#actions.get({ id: action }, this.#options())));
  }

  /**
   * A part of an action's answer: by a path like `$.stdout`, by fields of its objects, from an offset.
   * @param {Result | string} action
   * @param {{path?: string, fields?: string[], offset?: number, limit?: number, maxBytes?: number}} [part]
   */
  async result(action, { path, fields, offset = 0, limit, maxBytes = this.#maxBytes } = {}) {
    const id = requests.idOf(action);
    const view = await told(this.#actions.get({ id }, this.#options()));
    const asked = { id, path, fields, offset: BigInt(offset), limit, maxBytes };
    return new Result(view, await told(this.#actions.result(asked, this.#options())));
  }

  /**
   * What calls, or an action of calls, would send; with a verb: what undoing it would. Nothing is sent, and nobody is
   * asked. Not for programs and SQL, whose dry run is the person's. Throws Refused.
   * @param {import("./requests.js").CallOf[] | Result | string} wanted
   * @param {"undo" | "redo" | "commit"} [verb]
   */
  preview(wanted, verb) {
    return told(this.#actions.preview(requests.preview(wanted, verb), this.#options()));
  }

  /** @param {string} action */
  async cancel(action) {
    return new Result(await told(this.#actions.cancel({ id: action }, this.#options())));
  }

  /** The latest ones. @param {number} [limit] */
  async actions(limit = 10) {
    const reply = await told(this.#actions.list({ limit, brief: true }, this.#options()));
    return reply.actions.map((view) => new Result(view));
  }

  /**
   * The events of a request until it has ended. Leaving the loop withdraws what nobody has answered.
   * @param {import("./requests.js").Request} request
   * @param {Options} [options]
   * @returns {AsyncGenerator<import("../proto/goex_pb.js").Event, void, undefined>}
   */
  async *start(request, { signal, timeoutMs } = {}) {
    const leaving = new AbortController();
    const any = signal ? AbortSignal.any([signal, leaving.signal]) : leaving.signal;
    const options = { headers: requests.headers(this.#token, this.#session), signal: any, timeoutMs };
    const reverts = request.$typeName === "goex.v1.RevertRequest";
    const events = reverts ? this.#actions.revert(request, options) : this.#actions.execute(request, options);
    let action = "";
    try {
      for await (const event of events) {
        action = event.actionId || action;
        yield event;
      }
    } catch (error) {
      throw left(error, action, { token: options.headers.has("authorization"), signal, key: request.key });
    } finally {
      leaving.abort();
    }
  }

  /**
   * The end of a request. Throws NotDone, Refused, TimedOut.
   * @param {import("./requests.js").Request} request
   * @param {Options} [options]
   */
  async wait(request, options = {}) {
    let action = "";
    for await (const event of this.start(request, options)) {
      this.#told(event);
      action = event.actionId || action;
      if (event.what.case === "finished" && event.what.value.action)
        return checked(await this.#ended(event.what.value.action));
    }
    throw untold(action, this.#options().headers.has("authorization"));
  }

  /** @param {Result | string} action @param {string} verb @param {Options} [options] */
  #revert(action, verb, options = {}) {
    return this.wait(requests.revert(requests.idOf(action), verb, options.key), options);
  }

  /**
   * It has ended, whether or not its answer can be read now.
   * @param {import("../proto/goex_pb.js").ActionView} view
   */
  async #ended(view) {
    try {
      return await this.#withAnswer(view);
    } catch (error) {
      if (!(error instanceof GoexError)) throw error;
      return Object.assign(new Result(view), { cut: true });
    }
  }

  /** @param {import("../proto/goex_pb.js").ActionView} view */
  async #withAnswer(view) {
    if (!view.outcomeJson) return new Result(view);
    const asked = { id: view.id, maxBytes: this.#maxBytes };
    return new Result(view, await told(this.#actions.result(asked, this.#options())));
  }

  #options() {
    return { headers: requests.headers(this.#token, this.#session), timeoutMs: UNARY_MS };
  }
}

/**
 * An answer, or why there is none.
 * @template T
 * @param {Promise<T>} reply
 * @returns {Promise<T>}
 */
async function told(reply) {
  try {
    return await reply;
  } catch (error) {
    throw translated(error);
  }
}
