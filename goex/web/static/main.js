// The page: its views, by the fragment of its address.

import { enter, Problem } from "./daemon.js";
import { h, put } from "./dom.js";
import * as past from "./history.js";
import { lookForPasskeys } from "./proof.js";
import * as trust from "./trust.js";
import * as waiting from "./waiting.js";

const VIEWS = {
  waiting: ["Waiting", (main, id) => waiting.show(main, id)],
  history: ["History", (main, id) => past.show(main, id)],
  grants: ["Grants", trust.grants],
  rules: ["Rules", trust.rules],
  accounts: ["Accounts", trust.accounts],
  agents: ["Agents", trust.agents],
  system: ["System", trust.system],
};
const main = document.querySelector("main"), nav = document.querySelector("nav"), connection = document.getElementById("connection");

function links(name, count) {
  put(nav, ...Object.entries(VIEWS).map(([view, [title]]) =>
    h("a", { href: `#${view}`, "aria-current": view === name ? "page" : null }, view === "waiting" && count ? `${title} (${count})` : title)));
}

let count = 0, shown = "";
async function draw() {
  const [name, id = ""] = location.hash.slice(1).split("/");
  shown = VIEWS[name] ? name : "waiting";
  links(shown, count);
  if (shown !== "waiting") waiting.hide();
  try {
    await VIEWS[shown][1](main, decodeURIComponent(id));
  } catch (error) {
    put(main, h("p", { class: "problem", role: "alert" }, error instanceof Problem ? error.text : String(error)));
  }
}

async function begin() {
  try {
    await enter();
  } catch (error) {
    put(main, h("p", { class: "problem", role: "alert" }, error instanceof Problem ? error.text : String(error)));
    return;
  }
  const looked = lookForPasskeys().catch(() => {});
  window.addEventListener("hashchange", draw);
  waiting.follow((now, away) => {
    connection.textContent = away;
    document.title = now ? `(${now}) GoEx` : "GoEx";
    if (now === count && nav.children.length) return;
    count = now;
    links(shown, count);
  });
  await looked; // a question says how it is answered
  await draw();
}

begin();
