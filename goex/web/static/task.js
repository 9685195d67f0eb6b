// A task's lines and minutes, as a yes may make them less. That nothing is made more is held by the daemon.

import { h, line as lineOf } from "./dom.js";

const MOST = 1000; // times that a line may say

// Returns the form, and `read()`: what of Person/Decide narrows the task, and that in words; null where a number isn't less.
export function narrowing(task) {
  const number = (most, value, label) => h("input", { type: "number", min: 1, max: most, step: 1, value, required: value !== "", "aria-label": label });
  const lines = task.allows.map((line, place) => {
    const name = `${place + 1}. ${line.service}.${line.method}${line.account ? ` as ${line.account}` : ""}`;
    const on = h("input", { type: "checkbox", checked: true });
    const times = number(line.times || MOST, line.times || "", `How often, line ${place + 1}`);
    if (!line.times) times.placeholder = "any";
    on.addEventListener("change", () => { times.disabled = !on.checked; });
    return { line, place, on, times, row: h("li", {}, h("label", {}, on, lineOf(name)), h("span", {}, "at most ", times, " times")) };
  });
  const whole = Math.ceil(task.seconds / 60);
  const minutes = number(whole, whole, "For how many minutes");
  const form = h("form", { class: "narrow", onsubmit: (event) => event.preventDefault() },
    h("fieldset", {}, h("legend", {}, "Allow less"), h("ul", { class: "list" }, lines.map(({ row }) => row)), h("p", {}, "for ", minutes, " minutes")));
  const read = () => {
    if (!form.reportValidity()) return null;
    const narrowed = [], words = [];
    for (const { line, place, on, times } of lines) {
      const most = on.checked ? Number(times.value) : 0;
      if (on.checked && most === line.times) continue;
      narrowed.push({ line: place, times: most });
      words.push(on.checked ? `Line ${place + 1} at most ${most} ${most === 1 ? "time" : "times"}.` : `Not line ${place + 1}.`);
    }
    const shorter = Number(minutes.value) * 60 < task.seconds;
    if (shorter) words.push(`For ${minutes.value} ${minutes.value === "1" ? "minute" : "minutes"}.`);
    return { request: { narrowed, expires_seconds: shorter ? Number(minutes.value) * 60 : 0 }, words: words.join(" ") || "All of it, as it was asked for." };
  };
  return { form, read };
}
