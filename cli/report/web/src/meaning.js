// The meaning of colours in every picture: the use of a time span or of memory.

/// Kinds of time, by the names that documents and timelines use for them.
const KIND = {
  compute: "compute", forward_backward: "compute", recompute: "compute-2", optimizer: "compute-3",
  exposed_communication: "communication", communication: "communication",
  memory: "memory", copies: "memory",
  input: "input",
  host: "host", host_bound: "host", launch: "host",
  bubble: "idle-2", synchronization: "idle-2", delay: "idle-2", profiler: "idle", idle: "idle",
};
const TITLE = {
  compute: "compute", exposed_communication: "exposed communication", memory: "copies", input: "input stall",
  launch: "launch gaps", host_bound: "waiting for the host", host: "host", bubble: "bubble", idle: "idle",
  profiler: "profiler", forward_backward: "forward and backward",
};
export const kindOf = (key) => KIND[key] ?? "idle";
export const colorOf = (key) => `var(--${kindOf(key)})`;
export const titleOf = (key) => TITLE[key] ?? key.replaceAll("_", " ");

/// Memory: states, activations of computing, buffers of communication, and the rest.
export const MEMORY = [
  ["weights", "memory"], ["gradients", "memory-2"], ["optimizer", "memory-3"],
  ["activations", "compute"], ["loss", "compute-2"], ["transient", "compute-3"],
  ["cache", "memory-2"], ["gathered", "communication"], ["context", "idle"], ["reserve", "idle-2"],
];
export const MEMORY_TITLE = {
  weights: "weights", gradients: "gradients", optimizer: "optimizer states", activations: "activations",
  loss: "logits and loss", transient: "transient", cache: "keys and values", gathered: "gathered, buffers", context: "driver context", reserve: "allocator's reserve",
};
export const PROVENANCE = {
  recorded: "measured on this device", interpolated: "between measurements", extrapolated: "outside the measured range",
  datasheet: "from published data alone",
};
export const swatch = (color) => {
  const mark = document.createElement("span");
  mark.className = "swatch";
  mark.style.background = color;
  mark.setAttribute("aria-hidden", "true");
  return mark;
};
