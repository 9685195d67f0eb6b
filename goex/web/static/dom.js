// Elements from text: nothing that a service or an agent wrote is ever taken for markup.

export function h(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(key, value);
  }
  return put(made, children);
}

// Replaces what an element holds; lists are taken apart, and what is nothing is left out.
export function put(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
export function when(text) {
  const moment = new Date(text);
  return isNaN(moment) ? text : clock.format(moment);
}

// Names, and what each is: a text, or several, a line each.
export function facts(pairs) {
  const shown = pairs.filter(([, text]) => text?.length);
  return h("dl", {}, shown.flatMap(([name, text, warn]) => [h("dt", {}, name), h("dd", warn ? { class: "warn" } : {}, [text].flat().map((each) => line(each)))]));
}

// One line of text, whoever wrote it. Its rows after the first stand behind a bar that is drawn, where no text comes to
// stand: so nothing within a line, not even blanks to the end of a row, begins what looks like a line of its own.
export function line(text, kind = "") {
  return h("span", { class: `line ${kind}`.trimEnd() }, text);
}

// Lines as they are, the difference's own coloured; it can be reached and scrolled by keyboard.
export function lines(texts, label) {
  const pieces = texts.map((text) => {
    const bare = text.replace(/^ {4}\| /, "");
    return line(text, /^\+(?!\+\+ )/.test(bare) ? "added" : /^-(?!-- )/.test(bare) ? "removed" : "");
  });
  return h("pre", { tabindex: "0", role: "region", "aria-label": label }, pieces);
}

let forget = 0;
export function say(text) {
  put(document.getElementById("said"), text && line(text));
  clearTimeout(forget);
  if (text) forget = setTimeout(() => say(""), 8000);
}
