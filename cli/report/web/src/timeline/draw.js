// Draws a window of a timeline on a canvas. Spans that fall into a column that the lane has drawn
// already cost a comparison, so that a hundred thousand of them take a few milliseconds.
import { kindOf } from "../meaning.js";
import { text } from "../format.js";
import { firstAt } from "./spans.js";

export const RULER = 22;
const TITLE = 19, ROW = 17, NESTED = 11, GAP = 3;

/// Positions of lanes, from the top down: {rows: [{title} | {lane}], height}.
export function layOut(lanes) {
  let y = RULER, process;
  const titles = [];
  for (const lane of lanes) {
    if (lane.process !== process) {
      process = lane.process;
      titles.push({ y, text: process });
      y += TITLE;
    }
    lane.row = lane.depth > 1 ? NESTED : ROW;
    lane.y = y;
    lane.height = lane.row * lane.depth;
    y += lane.height + GAP;
  }
  return { titles, height: Math.ceil(y) + 4 };
}

/// Relative luminance of "#rrggbb".
function lightness(color) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/// The current colours of the style sheet, by category and for everything else that is drawn.
export function colors(element, categories) {
  const style = getComputedStyle(element);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  const category = categories.map((c) => of(kindOf(c)));
  return {
    category,
    on: category.map((c) => (lightness(c) > 0.18 ? "#0c0f12" : "#ffffff")), // text on them: the colour with more contrast
    ink: of("ink"), quiet: of("quiet"), line: of("line"), paper: of("paper"), raised: of("raised"), accent: of("accent"),
  };
}

export function ticks(from, to, room) {
  const rough = (to - from) / Math.max(1, room);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough);
  const list = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) list.push(t);
  return list;
}

/// state: {spans, lanes, titles, from, to, width, height, top, bottom, origin, match, chain, chosen, palette, names}
export function draw(context, state) {
  const { spans, lanes, from, to, width, palette, match, chain } = state;
  const scale = width / (to - from);
  context.clearRect(0, state.top, width, state.bottom - state.top);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  const times = ticks(from, to, width / 110);
  context.fillStyle = palette.line;
  for (const t of times) context.fillRect(Math.round((t - from) * scale), state.top, 1, state.bottom - state.top);
  for (const title of state.titles) {
    if (title.y + TITLE < state.top || title.y > state.bottom) continue;
    context.fillStyle = palette.raised;
    context.fillRect(0, title.y, width, TITLE - 2);
    context.fillStyle = palette.ink;
    context.fillText(title.text, 6, title.y + TITLE / 2 - 1, width - 12);
  }
  const reached = new Float64Array(8);
  for (const lane of lanes) {
    if (lane.y + lane.height < state.top || lane.y > state.bottom) continue;
    reached.fill(-1);
    let category = -1, alpha = 1;
    for (let i = firstAt(spans, lane, from); i < lane.last && spans.start[i] < to; ++i) {
      if (spans.end[i] < from) continue;
      const depth = spans.depth[i];
      const right = (spans.end[i] - from) * scale;
      // A match is drawn even where the column has its colour.
      const found = match !== null && match[spans.name[i]] === 1;
      if (right <= reached[depth] && !found) continue;
      const left = (spans.start[i] - from) * scale;
      const wide = right - left;
      const x = Math.max(0, left), w = Math.max(0.75, Math.min(width, right) - x);
      reached[depth] = wide < 1 ? Math.floor(x) + 1 : right;
      const opaque = match !== null ? (found ? 1 : 0.16) : chain !== null && !chain.has(i) ? 0.3 : 1;
      if (opaque !== alpha) context.globalAlpha = alpha = opaque;
      if (spans.category[i] !== category) context.fillStyle = palette.category[(category = spans.category[i])];
      const y = lane.y + depth * lane.row;
      context.fillRect(x, y, wide > 3 ? w - 0.6 : w, lane.row - 1);
      if (wide > 34) {
        const room = Math.floor((w - 6) / 6);
        if (room > 3) {
          const name = state.names[spans.name[i]];
          context.fillStyle = palette.on[category];
          context.fillText(name.length > room ? `${name.slice(0, room - 1)}…` : name, x + 3, y + lane.row / 2, w - 5);
          category = -1;
        }
      }
    }
    if (alpha !== 1) context.globalAlpha = 1;
    context.fillStyle = palette.quiet;
  }
  if (state.chosen >= 0) {
    const i = state.chosen, lane = lanes[spans.lane[i]];
    const x = (spans.start[i] - from) * scale, w = Math.max(2, (spans.end[i] - spans.start[i]) * scale);
    context.strokeStyle = palette.ink;
    context.lineWidth = 2;
    context.strokeRect(x, lane.y + spans.depth[i] * lane.row, w, lane.row - 1);
    // The chain of waits: from the end of each span to the start of the span that waited for it.
    context.strokeStyle = palette.accent;
    context.lineWidth = 1.25;
    context.beginPath();
    let here = i;
    for (const cause of state.links) {
      const other = lanes[spans.lane[cause]];
      const x1 = (spans.end[cause] - from) * scale, y1 = other.y + (spans.depth[cause] + 0.5) * other.row;
      const own = lanes[spans.lane[here]];
      const x2 = (spans.start[here] - from) * scale, y2 = own.y + (spans.depth[here] + 0.5) * own.row;
      context.moveTo(x1, y1);
      context.bezierCurveTo(x1 + 12, y1, x2 - 12, y2, x2, y2);
      here = cause;
    }
    context.stroke();
  }
  // The ruler stays at the top.
  context.fillStyle = palette.paper;
  context.fillRect(0, state.top, width, RULER - 2);
  context.fillStyle = palette.quiet;
  for (const t of times) {
    const x = (t - from) * scale;
    if (x < width - 40) context.fillText(text(t - state.origin, "s"), x + 3, state.top + RULER / 2 - 1);
    context.fillRect(Math.round(x), state.top, 1, RULER - 2);
  }
}

/// The span at a point, or -1.
export function hit(state, x, y) {
  const { spans, lanes, from, to, width } = state;
  const time = from + (x / width) * (to - from), slack = 2 * (to - from) / width;
  const lane = lanes.find((l) => y >= l.y && y < l.y + l.height);
  if (!lane) return -1;
  const depth = Math.floor((y - lane.y) / lane.row);
  let best = -1, distance = slack;
  for (let i = firstAt(spans, lane, time - slack); i < lane.last && spans.start[i] <= time + slack; ++i) {
    if (spans.depth[i] !== depth || spans.end[i] < time - slack) continue;
    const away = time < spans.start[i] ? spans.start[i] - time : time > spans.end[i] ? time - spans.end[i] : 0;
    if (away < distance || (away === 0 && best < 0)) {
      best = i;
      distance = away;
    }
    if (away === 0) break;
  }
  return best;
}
