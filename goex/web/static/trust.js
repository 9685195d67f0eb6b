// What is allowed and connected: grants and their use, rules, accounts, agents, the vault, passkeys.

import { allowAtEnd } from "./at_end.js";
import { call, rememberPasskey } from "./daemon.js";
import { facts, h, line, lines, put, say, when } from "./dom.js";
import { confirmedElsewhere, isForHere, lookForPasskeys, prove, proveCall, publicKeyHash, sign } from "./proof.js";

const list = (items, none) => (items.length ? h("ul", { class: "list" }, items) : h("p", { class: "quiet" }, none));
const entry = (title, pairs, ...buttons) => h("li", { class: "card" }, h("strong", {}, [title].flat().map((each) => line(each))), facts(pairs), buttons.length ? h("p", { class: "buttons" }, buttons) : "");
// The page draws the view: another drawing of it may be under way, or be over, that shows how it stood before.
const drawAnew = () => window.dispatchEvent(new Event("hashchange"));
const act = (label, doing, said = "") => h("button", { type: "button", onclick: async (event) => {
  event.target.disabled = true;
  try {
    await doing();
    if (said) say(said);
    drawAnew();
  } catch (error) { say(error.text || error.message); event.target.disabled = false; }
} }, label);

// Lines under what is said of them, and the button that confirms them once their end was on the screen.
function seenWhole(texts, label, button, ...said) {
  const box = lines(texts, label), hint = h("p", { class: "quiet hint" });
  allowAtEnd(box, [button], hint);
  return h("li", { class: "card" }, said, box, hint, h("p", { class: "buttons" }, button));
}

export async function grants(main) {
  const { scopes } = await call("Audit/Scopes");
  put(main, h("h2", {}, "Grants"), list(scopes.map(({ grant, uses, last_used, methods, methods_open }) =>
    entry(grant.words.length ? grant.words : grant.scope, [
      ["Width", grant.width], ["Used", uses === "0" ? "never" : `${uses === "1" ? "once" : `${uses} times`}, last ${when(last_used)}`], ["For", methods.join(", ")],
      ["Would allow", methods_open ? `${methods_open} ${methods_open === 1 ? "method" : "methods"}` : ""], ["Ends", grant.ends && when(grant.ends)], ["Stale", grant.stale, true], ["Id", grant.id],
    ], act("Revoke", () => call("Person/Revoke", { grant_ids: [grant.id] }), "Revoked."))),
  "No grant stands."));
}

export async function rules(main) {
  const found = await call("Rules/InForce");
  put(main, h("h2", {}, "Rules in force"), ...(found.catalog ? [h("p", {}, line(found.catalog))] : []),
    list((found.rules || []).map((rule) => h("li", { class: "card" }, h("strong", {}, line(`${rule.name} (${rule.effect})`)), lines(rule.text.split("\n"), rule.name))), "No rule of yours is in force."),
    h("p", { class: "quiet" }, "Rules are written in files and put in force with: goex rules apply"));
  const would = await call("Rules/SuggestRules");
  const take = (rule) => act("Put in force", async () => {
    const request = { rules: [rule.text], compared_with: found.hash };
    const done = await proveCall("Put this rule in force", `${rule.method} as ${rule.account}, by ${rule.agent}: runs without asking, as the rule says.`, (proof) => call("Rules/ApplySuggestedRules", { ...request, ...proof }));
    if (done) say("The rule is in force. It stands in your draft suggested.cedar, too.");
  });
  main.append(h("h2", {}, "Suggested rules"),
    list((would.rules || []).map((rule) => seenWhole(rule.text.split("\n"), rule.name, take(rule), h("strong", {}, line(`${rule.method} as ${rule.account}, by ${rule.agent}`)),
      facts([["Would have answered", `${rule.answers} that you approved`], ["Newly opens", [`1 of ${rule.methods} ${rule.methods === 1 ? "method" : "methods"} (${rule.risk})`, rule.free.length ? `${rule.free.join(", ")} may be anything` : "", rule.combinations ? `${rule.combinations} ${rule.combinations === 1 ? "combination" : "combinations"} of values that you never approved` : ""].filter(Boolean).join("; ")]]))), "No rule is suggested: too few questions are alike."),
    h("p", { class: "quiet" }, `Of ${would.asked} ${would.asked === 1 ? "question" : "questions"} these would have answered ${would.answered}; none of the ${would.denied} that you denied.`));
}

export async function accounts(main) {
  const [{ accounts: found }, { databases }] = await Promise.all([call("Accounts/ListAccounts"), call("Databases/ListDatabases")]);
  const text = (value) => (typeof value === "string" ? value : Array.isArray(value) ? value.filter((each) => typeof each === "string").join(", ") : "");
  const pairs = (one, without) => Object.entries(one).filter(([name, value]) => !without.includes(name) && text(value)).map(([name, value]) => [name.replaceAll("_", " "), text(value)]);
  put(main, h("h2", {}, "Accounts"),
    list((found || []).map((one) => entry(`${one.service}/${one.account || one.name}`, pairs(one, ["service", "account", "name"]))), "No account is connected. Connect one with: goex auth login, or goex vault put"),
    h("h2", {}, "Databases"), list((databases || []).map((one) => entry(one.name, pairs(one, ["name"]))), "No database is there. Add one with: goex db add"));
}

export async function agents(main) {
  const { agents: found } = await call("Person/ListAgents");
  put(main, h("h2", {}, "Agents"), list(found.map((one) =>
    entry(one.name, [["Added", when(one.created)], ["Last seen", one.last_seen ? when(one.last_seen) : "never"]],
      act("Remove", () => call("Person/RemoveAgent", { name: one.name }), "Removed."))),
  "No agent has a name. Add one with: goex agents add NAME"));
}

export async function system(main) {
  const status = await call("Person/Status");
  put(main, h("h2", {}, "Vault"),
    facts([["State", status.vault], ["Key", status.keyed_by], ["Trouble", status.vault_trouble, true], ["Seals itself", status.sealing]]),
    h("p", { class: "buttons" }, status.vault === "sealed" ? unlock(status) : "", status.vault === "unsealed" ? act("Seal it now", () => call("Person/VaultSeal")) : ""),
    h("h2", {}, "Daemon"), facts([["Version", status.version], ["Process", String(status.pid)], ["Docker", status.docker || "answers"], ["Sandbox image", status.image || "built"], ["Model", status.model || "the embedded proposer"], ["State", status.state_dir]]),
    h("h2", {}, "Passkeys"), await passkeys());
}

function unlock(status) {
  if (status.keyed_by !== "passphrase") return act("Unlock", () => call("Person/VaultUnlock"));
  const typed = h("input", { type: "password", autocomplete: "off", "aria-label": "Vault passphrase" });
  return h("form", { onsubmit: async (event) => {
    event.preventDefault();
    const passphrase = typed.value;
    typed.value = "";
    try { await call("Person/VaultUnlock", { passphrase }); drawAnew(); } catch (error) { say(error.text || error.message); }
  } }, typed, h("button", { type: "submit" }, "Unlock"));
}

async function passkeys() {
  let found;
  let told;
  const place = h("p", { role: "status" });
  try { told = await lookForPasskeys(); found = told.passkeys; } catch (error) { return h("p", { class: "quiet" }, error.text || error.message); }
  const add = async () => {
    const name = `Passkey ${found.length + 1}`;
    const { options_json } = await call("Passkeys/Begin", { name, origin: location.origin });
    const options = PublicKeyCredential.parseCreationOptionsFromJSON(JSON.parse(options_json));
    const credential = await navigator.credentials.create({ publicKey: options }), credential_json = JSON.stringify(credential);
    const request = { name, credential_json };
    const attempt = (proof) => call("Passkeys/Add", { ...request, ...proof });
    const done = found.length && !found.some(isForHere)
      ? await confirmedElsewhere(attempt, `public_key_sha256 ${await publicKeyHash(credential)}`, (text) => put(place, text))
      : await prove("Register this passkey", "From then on it can approve in your name.", found.length ? { add: request } : null, attempt);
    if (!done) return;
    rememberPasskey(credential.id);
    say("The passkey is registered.");
  };
  const remove = (one) => async () => {
    const request = { id: one.id };
    await prove("Remove this passkey", one.name, { remove: request }, (proof) => call("Passkeys/Remove", { ...request, ...proof }));
  };
  const confirm = (one) => async () => {
    await call("Person/Present", { assertion_json: await sign({ presence: one.id }) });
    say("Confirmed.");
  };
  return [
    told.reset_at ? h("p", { class: "warn" }, `Somebody who has your approval passphrase asked to remove all passkeys at ${when(told.reset_at)}. Each use of one ends that.`) : "",
    told.waiting.length ? [h("h3", {}, "Waiting for a passkey"), list(told.waiting.map((one) => seenWhole(one.lines, one.call, act("Confirm with a passkey", confirm(one)),
      h("strong", {}, line(one.what)), facts([["Call", one.call], ["By", one.by], ["At", when(one.at)]]))))] : "",
    told.presence === "passkey" ? h("p", {}, "The passphrase alone shows no presence: [ask] presence is passkey.") : "",
    list(found.map((one) => entry(one.name, [["For", one.rp_id], ["Registered", when(one.created)], ["Last used", one.used ? when(one.used) : "never"]], act("Remove", remove(one)))), "None is registered."),
    window.PublicKeyCredential ? h("p", { class: "buttons" }, act("Register a passkey", add)) : h("p", { class: "quiet" }, "This browser has no passkeys."),
    place,
    told.sessions.length ? [h("h3", {}, "Signed in at the public page"), list(told.sessions.map((one) =>
      entry(one.name || "By a link", [["Since", when(one.begun)], ["Until", when(one.ends)]], act("End this session", () => call("Passkeys/EndSession", { id: one.id })))))] : ""];
}
