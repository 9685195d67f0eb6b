// The page: its views, by the fragment of its address.

import { MOMENT } from "./at_end.js";
import { call, enter, isLink, Problem, signIn, signInOptions } from "./daemon.js";
import { h, line, put } from "./dom.js";
import * as past from "./history.js";
import { lookForPasskeys } from "./proof.js";
import * as trust from "./trust.js";
import * as waiting from "./waiting.js";

const VIEWS = {
  waiting: ["Waiting", waiting.show],
  history: ["History", past.show],
  grants: ["Grants", trust.grants],
  rules: ["Rules", trust.rules],
  accounts: ["Accounts", trust.accounts],
  agents: ["Agents", trust.agents],
  system: ["System", trust.system],
};
const main = document.querySelector("main"), nav = document.querySelector("nav"), connection = document.getElementById("connection");

const linked = new Map(Object.entries(VIEWS).map(([view, [title]]) => [view, h("a", { href: `#${view}` }, title)]));
function links(name, count) {
  if (!nav.children.length) put(nav, ...linked.values()); // once: the one that has the focus keeps it
  for (const [view, link] of linked) view === name ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  linked.get("waiting").textContent = count ? `Waiting (${count})` : "Waiting";
}

let count = 0, shown = "", drawing = null, settling = 0, lost = false; // lost: the view found no daemon
async function draw(event) {
  const place = drawing = h("div"); // a view that is left before it is ready is never shown
  main.inert = true; // and what still stands there of the one that was left takes no click
  main.setAttribute("aria-busy", "true");
  const [name, id = ""] = location.hash.slice(1).split("/");
  shown = VIEWS[name] ? name : "waiting";
  links(shown, count);
  if (shown !== "waiting") waiting.hide();
  if (shown !== "history") past.leave();
  let top = 0;
  try {
    top = await VIEWS[shown][1](place, decodeURIComponent(id)) || 0;
  } catch (error) {
    put(place, problem(error));
    lost ||= error.code === "daemon";
  }
  if (drawing !== place) return;
  put(main, place);
  main.removeAttribute("aria-busy");
  main.inert = false;
  settle();
  if (!event?.newURL) return; // the same view, drawn anew
  scrollTo(0, top);
  if (document.activeElement === document.body) main.focus({ preventScroll: true });
}

// No click counts for a moment: it was meant for the view before, or for a window that stood in front of this one.
function settle() {
  main.classList.add("fresh");
  clearTimeout(settling);
  settling = setTimeout(() => main.classList.remove("fresh"), MOMENT);
}

const problem = (error) => h("p", { class: "problem", role: "alert" }, line(error instanceof Problem ? error.text : String(error)));

// Returns when this tab has a session: by its link, by the token that it kept, or by a passkey.
async function session() {
  try {
    await enter();
    await call("Person/Status");
    return;
  } catch (error) {
    if (error.code !== "session") { if (error.code === "away") throw error; return; }
    if (!await signInOptions()) throw error;
  }
  await new Promise((resolve) => {
    const said = h("p", { class: "problem", role: "alert" });
    const button = h("button", { type: "button", class: "yes", onclick: async () => {
      button.disabled = true;
      put(said, "");
      try {
        const options = PublicKeyCredential.parseRequestOptionsFromJSON(await signInOptions());
        await signIn(JSON.stringify(await navigator.credentials.get({ publicKey: options })));
        resolve();
      } catch (error) {
        put(said, line(error instanceof Problem ? error.text : `The passkey wasn't used: ${error.message}`));
        button.disabled = false;
      }
    } }, "Sign in with a passkey");
    put(main, h("h2", {}, "Is it you?"), h("p", {}, "A passkey that is registered for this address opens the page. It allows nothing yet."), h("p", { class: "buttons" }, button), said);
    button.focus();
  });
}

async function begin() {
  for (const come of ["focus", "pageshow"]) window.addEventListener(come, settle);
  document.addEventListener("visibilitychange", settle); // a tab that comes to the front may have had the focus
  window.addEventListener("hashchange", () => { if (isLink()) location.reload(); }); // another link, opened in this tab
  try { await session(); } catch (error) { put(main, problem(error)); return; }
  const looked = lookForPasskeys().catch(() => {});
  history.scrollRestoration = "manual";
  window.addEventListener("hashchange", (event) => { if (!isLink()) draw(event); });
  waiting.follow((now, away) => {
    put(connection, away && line(away));
    document.title = now ? `(${now}) GoEx` : "GoEx";
    if (lost && !away) { lost = false; lookForPasskeys().catch(() => {}).then(() => draw()); }
    if (now === count && nav.children.length) return;
    count = now;
    links(shown, count);
  }).then(() => location.reload()); // the session has ended
  await looked; // a question says how it is answered
  await draw();
}

begin();
