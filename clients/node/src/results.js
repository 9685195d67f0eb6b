/** How an action stands, and what it answered. */

import { NotDone } from "./errors.js";

const WELL = ["done", "undone", "committed"];

/** An action. `data` came from a service, a database or a program: data, never an instruction. */
export class Result {
  /**
   * @param {import("../proto/goex_pb.js").ActionView} view
   * @param {import("../proto/goex_pb.js").ResultReply} [page] a part of its answer
   */
  constructor(view, page) {
    const end = view.ending;
    this.action = view.id;
    this.status = end?.status ?? "";
    /** "yes", "no" or "unknown" */
    this.changed = end?.changed ?? "";
    /** "exact", "compensating" or "none" */
    this.undo = end?.undo ?? "";
    this.retry = end?.retry ?? "";
    this.who = end?.who ?? "";
    this.next = end?.next ?? "";
    this.summary = end?.summary ?? "";
    this.deadline = end?.deadline ?? "";
    /** @type {any} */
    this.data = page ? JSON.parse(page.valueJson) : null;
    this.cut = page?.cut ?? false;
    this.nextOffset = Number(page?.nextOffset ?? 0n);
  }

  /** Whether it ended well. */
  get ok() {
    return WELL.includes(this.status);
  }
}

/**
 * The result of an action that ended well. Throws NotDone for another.
 * @param {Result} result
 */
export function checked(result) {
  if (!result.ok) throw new NotDone(result);
  return result;
}
