export { Client } from "./client.js";
export * as requests from "./requests.js";
export { Result } from "./results.js";
export type Options = import("./client.js").Options;
export type CallOf = import("./requests.js").CallOf;
export type Event = import("../proto/goex_pb.js").Event;
export type FindReply = import("../proto/goex_pb.js").FindReply;
export { GoexError, NotDone, NotRunning, Refused, TimedOut } from "./errors.js";
