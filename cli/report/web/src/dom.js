// Elements. Text from the data enters the page here alone, as text: never as markup.

/// el("button.small", {type: "button", onclick}, "text", child, [children])
export function el(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity))
    if (child !== undefined && child !== null && child !== false) element.append(child);
  return element;
}

export function section(id, title, lead, ...content) {
  return el("section", { id, "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title),
    lead ? el("p.lead", {}, lead) : null,
    ...content);
}

/// A table: columns [{name, right, cell(row) -> text or node}].
export function table(caption, columns, rows, rowAttributes = () => ({})) {
  return el("div.scroll", { tabindex: 0, role: "region", "aria-label": caption },
    el("table", {},
      el("caption.unseen", {}, caption),
      el("thead", {}, el("tr", {}, columns.map((c) => el(c.right ? "th.right" : "th", { scope: "col" }, c.name)))),
      el("tbody", {}, rows.map((row) => el("tr", rowAttributes(row),
        columns.map((c) => el(c.right ? "td.right" : "td", { "data-name": c.name || undefined }, c.cell(row))))))));
}

/// Calls `draw(width)` now and whenever the element becomes wider or narrower.
export function whenResized(element, draw) {
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.floor(element.clientWidth);
    if (now === width || now === 0) return;
    width = now;
    draw(now);
  }).observe(element);
}
