// The timeline: a canvas with a window that wheel, keys, drags and the map above it move, a search, and
// the details of the selected span.
import { el, section, whenResized } from "../dom.js";
import { count, text } from "../format.js";
import { colorOf, swatch, titleOf } from "../meaning.js";
import { RULER, colors, draw, hit, layOut } from "./draw.js";
import { unpack } from "./spans.js";

const MAP = 38, TALLEST = 560, TALLEST_PRINT = 9000, CHAIN = 200, CHAIN_LINES = 10;

export function timeline({ timeline: t, document: d }) {
  if (!t?.packed) return null;
  const { spans, lanes } = unpack(t);
  const { titles, height } = layOut(lanes);
  const whole = { from: t.start_s, to: Math.max(t.end_s, t.start_s + 1e-9) };
  const state = { spans, lanes, titles, names: t.names, origin: t.start_s, ...whole, width: 0, height,
    top: 0, bottom: height, match: null, chain: null, chosen: -1, links: [], palette: null };

  const canvas = el("canvas", { tabindex: 0, role: "application", "aria-roledescription": "timeline", "aria-describedby": "timeline-keys",
    "aria-label": `Timeline of ${count(spans.count)} spans in ${lanes.length} lanes` });
  const map = el("canvas.map", { role: "img", "aria-label": "The whole timeline, with the part that is shown" });
  const scroller = el("div.lanes", { tabindex: -1 }, canvas);
  const names = el("div.lane-names", { "aria-hidden": "true" });
  const details = el("div.details", { role: "status", "aria-live": "polite" });
  const found = el("output.quiet", { for: "timeline-search" });
  const search = el("input", { type: "search", id: "timeline-search", placeholder: "name of an op", autocomplete: "off", spellcheck: "false" });
  scroller.style.maxHeight = `${TALLEST}px`;

  let asked = false;
  const redraw = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      paint();
    });
  };
  const context = canvas.getContext("2d"), mapContext = map.getContext("2d");
  let mapPicture = null;

  // The canvas is as high as what is seen of the lanes, and stays there while they scroll; on paper, all.
  const printing = matchMedia("print");
  const seenHeight = () => Math.min(height, printing.matches ? TALLEST_PRINT : TALLEST);
  const density = () => window.devicePixelRatio || 1;
  function size(width) {
    state.width = width;
    for (const [c, h] of [[canvas, seenHeight()], [map, MAP]]) {
      c.width = Math.round(width * density());
      c.height = Math.round(h * density());
      c.style.width = `${width}px`;
      c.style.height = `${h}px`;
      c.getContext("2d").setTransform(density(), 0, 0, density(), 0, 0);
    }
    mapPicture = null;
    redraw();
  }
  function paint() {
    if (!state.width) return;
    state.palette ??= colors(canvas, t.categories);
    const top = printing.matches ? 0 : scroller.scrollTop;
    if (top !== state.top || !names.childElementCount) nameLanes(top);
    state.top = top;
    state.bottom = top + seenHeight();
    context.setTransform(density(), 0, 0, density(), 0, -top * density());
    draw(context, state);
    paintMap();
  }
  /// Names of the visible lanes, next to the canvas and scrolled with it.
  function nameLanes(top) {
    const to = top + seenHeight();
    names.replaceChildren(...lanes.filter((lane) => lane.y + lane.height >= top && lane.y <= to).map((lane) =>
      el("span", { title: `${lane.process}: ${lane.name}`, style: { top: `${lane.y}px`, height: `${lane.height}px`, "line-height": `${Math.min(lane.height, 17)}px` } }, lane.name.replace(/^group /, ""))));
  }
  /// The whole, drawn once; the window on it, each time.
  function paintMap() {
    const { width, palette } = state, scale = width / (whole.to - whole.from);
    if (!mapPicture) {
      mapPicture = document.createElement("canvas");
      mapPicture.width = map.width;
      mapPicture.height = map.height;
      const c = mapPicture.getContext("2d");
      c.scale(map.width / width, map.width / width);
      const row = Math.max(0.5, (MAP - 4) / lanes.length);
      let drawn = -1;
      for (let i = 0; i < spans.count; ++i) {
        const x = (spans.start[i] - whole.from) * scale, right = (spans.end[i] - whole.from) * scale;
        if (i > 0 && spans.lane[i] !== spans.lane[i - 1]) drawn = -1;
        if (right <= drawn || spans.depth[i] > 0) continue;
        drawn = Math.max(right, Math.floor(x) + 1);
        c.fillStyle = palette.category[spans.category[i]];
        c.fillRect(x, 2 + row * spans.lane[i], Math.max(0.75, right - x), Math.max(0.5, row - 0.3));
      }
    }
    const c = mapContext;
    c.clearRect(0, 0, width, MAP);
    c.drawImage(mapPicture, 0, 0, width, MAP);
    const x = (state.from - whole.from) * scale, w = Math.max(3, (state.to - state.from) * scale);
    c.fillStyle = palette.paper;
    c.globalAlpha = 0.65;
    c.fillRect(0, 0, x, MAP);
    c.fillRect(x + w, 0, width, MAP);
    c.globalAlpha = 1;
    c.strokeStyle = palette.accent;
    c.lineWidth = 1.5;
    c.strokeRect(x + 0.75, 0.75, Math.max(1, w - 1.5), MAP - 1.5);
  }

  function show(from, to) {
    const least = (whole.to - whole.from) * 1e-7, span = Math.min(whole.to - whole.from, Math.max(least, to - from));
    state.from = Math.min(Math.max(whole.from, from), whole.to - span);
    state.to = state.from + span;
    redraw();
  }
  const zoom = (factor, at = (state.from + state.to) / 2) => show(at - (at - state.from) * factor, at + (state.to - at) * factor);
  const pan = (share) => show(state.from + share * (state.to - state.from), state.to + share * (state.to - state.from));

  function causesOf(i) {
    const chain = [];
    for (let c = spans.cause[i]; c >= 0 && chain.length < CHAIN && spans.end[c] <= spans.end[chain.at(-1) ?? i]; c = spans.cause[c]) chain.push(c);
    return chain;
  }
  const place = (i) => `${lanes[spans.lane[i]].process}, ${lanes[spans.lane[i]].name}`;
  function choose(i, move = false) {
    state.chosen = i;
    state.links = i < 0 ? [] : causesOf(i);
    state.chain = i < 0 ? null : new Set([i, ...state.links]);
    if (move && i >= 0) {
      const lane = lanes[spans.lane[i]], span = state.to - state.from, length = spans.end[i] - spans.start[i];
      if (spans.start[i] < state.from || spans.end[i] > state.to || length < span / 400) {
        const wide = Math.min(span, Math.max(length * 12, (whole.to - whole.from) * 1e-5));
        show((spans.start[i] + spans.end[i] - wide) / 2, (spans.start[i] + spans.end[i] + wide) / 2);
      }
      if (lane.y < scroller.scrollTop + RULER || lane.y + lane.height > scroller.scrollTop + TALLEST) scroller.scrollTop = lane.y - TALLEST / 2;
    }
    tell();
    redraw();
  }
  function tell() {
    const i = state.chosen;
    if (i < 0) {
      details.replaceChildren(el("p.quiet", {}, "Select a span to see its duration and the spans that it waited for."));
      return;
    }
    const category = t.categories[spans.category[i]];
    // Neighbours of one name on one lane are one line.
    const lines = [];
    let here = i;
    for (const cause of state.links) {
      const last = lines.at(-1);
      if (last && spans.name[last.first] === spans.name[cause] && spans.lane[last.first] === spans.lane[cause]) {
        last.count += 1;
        last.time += spans.end[cause] - spans.start[cause];
      } else {
        lines.push({ first: cause, count: 1, time: spans.end[cause] - spans.start[cause], gap: spans.start[here] - spans.end[cause], moved: spans.lane[cause] !== spans.lane[here] });
      }
      here = cause;
    }
    details.replaceChildren(
      el("p", {}, swatch(colorOf(category)), el("b", {}, t.names[spans.name[i]]), ` · ${titleOf(category)} · ${text(spans.end[i] - spans.start[i], "s")}`,
        spans.critical[i] ? el("b.accent", {}, " · on the critical path") : null,
        el("span.quiet", {}, ` · from ${text(spans.start[i] - state.origin, "s")} · ${place(i)}`)),
      state.links.length
        ? el("ol.chain", { "aria-label": "Spans that it waited for" }, lines.slice(0, CHAIN_LINES).map((line) =>
            el("li", {}, "waited for ", line.count > 1 ? `${count(line.count)} × ` : "", el("button", { type: "button", onclick: () => choose(line.first, true) }, t.names[spans.name[line.first]]),
              el("span.quiet", {}, ` ${text(line.time, "s")}${line.moved ? ` · ${place(line.first)}` : ""}${line.gap > 5e-10 ? ` · ended ${text(line.gap, "s")} before it began` : ""}`))))
        : el("p.quiet", {}, d.command !== "replay" && d.command !== "whatif" || /simulated/.test(lanes[spans.lane[i]].process)
            ? "It waited for no other span." : "A recording does not show what an op waited for: select the op in the simulated row."));
  }

  // Search: names that hold the text; Enter goes from one span to the next.
  let at = -1;
  function look() {
    const wanted = search.value.trim().toLowerCase();
    at = -1;
    if (!wanted) {
      state.match = null;
      found.textContent = "";
    } else {
      state.match = Uint8Array.from(t.names, (name) => (name.toLowerCase().includes(wanted) ? 1 : 0));
      let n = 0, time = 0;
      for (let i = 0; i < spans.count; ++i)
        if (state.match[spans.name[i]]) {
          ++n;
          time += spans.end[i] - spans.start[i];
        }
      found.textContent = n ? `${count(n)} spans, ${text(time, "s")} in all · Enter: next` : "no span has this name";
    }
    redraw();
  }
  function step(direction) {
    if (!state.match) return;
    for (let n = 0; n < spans.count; ++n) {
      at = (at + direction + spans.count) % spans.count;
      if (state.match[spans.name[at]]) return choose(at, true);
    }
  }
  search.addEventListener("input", look);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      search.value = "";
      look();
    }
  });

  // Pointer: drag moves, click chooses, wheel zooms once the timeline has the focus (else the page scrolls).
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.offsetX, from: state.from, to: state.to, moved: false };
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) {
      const i = hit(state, event.offsetX, event.offsetY + state.top);
      canvas.title = i < 0 ? "" : `${t.names[spans.name[i]]}: ${text(spans.end[i] - spans.start[i], "s")}`;
      return;
    }
    if (Math.abs(event.offsetX - drag.x) > 3) drag.moved = true;
    if (!drag.moved) return;
    const by = (drag.x - event.offsetX) / state.width * (drag.to - drag.from);
    show(drag.from + by, drag.to + by);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) choose(hit(state, event.offsetX, event.offsetY + state.top));
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => (drag = null));
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) pan((event.deltaX || event.deltaY) / state.width);
    else zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) * 0.002), state.from + event.offsetX / state.width * (state.to - state.from));
  }, { passive: false });
  const toMap = (event) => {
    const middle = whole.from + event.offsetX / state.width * (whole.to - whole.from), half = (state.to - state.from) / 2;
    show(middle - half, middle + half);
  };
  map.addEventListener("pointerdown", (event) => {
    map.setPointerCapture(event.pointerId);
    toMap(event);
  });
  map.addEventListener("pointermove", (event) => event.buttons && toMap(event));

  const neighbour = (by) => {
    let i = state.chosen;
    if (i < 0) {
      const middle = (state.from + state.to) / 2;
      i = lanes[0].first;
      while (i + 1 < lanes[0].last && spans.end[i] < middle) ++i;
      return choose(i, true);
    }
    const lane = lanes[spans.lane[i]];
    choose(Math.min(lane.last - 1, Math.max(lane.first, i + by)), true);
  };
  const otherLane = (by) => {
    if (state.chosen < 0) return neighbour(0);
    const lane = lanes[Math.min(lanes.length - 1, Math.max(0, spans.lane[state.chosen] + by))];
    let i = lane.first;
    while (i + 1 < lane.last && spans.end[i] <= spans.start[state.chosen]) ++i;
    choose(i, true);
  };
  const keys = {
    "+": () => zoom(0.6), "=": () => zoom(0.6), w: () => zoom(0.6), "-": () => zoom(1 / 0.6), s: () => zoom(1 / 0.6),
    ArrowLeft: () => pan(-0.15), a: () => pan(-0.15), ArrowRight: () => pan(0.15), d: () => pan(0.15),
    ArrowDown: () => otherLane(1), ArrowUp: () => otherLane(-1), n: () => neighbour(1), p: () => neighbour(-1),
    b: () => state.links.length && choose(state.links[0], true),
    0: () => show(whole.from, whole.to), Home: () => show(whole.from, whole.to), Escape: () => choose(-1),
    "/": () => search.focus(),
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  scroller.addEventListener("scroll", redraw);
  for (const query of ["(prefers-color-scheme: dark)", "print"])
    matchMedia(query).addEventListener("change", () => {
      state.palette = null;
      names.replaceChildren();
      if (state.width) size(state.width);
      paint();
    });

  names.style.height = `${height}px`;
  scroller.prepend(names);
  const stage = el("div.stage", {}, map, scroller);
  whenResized(scroller, () => size(Math.max(120, scroller.clientWidth - names.offsetWidth)));
  tell();
  canvas.rehearse = { state, paint, show, whole };

  const both = lanes.some((l) => / recorded$/.test(l.process));
  const button = (label, title, act) => el("button", { type: "button", title, "aria-label": title, onclick: act }, label);
  return section("when", "What happens when?",
    `${count(spans.count)} spans${t.left_out ? `. ${count(t.left_out)} further ones, up to ${text(t.shortest_s, "s")} long, are omitted` : ""}. ${both ? "For each rank, the recorded row is above the simulated one" : "Equal ranks are drawn once"}.`,
    el("div.tools", {},
      el("label", { for: "timeline-search" }, "find "), search, found,
      el("span.spring", {}),
      button("−", "zoom out", () => zoom(1 / 0.6)), button("+", "zoom in", () => zoom(0.6)), button("◂", "earlier", () => pan(-0.3)), button("▸", "later", () => pan(0.3)), button("all", "show all", () => show(whole.from, whole.to))),
    el("p.legend", {}, [...new Set(spans.category)].sort().map((c) => el("span", {}, swatch(colorOf(t.categories[c])), titleOf(t.categories[c])))),
    stage,
    el("p.keys.quiet", { id: "timeline-keys" }, "Click into the timeline, then: wheel or + − zoom, drag or ← → pan, ↑ ↓ other lane, n p next and previous span, b the span that it waited for, 0 all, / find, Esc clear the selection."),
    details);
}
