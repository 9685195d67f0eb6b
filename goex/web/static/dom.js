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
  return h("span", { class: `line ${kind}`.trimEnd() }, breakable(text));
}

// A browser breaks no row within what it takes for one sign, which a text may make as long as it likes. Here it may break
// such a sign, too, so that no text stands outside of its box, or over what is beside it.
const MOST = 12, RUN = /([^\0-\u02ff]{12,})/u, signs = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const breakable = (text) => String(text ?? "").split(RUN).flatMap((part, place) => (place % 2 ? broken(part) : part));
function broken(run) {
  const made = [""];
  for (const { segment } of signs.segment(run)) {
    const points = [...segment];
    for (let at = 0; at < points.length; at += MOST) {
      if (at) made.push(h("wbr"), "");
      made[made.length - 1] += points.slice(at, at + MOST).join("");
    }
  }
  return made;
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
