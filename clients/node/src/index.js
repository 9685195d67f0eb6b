/** The client of GoEx for agents: it proposes, and a person decides. */

export { Client } from "./client.js";
export { GoexError, NotDone, NotRunning, Refused, TimedOut } from "./errors.js";
export * as requests from "./requests.js";
export { Result } from "./results.js";
/** @typedef {import("./client.js").Options} Options */
/** @typedef {import("./requests.js").CallOf} CallOf */
/** @typedef {import("../proto/goex_pb.js").Event} Event */
/** @typedef {import("../proto/goex_pb.js").FindReply} FindReply */
