// That it is the person: the approval passphrase, or a passkey, for one call.

import { call, Problem } from "./daemon.js";
import { line, put } from "./dom.js";

const field = (id) => document.getElementById(id);
let passkeys = false, required = false; // for this address; no passphrase counts
let underWay = false; // there is one dialog: whatever it says is of the one call that it is open for
const away = location.protocol === "https:"; // through a tunnel, where a passkey alone shows presence
const host = location.hostname.endsWith(".goex.localhost") ? "goex.localhost" : location.hostname; // that passkeys are for

// Returns what the daemon says of passkeys.
export async function lookForPasskeys() {
  const found = await call("Passkeys/List");
  passkeys = found.passkeys.some(isForHere) && !!window.PublicKeyCredential;
  required = (found.presence === "passkey" || away) && found.passkeys.length > 0;
  return found;
}

export const isForHere = (passkey) => passkey.rp_id === host;
export const onlyPasskeys = () => required;

export async function sign(subject) {
  const { options_json } = await call("Passkeys/Challenge", { ...subject, origin: location.origin });
  const options = PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(options_json));
  try { return JSON.stringify(await navigator.credentials.get({ publicKey: options })); } catch (error) {
    throw new Problem({ code: "passkey-unused", message: `The passkey wasn't used, and nothing was done: ${error.message}` });
  }
}

// Makes a call that needs presence and that no passkey signs by itself: where passkeys alone count, the call is refused
// until one confirms that very call, and made once more.
export function proveCall(title, what, attempt) {
  return alone(async () => {
    const main = document.querySelector("main");
    main.inert = true; // nothing that is clicked meanwhile is answered by what is asked next
    try { await lookForPasskeys(); } catch { /* what counts may have changed since, or wasn't known yet */ } finally { main.inert = false; }
    return onlyPasskeys() ? confirmed(attempt) : ask(title, what, null, attempt);
  });
}

// Refuses a call while another is being proven.
async function alone(proving) {
  if (underWay) throw new Problem({ code: "busy", message: "Another call waits for its proof.", next_step: "Finish or cancel that one, then try this again." });
  underWay = true;
  try { return await proving(); } finally { underWay = false; }
}

// Makes a call that at the public page, or where passkeys alone count, is refused until a passkey confirms that very call.
export async function confirmed(attempt) {
  let waiting;
  try { return await attempt({}); } catch (error) {
    if (error.code !== "passkey") throw error;
    waiting = error.waiting;
  }
  // A passkey's dialog doesn't say what it signs: nothing is signed but the very call that was made here.
  if (!waiting) {
    location.hash = "system";
    throw new Problem({ message: "Which call a passkey is to confirm isn't known.", next_step: "Look at those that wait under System, then try this again." });
  }
  await call("Person/Present", { assertion_json: await sign({ presence: waiting }) });
  return attempt({});
}

// SHA-256 of a new credential's public key, as the daemon shows it to whoever confirms it.
export async function publicKeyHash(credential) {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", credential.response.getPublicKey()));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Makes a call that a passkey of another address confirms, on the page there, and again until one has. `compare`: what
// must be shown there.
export async function confirmedElsewhere(attempt, compare, tell) {
  for (;;) {
    try { return await attempt({}); } catch (error) { if (error.code !== "passkey") throw error; }
    const where = away ? "where GoEx runs: goex web there" : "with a passkey that you have: on the page at its address";
    tell(`Now confirm it ${where}, System, Waiting for a passkey. There it must say: ${compare}`);
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

// Makes `attempt(proof)` until it is taken or the person leaves; `proof` is {passphrase} or {assertion_json}.
// `what` says it: a text, or several, a line each. `subject` names what a passkey signs, in the terms of
// Passkeys/Challenge. Returns what the call returned, or null; this as well where `gone` says that there is nothing to
// prove any more, before a call was made.
export function prove(title, what, subject, attempt, gone) {
  return alone(() => ask(title, what, subject, attempt, gone));
}

function ask(title, what, subject, attempt, gone) {
  const dialog = field("proof"), passphrase = field("passphrase"), problem = field("proof-problem");
  field("proof-title").textContent = title;
  put(field("proof-what"), [what].flat().map((each) => line(each)));
  const trouble = (text) => put(problem, text && line(text));
  trouble(required && !passkeys ? "No passkey is registered for this address: register one under System." : "");
  passphrase.value = "";
  field("proof-passkey").hidden = !(passkeys && subject);
  for (const part of [passphrase, field("proof-yes"), dialog.querySelector("label")]) part.hidden = onlyPasskeys();
  return new Promise((resolve) => {
    let done = false, making = false; // making: the call is under way, and can't be cancelled any more
    const end = (value) => {
      if (done) return;
      done = true;
      passphrase.value = "";
      dialog.close();
      listeners.abort();
      resolve(value);
    };
    const listeners = new AbortController();
    const on = (element, event, handler) => element.addEventListener(event, handler, { signal: listeners.signal });
    const busy = (yes) => {
      making = yes;
      for (const button of dialog.querySelectorAll("button")) button.disabled = yes;
    };
    const attemptWith = async (makeProof) => {
      busy(true);
      trouble("");
      try {
        end(await attempt(await makeProof()));
      } catch (error) {
        trouble(error instanceof Problem ? error.text : `The passkey wasn't used: ${error.message}`);
        passphrase.value = "";
      } finally {
        busy(false);
      }
    };
    on(dialog.querySelector("form"), "submit", (event) => {
      event.preventDefault();
      const typed = passphrase.value;
      if (typed && !making) attemptWith(async () => ({ passphrase: typed }));
    });
    on(field("proof-passkey"), "click", () => attemptWith(async () => ({ assertion_json: await sign(subject) })));
    on(field("proof-no"), "click", () => end(null));
    if (gone) on(gone, "abort", () => { if (!making) end(null); });
    on(dialog, "cancel", (event) => { if (making) event.preventDefault(); });
    // A browser closes it at the second Escape whatever is said to the first: what became of the call is still shown.
    on(dialog, "close", () => { if (!dialog.open) making ? dialog.showModal() : end(null); });
    dialog.showModal();
    (passkeys && subject ? field("proof-passkey") : passphrase).focus();
  });
}

