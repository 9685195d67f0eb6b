// What waits for the person: a list that is live, and the one question that is open, whole.

import { afterMoment, allowAtEnd, once } from "./at_end.js";
import { call, Problem, stream } from "./daemon.js";
import { facts, h, line, lines, put, say, when } from "./dom.js";
import { onlyPasskeys, prove, sign } from "./proof.js";
import { narrowing } from "./task.js";

const waiting = new Map(); // id -> as a list shows it
const seen = new Map(); // id -> digest of what was on the screen to its end
const ticked = new Set();
const made = new WeakMap(); // one that waits -> its line of the list
const MOST_GONE = 100;
let order = []; // ids as the list has them: a new one comes last, one that is settled keeps its place
const nodes = new Map(); // id -> its line of the list
let open = "", listening = null, drawn = false, unlisted = 0, known = false;
let proving = null; // the question whose answer is being proven: {id, gone}
let tell = () => {};

const count = () => [...waiting.values()].reduce((sum, one) => sum + Math.max(one.count, 1), 0);
const who = (one) => (one.agent === "person" ? "you" : one.agent === "anonymous" ? "an agent without a name" : one.agent);

// Follows the daemon for as long as the page lives. `told(count, away)` hears how many wait.
export async function follow(told) {
  tell = told;
  for (;;) {
    listening = new AbortController();
    try {
      for await (const one of stream("Person/WatchApprovals", { brief: true, news: true }, listening.signal)) {
        one.id ? take(one) : await takeAll(); // what comes meanwhile is taken after all that waits
      }
      throw new Problem({ message: "The daemon ended the connection." });
    } catch (error) {
      tell(count(), error instanceof Problem ? error.text : "The daemon is away.");
      if (error.code === "session") return;
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

// All that waits, as one answer: each alone would take several times as long.
async function takeAll() {
  const { approvals, left_out } = await call("Person/Approvals", { brief: true });
  waiting.clear();
  for (const one of approvals) waiting.set(one.id, one);
  unlisted = left_out;
  known = true;
  // They may have been settled while the daemon was away.
  if (root && open && !waiting.has(open)) question(open);
  if (proving && !waiting.has(proving.id)) proving.gone.abort();
  changed();
}

function take(one) {
  if (one.state === "pending") waiting.set(one.id, one);
  else {
    waiting.delete(one.id);
    seen.delete(one.id);
    ticked.delete(one.id);
    if (one.id === open) settled(one);
    if (one.id === proving?.id) proving.gone.abort();
  }
  for (const id of one.same_as || []) {
    waiting.delete(id);
    if (order.includes(id) && !order.includes(one.id)) order[order.indexOf(id)] = one.id;
  }
  changed();
}

function changed() {
  tell(count(), "");
  if (drawn) return;
  drawn = true;
  // Many that come at once are drawn together.
  setTimeout(() => { drawn = false; draw(); }, Math.min(200, waiting.size / 5));
}

let root = null;
export function show(main, id = "") {
  open = id;
  order = [];
  nodes.clear();
  root = h("div", { class: "split" }, h("section", { "aria-label": "Waiting" }), h("section", { "aria-label": "The question", "aria-live": "off" }));
  put(main, root);
  draw();
  if (id) question(id);
}
export function hide() { root = null; }

const ordered = () => [...waiting.values()].sort((a, b) => (a.place || 1e9) - (b.place || 1e9));

function draw() {
  if (!root) return;
  const part = root.firstChild;
  if (!waiting.size) {
    order = [];
    nodes.clear();
    put(part, h("p", {}, known ? "Nothing waits for you." : "Looking for what waits…"));
    return;
  }
  const there = new Set(order);
  order.push(...ordered().map((one) => one.id).filter((id) => !there.has(id)));
  while (!waiting.has(order.at(-1))) order.pop();
  if (order.length > waiting.size + MOST_GONE) order = order.filter((id) => waiting.has(id));
  if (!part.querySelector("ol")) put(part, h("p", { class: "quiet" }), h("ol", { class: "list scroll" }), h("p", { class: "buttons" }));
  const [words, list, buttons] = part.children, { localName: had, dataset: { id: of } } = document.activeElement;
  put(words, `${count()} ${count() === 1 ? "waits" : "wait"} for you.${unlisted ? ` ${unlisted} more are listed once some of these are answered and the page is loaded anew.` : ""}`);
  arrange(list, order.map((id) => (waiting.has(id) ? item(waiting.get(id)) : gone(id))).filter(Boolean));
  if (of) list.querySelector(`${had}[data-id="${CSS.escape(of)}"]`)?.focus({ preventScroll: true });
  several(buttons);
}

// What stays isn't touched, so that it keeps its focus, and a click that is under way.
function arrange(list, wanted) {
  const keep = new Set(wanted);
  for (const old of [...list.children]) if (!keep.has(old)) old.remove();
  let at = list.firstChild;
  for (const node of wanted) node === at ? at = at.nextSibling : list.insertBefore(node, at);
}

// The line of one that is settled: as high as it was, so that nothing below it moves.
function gone(id) {
  const node = nodes.get(id);
  if (node) {
    node.className = "gone";
    node.inert = true;
    node.removeAttribute("aria-current");
  }
  return node;
}

// Only what changed of a long list is made anew.
function item(one) {
  const state = [one.id === open, seen.has(one.id), ticked.has(one.id)].join();
  const had = made.get(one);
  if (had && had.state === state) return had.node;
  const node = newItem(one);
  made.set(one, { state, node });
  nodes.set(one.id, node);
  return node;
}

function newItem(one) {
  const ready = seen.has(one.id) && one.kind !== "task"; // a task is narrowed where it is open, so it is answered there
  const tick = h("input", {
    type: "checkbox", "data-id": one.id, disabled: !ready, "aria-label": ready ? "Answer this one together with others" : one.kind === "task" ? "A task is answered alone" : "Open it first",
    onchange: (event) => { event.target.checked ? ticked.add(one.id) : ticked.delete(one.id); changed(); },
  });
  tick.checked = ticked.has(one.id);
  const words = one.question?.sentence || one.lines[0] || one.id;
  return h("li", { class: "item", "aria-current": one.id === open ? "true" : null }, tick,
    h("button", { class: "open", type: "button", "data-id": one.id, onclick: () => goTo(one.id) }, line(words)),
    h("p", { class: "facts" }, [who(one), one.risk, one.count > 1 ? `${one.count} times` : "", `until ${when(one.deadline)}`].filter(Boolean).join(" · ")));
}

// Drawn anew, so that they take no click for a moment, where they are for others or have moved.
function several(place) {
  const ids = [...ticked].filter((id) => waiting.has(id) && seen.has(id)), stand = `${ids} ${place.offsetTop}`;
  if (place.dataset.stand === stand) return;
  place.dataset.stand = stand;
  put(place, ids.length < 2 ? [] : [
    h("button", { type: "button", class: "yes", onclick: () => together(ids) }, `Allow these ${ids.length}, once each`),
    h("button", { type: "button", onclick: once(() => denyAll(ids)) }, `Deny these ${ids.length}`)].map(afterMoment));
}

// Each answer is bound to what was shown of it; one that changed meanwhile isn't approved.
async function together(ids) {
  const presence = ids.some((id) => waiting.get(id)?.presence);
  const each = async (proof) => {
    let allowed = 0;
    for (const id of ids) {
      if (!waiting.has(id)) continue;
      const request = { approval_id: id, approve: true, width: "once", digest: seen.get(id) };
      const signed = presence && onlyPasskeys() ? { assertion_json: await sign({ decide: request }) } : {};
      await call("Person/Decide", { ...request, ...proof, ...signed });
      allowed += 1;
    }
    return allowed;
  };
  try {
    const allowed = presence && !onlyPasskeys() ? await prove("Allow these, once each", `${ids.length} ${ids.length === 1 ? "question" : "questions"} that you have seen whole.`, null, each) : await each({});
    if (allowed !== null) say(`Allowed ${allowed}.`);
  } catch (error) { say(error.text || error.message); }
  changed();
}

async function denyAll(ids) {
  for (const id of ids) await deny(waiting.get(id));
}

async function deny(one) {
  if (!one) return;
  try {
    await call("Person/Decide", { approval_id: one.id, approve: false, same_as: one.same_as || [] });
    say("Denied.");
  } catch (error) { say(error.text || error.message); }
}

// An entry of the browser's history, so that Back leads to the list.
function goTo(id) {
  if (location.hash !== `#waiting/${id}`) history.pushState(null, "", `#waiting/${id}`);
  question(id);
}

async function question(id) {
  open = id;
  changed();
  if (!root) return;
  root.classList.add("opened");
  const place = root.lastChild;
  let one;
  try {
    one = (await call("Person/Approvals", { approval_id: id })).approvals[0];
  } catch (error) {
    if (open === id) put(place, back(), h("p", { class: "problem", role: "alert" }, line(error.text || error.message)));
    return;
  }
  if (open !== id || !root) return;
  if (!one || one.state !== "pending") { settled(one || { id }); return; }
  put(place, card(one));
  place.querySelector("h2").focus();
}

function settled(one) {
  if (!root || one.id !== open) return;
  const how = one.state ? `${one.state}${one.settled_by ? `, by ${one.settled_by}` : ""}` : "gone";
  put(root.lastChild, h("div", { class: "card" }, back(), h("p", {}, `This question is settled: ${how}.`)));
}

const back = () => h("p", { class: "buttons back" }, h("button", { type: "button", onclick: () => { location.hash = "waiting"; } }, "Back to the list"));

function card(one) {
  const said = one.question || {}, whole = !said.payload?.length && !said.alone;
  const payload = lines(whole ? one.lines : said.payload, "What will be sent or run");
  const yes = (said.answers || []).filter((answer) => one.widths.includes(answer.name));
  const answers = yes.length ? yes : one.widths.map((name) => ({ name, label: name }));
  const less = one.task && narrowing(one.task);
  const buttons = answers.map((answer, index) =>
    h("button", { type: "button", class: index ? "" : "yes", "data-width": answer.name, onclick: () => choose(one, answer, less) }, index ? `Allow: ${answer.label}` : one.task ? "Allow the task" : "Allow once"));
  const hint = h("p", { class: "quiet hint" });
  const made = h("article", { class: "card" }, back(),
    h("h2", { tabindex: "-1" }, line(said.sentence || `${who(one)} asks`)),
    said.alone ? null : payload,
    facts([
      ["Asks", said.asks || one.source || who(one)], ["Worst", said.worst], ["Undo", said.undo || one.undo_text, said.irreversible],
      ["New", said.fresh], ...(said.notes || []).map((note) => ["Note", note, true]), ["Until", when(one.deadline)],
    ]),
    less && less.form,
    hint,
    h("p", { class: "buttons" }, buttons, afterMoment(h("button", { type: "button", "data-width": "no", onclick: once(() => deny(one)) }, "Deny"))),
    h("details", {}, h("summary", {}, "More"), more(one)));
  allowAtEnd(payload, buttons, hint, { alone: said.alone, seen: () => {
    if (seen.get(one.id) !== one.digest) { seen.set(one.id, one.digest); changed(); }
  } });
  return made;
}

async function choose(one, answer, less) {
  const narrowed = less ? less.read() : {};
  if (!narrowed) return;
  const choice = (one.choices || []).find((each) => each.name === answer.name);
  const request = { approval_id: one.id, approve: true, width: answer.name, digest: one.digest, ...narrowed.request };
  const attempt = (proof) => call("Person/Decide", { ...request, ...proof });
  const words = less ? narrowed.words : choice ? [...choice.words, choice.warning].filter(Boolean) : "This very action, a single time.";
  const gone = new AbortController(), proven = one.presence || answer.name !== "once";
  try {
    if (proven) proving ||= { id: one.id, gone };
    const done = proven
      ? await prove(one.task ? "Allow the task" : answer.name === "once" ? "Allow once" : `Allow: ${answer.label}`, words, { decide: request }, attempt, gone.signal)
      : await attempt({});
    if (done) say(done.settled?.length ? `Allowed; it settled ${done.settled.length} more.` : "Allowed.");
  } catch (error) { say(error.text || error.message); } finally { if (proving?.gone === gone) proving = null; }
}

function more(one) {
  const needs = (one.needs || []).map((need) => h("li", {}, line(`${need.service}/${need.account}: ${need.scope}${need.granted ? " (granted)" : ""}. ${need.description} ${need.why}`)));
  const widths = (one.choices || []).flatMap((choice) => [[choice.name, [...choice.words, choice.warning].filter(Boolean)]]);
  return [lines(one.lines, "The whole plan"),
    needs.length ? [h("h3", {}, "What it needs"), h("ul", {}, needs)] : null,
    h("h3", {}, "What each answer means"), facts(widths),
    facts([["In words", one.intent], ["Seen as", one.source], ["Asked because", one.reason], ["Risk", one.risk], ["Undo", one.undo_text],
      ["Question", one.id], ["Action", one.action_id], ["Digest", one.digest]]),
    preview(one)];
}

function preview(one) {
  const place = h("div", { "aria-live": "polite" });
  const run = async () => {
    put(place, h("p", { class: "quiet" }, "Trying it on a copy…"));
    try {
      for await (const event of stream("Person/DryRun", { question: { approval_id: one.id, digest: one.digest } })) {
        if (event.progress) put(place, h("p", { class: "quiet" }, event.progress));
        if (event.done) put(place, h("p", {}, line(event.done.summary)), lines(event.done.lines.map((line) => `${{ added: "+", removed: "-" }[line.kind] || " "} ${line.text}`), "What it would do"));
      }
    } catch (error) { put(place, h("p", { class: "problem" }, line(error.text || error.message))); }
  };
  return [h("p", { class: "buttons" }, h("button", { type: "button", onclick: run }, "Dry run")), place];
}
