// A yes counts once the end of what is approved was on the screen, and a moment after it came to stand there; any other
// button that does something, a moment after it came.

import { h } from "./dom.js";

export const MOMENT = 500; // milliseconds that a button stands before it can be clicked

// Returns the button, which takes no click yet: one that was meant for what stood there before does nothing.
export function afterMoment(button) {
  button.disabled = true;
  setTimeout(() => { button.disabled = false; }, MOMENT);
  return button;
}

// A handler that does nothing more while what it began is under way: a second click is no second answer.
export function once(doing) {
  let busy = false;
  return async () => {
    if (busy) return;
    busy = true;
    try { await doing(); } finally { busy = false; }
  };
}

// Keeps the buttons disabled until the end of `box` was seen, which `hint` says; `seen` is told then. `alone`: nothing
// is in a box.
export function allowAtEnd(box, buttons, hint, { alone = false, seen = () => {} } = {}) {
  atEnd(box, alone, () => {
    hint.textContent = "";
    buttons.forEach(afterMoment);
    seen();
  }, () => {
    hint.textContent = "Scroll to the end of it to allow it.";
    for (const button of buttons) button.disabled = true;
  });
}

// Within its box, and the box's end in the window.
function atEnd(box, alone, reached, notYet) {
  notYet();
  if (alone) { reached(); return; }
  const end = box.appendChild(h("span"));
  const looks = new IntersectionObserver((found) => {
    if (!found.some((one) => one.isIntersecting)) return;
    looks.disconnect();
    reached();
  });
  looks.observe(end);
}
