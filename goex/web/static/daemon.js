// Calls of the daemon. The session's token is kept for this tab alone, and is sent by this code alone.

export class Problem extends Error {
  // `waiting`: the id of the refused call, where a passkey can confirm it.
  constructor({ code = "", message = "", next_step = "", waiting = "" }) {
    super(message || "The page's process didn't answer.");
    this.code = code;
    this.nextStep = next_step;
    this.waiting = waiting;
  }
  get text() {
    return this.nextStep ? `${this.message} ${this.nextStep}` : this.message;
  }
}

const KEY = "goex-session", PASSKEY = "goex-passkey";

async function post(path, body, signal) {
  let answer;
  try {
    answer = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${sessionStorage.getItem(KEY) || ""}` },
      body: JSON.stringify(body),
      signal,
      redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ code: "away", message: "The page's process has ended.", next_step: "Start it again: goex web" });
  }
  if (answer.ok) return answer;
  let problem = {};
  try { problem = (await answer.json()).problem || {}; } catch { /* it said nothing that can be read */ }
  throw new Problem(problem);
}

export const isLink = () => /^#[\w-]+\.\d+\.[0-9a-f]{64}(\/|$)/.test(location.hash);

// A link's code stands in the fragment, before the question to open; it is used once and taken out of the address.
export async function enter() {
  if (!isLink()) return;
  const [code, question] = location.hash.slice(1).split("/");
  history.replaceState(null, "", question ? `/#waiting/${question}` : "/#waiting");
  sessionStorage.setItem(KEY, (await (await post("/enter", { code })).json()).token);
}

// Options for a passkey that begins a session here; null where none does now, or on the person's own machine.
export async function signInOptions() {
  if (location.protocol !== "https:" || !window.PublicKeyCredential) return null;
  try { return JSON.parse((await (await post("/sign-in/challenge", { passkey: localStorage.getItem(PASSKEY) || "" })).json()).options_json); } catch (error) {
    if (error.code === "session") return null;
    throw error;
  }
}

// The id of a passkey that was used here, which no stranger knows: who names it isn't kept waiting by a flood of them.
export function rememberPasskey(id) {
  if (location.protocol === "https:") localStorage.setItem(PASSKEY, id);
}

export async function signIn(assertion_json) {
  sessionStorage.setItem(KEY, (await (await post("/sign-in", { assertion_json })).json()).token);
  rememberPasskey(JSON.parse(assertion_json).id);
}

export async function call(method, body = {}) {
  return (await post(`/call/${method}`, body)).json();
}

export async function* stream(method, body = {}, signal = undefined) {
  const reader = (await post(`/call/${method}`, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const found = (rest + value).split("\n");
    rest = found.pop();
    for (const line of found) {
      const message = JSON.parse(line);
      if (message.problem && message.problem.code && Object.keys(message).length === 1) throw new Problem(message.problem);
      yield message;
    }
  }
}
