// What happened: actions newest first, one of them from request to outcome, and taking it back.

import { afterMoment, once } from "./at_end.js";
import { call, stream } from "./daemon.js";
import { facts, h, line, lines, put, say, when } from "./dom.js";
import { confirmed } from "./proof.js";

const AGAIN = 1000; // milliseconds until the list is looked at again
let wanted = {};
let view = 0; // grows with each filling of the list: what an earlier one left behind draws nothing any more
let list = null, top = 0; // as it was filled last, and how far it was scrolled when one of its actions was opened

// Returns how far the window is to be scrolled.
export async function show(place, id) {
  if (id) {
    if (list?.isConnected) top = scrollY;
    await story(place, id);
    return 0;
  }
  if (list) { // back from one of its actions
    put(place, list);
    return top;
  }
  const search = h("form", { role: "search", onsubmit: (event) => {
    event.preventDefault();
    wanted = { text: search.querySelector("input").value };
    load();
  } }, h("label", { for: "search" }, "Search what was asked for or became of it"), h("input", { id: "search", type: "search", value: wanted.text || "" }));
  const table = h("table", {}, h("thead", {}, h("tr", {}, ["When", "Who", "What", "Outcome", "Undo"].map((name) => h("th", { scope: "col" }, name)))), h("tbody"));
  const older = h("button", { type: "button", onclick: once(() => load(older.dataset.before)) }, "Older");
  const newer = h("button", { type: "button", onclick: once(async () => { await load(); title.focus({ preventScroll: true }); }) });
  const body = table.querySelector("tbody"), title = h("h2", { tabindex: "-1" }, "History");
  const made = h("div", {}, h("div", { class: "newer" }, title, h("p", { role: "status" }, newer)), search, table, h("p", { class: "buttons" }, older));
  const fill = async (before = "") => {
    const mine = before ? view : view += 1;
    const page = await call("Audit/Actions", { ...wanted, ...(before ? { before } : {}) });
    if (view !== mine) return;
    const rows = page.actions.map(row);
    before ? body.append(...rows) : put(body, rows);
    if (!body.children.length) body.append(h("tr", {}, h("td", { colspan: "5" }, "Nothing was found.")));
    older.dataset.before = page.before;
    older.hidden = page.before === "0" || !page.before;
    if (before) return;
    list = made;
    follow(mine, body, newer, page.actions, load);
  };
  const load = async (before) => {
    try { await fill(before); } catch (error) { say(error.text || error.message); }
  };
  await fill();
  put(place, made);
  return 0;
}

// From then on the list is filled anew when it is shown.
export function leave() {
  view += 1;
  list = null;
}

// Nothing that can be clicked moves by itself: what is new is put on top, and a row that needs another height is drawn
// anew, when the person says so; any other row changes where it stands.
async function follow(mine, body, newer, shown, load) {
  const known = new Map(shown.map((one) => [one.id, JSON.stringify(one)]));
  const added = new Set(), changed = new Set();
  for (;;) {
    newer.textContent = [[added.size, "new"], [changed.size, "changed"]].filter(([many]) => many).map(([many, how]) => `${many} ${how}`).join(", ");
    newer.disabled = !newer.textContent;
    await new Promise((resolve) => setTimeout(resolve, AGAIN));
    if (view !== mine) return;
    if (document.hidden || !body.isConnected) continue;
    let page;
    try {
      page = await call("Audit/Actions", wanted);
    } catch { continue; } // that the daemon is away is said below
    if (view !== mine) return;
    if (!known.size && page.actions.length) { load(); return; } // nothing that could move was found before
    for (const one of page.actions) {
      const now = JSON.stringify(one);
      if (now === known.get(one.id)) changed.delete(one.id);
      else if (!known.has(one.id)) added.add(one.id);
      else if (changesInPlace(body.querySelector(`tr[data-id="${CSS.escape(one.id)}"]`), row(one))) {
        known.set(one.id, now);
        changed.delete(one.id);
      } else changed.add(one.id);
    }
  }
}

// Whether the new row took the place of the old one, which moves nothing and is in no use; else its buttons are those
// of a state that it isn't in any more.
function changesInPlace(old, made) {
  if (old.contains(document.activeElement)) return false;
  const { height } = old.getBoundingClientRect();
  old.replaceWith(made);
  if (made.getBoundingClientRect().height === height) return true;
  made.replaceWith(old);
  for (const button of old.querySelectorAll("button")) button.disabled = true;
  return false;
}

const what = (one) => `${one.what || one.id || ""}${one.what_cut ? `… (${one.what_cut} more characters)` : ""}`;

function row(one) {
  return h("tr", { "data-id": one.id }, h("td", {}, when(one.created)), h("td", {}, one.agent === "person" ? "you" : one.agent),
    h("td", {}, h("a", { href: `#history/${one.id}` }, line(what(one)))), h("td", {}, line(`${one.state}${one.outcome ? `: ${one.outcome}` : ""}`)),
    h("td", {}, one.taken_back_by ? `taken back by ${one.taken_back_by}` : undoButtons(one)));
}

function undoButtons(one) {
  const made = [];
  if (one.can_undo) made.push(h("button", { type: "button", onclick: once(() => revert(one.id, "undo")) }, "Undo"));
  if (one.can_redo) made.push(h("button", { type: "button", onclick: once(() => revert(one.id, "redo")) }, "Redo"));
  if (one.held_until) made.push(h("button", { type: "button", onclick: once(() => revert(one.id, "commit")) }, "Keep"));
  return made.map(afterMoment);
}

// An undo is an action like any other: it may ask, and that question stands under Waiting. At the public page a passkey
// confirms it first.
async function revert(id, verb) {
  say(`${verb}: asked for.`);
  try {
    await confirmed(async () => {
      for await (const event of stream("Actions/Revert", { action_id: id, verb, detach: true })) {
        if (event.asking) { say("It waits for your answer."); location.hash = "waiting"; }
        if (event.finished) say(event.finished.problem ? `${event.finished.problem.message} ${event.finished.problem.next_step}` : `${verb}: done.`);
      }
    });
  } catch (error) { say(error.text || error.message); }
}

async function story(place, id) {
  const told = await call("Audit/Story", { id }), one = told.logged || {}, decided = one.decided || {};
  const steps = [
    [one.created, `${one.agent === "person" ? "You" : one.agent} asked${told.source ? ` (${told.source})` : ""}.`],
    [told.asked_at, "You were asked."],
    [decided.at, `${decided.verdict || "decided"} by ${decided.by}${decided.reason ? `: ${decided.reason}` : ""}`],
    ...(told.exchanges || []).map((each) => [each.at, `${each.method} ${each.host}${each.path} → ${each.refused || each.failed || each.status}`]),
    [one.updated, `${one.state}. ${one.outcome}`],
  ].filter(([at]) => at);
  put(place, h("p", {}, h("a", { href: "#history" }, "All of history")), h("h2", {}, line(what(one) || id)),
    facts([["State", one.state], ["Undo", one.taken_back_by ? `taken back by ${one.taken_back_by}` : one.undo_class], ["Risk", one.risk],
      ["Problem", told.problem ? [told.problem.message, told.problem.next_step, ...(told.problem.details || [])].filter(Boolean) : "", true], ["Id", id]]),
    h("p", { class: "buttons" }, undoButtons(one)),
    h("h3", {}, "What happened"), h("ol", { class: "list" }, steps.map(([at, text]) => h("li", {}, h("span", { class: "quiet" }, when(at)), line(text)))),
    told.action?.lines?.length ? [h("h3", {}, "The plan"), lines(told.action.lines, "The plan")] : "",
    told.action?.outcome_lines?.length ? [h("h3", {}, "The outcome"), lines(told.action.outcome_lines, "The outcome")] : "",
    (told.reverts || []).length ? [h("h3", {}, "Undo and redo of it"), h("ul", {}, told.reverts.map((each) => h("li", {}, h("a", { href: `#history/${each.id}` }, line(`${each.what} (${each.state})`)))))] : "",
    h("h3", {}, "What stands on it"), await standing(id));
}

async function standing(id) {
  try {
    const { steps } = await call("Actions/WayBack", { verb: "undo", action_id: id, everyone: true });
    const others = steps.filter((step) => step.action.id !== id);
    return others.length
      ? h("ul", {}, others.map((step) => h("li", {}, h("a", { href: `#history/${step.action.id}` }, line(step.what || step.action.id)), step.why && line(step.why))))
      : h("p", { class: "quiet" }, "Nothing that came later.");
  } catch (error) { return h("p", { class: "quiet" }, error.text || error.message); }
}
