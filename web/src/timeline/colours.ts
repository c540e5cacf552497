// SPDX-License-Identifier: Apache-2.0
import { hashText } from "../flamegraph/model";
import { DARK, fillTable, GREY, mixed, packColour, SHADES, SLATE, type Theme } from "../flamegraph/palette";
import { STATES, type Names } from "./model";

// What a slice is, as the legend names it.
export interface Kind {
  label: string;
  // Of one, for tooltips: "kernel", "kernels".
  one: string;
  many: string;
  // Hues of the palette, one of them by the name's hash.
  slots: number[];
}

// Hues as in the flame graph by kind (palette.ts), for kernels one more, so that a stream's neighbours differ.
export const KINDS: Record<string, Kind> = {
  kernel: { label: "kernels", one: "kernel", many: "kernels", slots: [5, 0] },
  communication: { label: "communication", one: "communication kernel", many: "communication kernels", slots: [6] },
  memcpy: { label: "copies", one: "copy", many: "copies", slots: [4] },
  memset: { label: "copies", one: "set of memory", many: "sets of memory", slots: [4] },
  step: { label: "steps", one: "step", many: "steps", slots: [SLATE] },
  sample: { label: "functions on a CPU", one: "function on a CPU, sampled", many: "sampled functions", slots: [7] },
  annotation: { label: "ranges", one: "range", many: "ranges", slots: [3] },
  operator: { label: "operators", one: "operator", many: "operators", slots: [2] },
  call: { label: "calls", one: "call", many: "calls", slots: [1] },
};
const UNKNOWN: Kind = { label: "other", one: "event", many: "events", slots: [GREY] };

// The same colours as on the Incidents page (styles/incidents.css); they carry no text.
export const STATE_KINDS: Record<string, { label: string; colour: string }> = {
  state_running: { label: "running", colour: "#2f6db5" },
  state_run_queue: { label: "waiting for a CPU", colour: "#d1382c" },
  state_blocked_io: { label: "I/O", colour: "#e0a526" },
  state_blocked: { label: "blocked", colour: "#8a7f4f" },
  state_stopped: { label: "stopped", colour: "#4a4f57" },
  state_waiting: { label: "waiting", colour: "#8d929b" },
  state_sleeping: { label: "sleeping", colour: "#8d929b" },
};

// Most threads wait or sleep most of the time: that must not stand out, neither in light nor in dark.
const SHARES: Record<string, number> = { state_waiting: 0.45, state_sleeping: 0.2 };

function stateColour(state: string, { background }: Theme): string {
  const { colour } = STATE_KINDS[state]!;
  return mixed(background, colour, SHARES[state] ?? 1);
}

// Kernels that exchange data between GPUs, as `gpusonde analyze` knows them (communication_kernels.inc).
const COMMUNICATION = /nccl|rccl|nvshmem|deep_ep::|multimem_|(one|two)_?shot_?all_?reduce|allreduce_fusion|moealltoall|userbuffers_|cross_device_reduce/i;

export function kindNameOf(name: string, kind: string): string {
  return kind === "kernel" && COMMUNICATION.test(name) ? "communication" : kind;
}

export function kindOf(name: string, kind: string): Kind {
  return KINDS[kindNameOf(name, kind)] ?? UNKNOWN;
}

// How strongly a slice is painted, by the share of its time that was busy. Dark fills are so close to their background
// that less would be lost in it.
export const LEVELS = 8;
const leastOf = (theme: Theme) => (theme === DARK ? 0.65 : 0.3);

export interface Colours {
  // Name to fill; the packed colour of fill f at level l is at f * LEVELS + l.
  fillOf: Uint8Array;
  fills: Uint32Array;
}

export function coloursOf(names: Names, theme: Theme): Colours {
  const table = [...fillTable(theme), ...STATES.map((state) => stateColour(state, theme))];
  const states = table.length - STATES.length;
  const fillOf = Uint8Array.from(names.name, (name, i) => {
    const state = STATES.indexOf(names.kind[i]!);
    if (state >= 0) return states + state;
    const hash = hashText(name) >>> 8;
    const { slots } = kindOf(name, names.kind[i]!);
    return slots[hash % slots.length]! * SHADES + (Math.floor(hash / slots.length) % SHADES);
  });
  const fills = new Uint32Array(table.length * LEVELS);
  const least = leastOf(theme);
  table.forEach((colour, f) => {
    for (let level = 0; level < LEVELS; level++) fills[f * LEVELS + level] = packColour(mixed(theme.background, colour, least + ((1 - least) * level) / (LEVELS - 1)));
  });
  return { fillOf, fills };
}

// Legend entries of what an answer has, each with its colours.
export function legendOf(names: Names, theme: Theme): { label: string; colours: string[] }[] {
  const found = new Map<string, string[]>();
  const present = new Set(names.kind.map((kind, i) => kindNameOf(names.name[i]!, kind)));
  for (const [kind, { label, slots }] of Object.entries(KINDS)) if (present.has(kind) && !found.has(label)) found.set(label, slots.map((slot) => theme.fills[slot]!));
  for (const [kind, { label }] of Object.entries(STATE_KINDS)) if (present.has(kind)) found.set(label, [stateColour(kind, theme)]);
  return [...found].map(([label, colours]) => ({ label, colours }));
}
