// What happened: actions newest first, one of them from request to outcome, and taking it back.

import { call, stream } from "./daemon.js";
import { facts, h, line, lines, put, say, when } from "./dom.js";
import { confirmed } from "./proof.js";

const AGAIN = 1000; // milliseconds until the list is looked at again
let wanted = {};
let view = 0; // grows with each drawing: what an earlier one left behind draws nothing any more

export async function show(place, id) {
  view += 1;
  if (id) return story(place, id);
  const search = h("form", { role: "search", onsubmit: (event) => {
    event.preventDefault();
    wanted = { text: search.querySelector("input").value };
    load();
  } }, h("label", { for: "search" }, "Search what was asked for or became of it"), h("input", { id: "search", type: "search", value: wanted.text || "" }));
  const table = h("table", {}, h("thead", {}, h("tr", {}, ["When", "Who", "What", "Outcome", "Undo"].map((name) => h("th", { scope: "col" }, name)))), h("tbody"));
  const older = h("button", { type: "button", onclick: () => load(older.dataset.before) }, "Older");
  const body = table.querySelector("tbody");
  const load = async (before = "") => {
    if (!before) view += 1;
    const page = await call("Audit/Actions", { ...wanted, ...(before ? { before } : {}) });
    const rows = page.actions.map(row);
    before ? body.append(...rows) : put(body, rows);
    if (!before) follow(view, body, page.actions);
    if (!body.children.length) body.append(h("tr", {}, h("td", { colspan: "5" }, "Nothing was found.")));
    older.dataset.before = page.before;
    older.hidden = page.before === "0" || !page.before;
  };
  put(place, h("h2", {}, "History"), search, table, h("p", { class: "buttons" }, older));
  await load();
}

// A row is drawn anew when its action has changed, and a new action comes on top, for as long as the list is shown.
async function follow(mine, body, shown) {
  const known = new Map(shown.map((one) => [one.id, JSON.stringify(one)]));
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, AGAIN));
    if (view !== mine || !body.isConnected) return;
    if (document.hidden) continue;
    let page;
    try {
      page = await call("Audit/Actions", wanted);
    } catch { continue; } // that the daemon is away is said at the top
    if (view !== mine) return;
    for (const one of page.actions.toReversed()) {
      const now = JSON.stringify(one), had = known.get(one.id);
      if (now === had) continue;
      known.set(one.id, now);
      body.querySelector("td[colspan]")?.parentElement.remove();
      const old = body.querySelector(`tr[data-id="${CSS.escape(one.id)}"]`);
      old ? old.replaceWith(row(one)) : body.prepend(row(one));
    }
  }
}

const what = (one) => `${one.what || one.id || ""}${one.what_cut ? `… (${one.what_cut} more characters)` : ""}`;

function row(one) {
  return h("tr", { "data-id": one.id }, h("td", {}, when(one.created)), h("td", {}, one.agent === "person" ? "you" : one.agent),
    h("td", {}, h("a", { href: `#history/${one.id}` }, line(what(one)))), h("td", {}, line(`${one.state}${one.outcome ? `: ${one.outcome}` : ""}`)),
    h("td", {}, one.taken_back_by ? `taken back by ${one.taken_back_by}` : undoButtons(one)));
}

function undoButtons(one) {
  const made = [];
  if (one.can_undo) made.push(h("button", { type: "button", onclick: () => revert(one.id, "undo") }, "Undo"));
  if (one.can_redo) made.push(h("button", { type: "button", onclick: () => revert(one.id, "redo") }, "Redo"));
  if (one.held_until) made.push(h("button", { type: "button", onclick: () => revert(one.id, "commit") }, "Keep"));
  return made;
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
