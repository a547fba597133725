// The packed spans of a timeline (timeline_sheet.h says how), as columns.

export function unpack(timeline) {
  const bytes = Uint8Array.from(atob(timeline.packed), (c) => c.charCodeAt(0));
  const total = timeline.lanes.reduce((sum, lane) => sum + lane.spans, 0);
  const spans = {
    count: total,
    start: new Float64Array(total), end: new Float64Array(total), // seconds
    name: new Uint32Array(total), category: new Uint8Array(total), critical: new Uint8Array(total),
    cause: new Int32Array(total).fill(-1), lane: new Uint32Array(total), depth: new Uint8Array(total),
  };
  let at = 0;
  const next = () => {
    let value = 0, scale = 1, byte;
    do {
      byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte & 128);
    return value;
  };
  let i = 0;
  const lanes = timeline.lanes.map((lane, number) => {
    const first = i;
    let start = 0, deepest = 0, longest = 0;
    const open = []; // ends of spans that this one may lie in
    for (let n = 0; n < lane.spans; ++n, ++i) {
      start += next();
      const duration = next();
      const what = next();
      const cause = next();
      spans.start[i] = start * 1e-9;
      spans.end[i] = (start + duration) * 1e-9;
      spans.name[i] = Math.floor(what / 32);
      spans.category[i] = (what >> 1) & 15;
      spans.critical[i] = what & 1;
      if (cause) spans.cause[i] = i + ((cause - 1) % 2 ? -(cause / 2) : (cause - 1) / 2);
      spans.lane[i] = number;
      while (open.length && open[open.length - 1] <= start + 1) open.pop(); // ends are rounded
      spans.depth[i] = Math.min(open.length, 7);
      deepest = Math.max(deepest, spans.depth[i]);
      longest = Math.max(longest, duration * 1e-9);
      open.push(start + duration);
    }
    return { ...lane, first, last: i, depth: deepest + 1, longest };
  });
  return { spans, lanes };
}

/// The first span of a lane that may still be seen at a time.
export function firstAt(spans, lane, time) {
  let low = lane.first, high = lane.last;
  const from = time - lane.longest;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans.start[middle] < from) low = middle + 1;
    else high = middle;
  }
  return low;
}
