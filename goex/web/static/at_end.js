// A yes counts once the end of what is approved was on the screen, and a moment after it came to stand there.

import { h } from "./dom.js";

const MOMENT = 500; // milliseconds that it stands before it can be allowed

// Keeps the buttons disabled until the end of `box` was seen, which `hint` says; `seen` is told then. `alone`: nothing
// is in a box.
export function allowAtEnd(box, buttons, hint, { alone = false, seen = () => {} } = {}) {
  atEnd(box, alone, () => {
    hint.textContent = "";
    // A click that was meant for what stood there before allows nothing.
    setTimeout(() => { for (const button of buttons) button.disabled = false; }, MOMENT);
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
