// One input of a live page. It knows kinds of values, and nothing of what they mean.
import { el } from "./dom.js";

/// The values of a slider: those suggested, or whole ones of a short range, or halves and doubles of the
/// first value.
function stops(c) {
  if (c.names) return c.names.map(Number);
  const whole = c.kind === "count", first = Number(c.value) || Math.max(1, c.least);
  const all = c.most - c.least <= 16 && whole ? Array.from({ length: c.most - c.least + 1 }, (_, i) => c.least + i)
    : Array.from({ length: 21 }, (_, i) => first * 2 ** (i - 10)).map((v) => (whole ? Math.round(v) : v));
  return [...new Set(all)].filter((v) => v <= c.most && (c.above ? v > c.least : v >= c.least));
}

/// The control with its element: `value` reads it, `show` sets it. `changed` is called at every change.
export function control(c, changed) {
  const id = `set-${c.key}`, note = `${id}-note`;
  const meaning = c.meaning.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", "");  // of a page, as text
  const common = { id, "aria-describedby": note, autocomplete: "off", spellcheck: "false" };
  const names = (list) => list.map((name) => el("option", { value: name }, name));
  let input, slider, extra;
  if (c.kind === "flag") input = el("input", { ...common, type: "checkbox" });
  else if (c.kind === "choice") input = el("select", common, names(c.names));
  else if (c.kind === "lines") input = el("textarea", { ...common, rows: 1, placeholder: "one per line" });
  else if (c.kind === "count" || c.kind === "number") {
    input = el("input", { ...common, type: "number", step: c.kind === "count" ? 1 : "any", min: c.least, max: c.most });
    slider = { values: stops(c) };
    slider.element = el("input", { type: "range", min: 0, max: slider.values.length - 1, step: 1, "aria-label": c.label });
    slider.put = (value) => {
      const near = slider.values.reduce((best, v, i) => (Math.abs(v - value) < Math.abs(slider.values[best] - value) ? i : best), 0);
      slider.element.value = near;
      slider.element.setAttribute("aria-valuetext", String(slider.values[near]));
    };
  } else {
    input = el("input", { ...common, type: "text", list: c.names ? `${id}-names` : null });
    if (c.names) extra = el("datalist", { id: `${id}-names` }, names(c.names));
  }
  const made = {
    key: c.key,
    first: c.value,
    value: () => (c.kind === "flag" ? String(input.checked) : input.value.trim()),
    show(value) {
      if (c.kind === "flag") input.checked = value === "true";
      else input.value = value;
      slider?.put(Number(value));
    },
    set matters(yes) {
      element.classList.toggle("idle", !yes);
    },
  };
  input.addEventListener("change", () => {
    slider?.put(Number(input.value));
    changed(made);
  });
  slider?.element.addEventListener("input", () => {
    input.value = slider.values[slider.element.value];
    slider.element.setAttribute("aria-valuetext", input.value);
    changed(made);
  });
  const element = el("div.control", {}, el("label", { for: id, title: meaning }, c.label), el("span.inputs", {}, slider?.element, input, extra),
    el("span.unseen", { id: note }, meaning));
  made.element = element;
  made.show(c.value);
  made.matters = c.matters;
  return made;
}
