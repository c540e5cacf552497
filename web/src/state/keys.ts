// SPDX-License-Identifier: Apache-2.0
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Navigation } from "./use-view";
import { OTHER_PROFILE, PROFILE_TYPES, type ProfileType, type View } from "./view";

interface Wiring {
  // Whether the pages of a host are shown, not the list of all.
  active: boolean;
  view: View;
  nav: Navigation;
  search: RefObject<HTMLInputElement>;
  onHelp: () => void;
}

type Shown = View["page"] | "source";

// Keys of what only some pages show, a source file being shown in the place of the profile's graph.
const SHOWN_FOR: Record<string, readonly Shown[]> = {
  i: ["profile", "compare"],
  c: ["profile"],
  f: ["profile"],
  s: ["profile"],
  g: ["profile", "source", "compare"],
  w: ["profile", "source", "compare"],
};

// Whether a key changes something that the view shows.
export function isKeyOf({ page, source }: View, key: string): boolean {
  return SHOWN_FOR[key]?.includes(page === "profile" && source ? "source" : page) ?? true;
}

// Keys work wherever the focus is, except in text fields and while a dialog is open.
export function useKeys({ active, view, nav, search, onHelp }: Wiring): void {
  const latest = useRef(view);
  latest.current = view;
  useEffect(() => {
    if (!active) return;
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
      if (document.querySelector("dialog[open]") || isTyping(event.target)) return;
      const action = isKeyOf(latest.current, event.key) ? actionOf(event.key) : null;
      if (!action) return;
      event.preventDefault();
      action();
    };
    const actionOf = (key: string): (() => void) | null => {
      switch (key) {
        case "/": {
          const field = search.current;
          return field && (() => field.focus());
        }
        case "?":
          return onHelp;
        case "i":
          return () => nav.adjust((now) => ({ orientation: now.orientation === "flame" ? "icicle" : "flame" }));
        case "c":
          return () => nav.step((now) => ({ colour: now.colour === "binary" ? "kind" : "binary", hide: [], only: null }));
        case "f":
          return () => nav.step((now) => ({ fold: !now.fold }));
        case "g":
          return () => nav.step((now) => ({ type: nextType(now.type), ...OTHER_PROFILE }));
        case "m":
          return () => nav.step((now) => ({ metrics: !now.metrics }));
        case "s": {
          // The toolbar's link knows the function, if any.
          const link = document.querySelector<HTMLButtonElement>(".toolbar .source-link");
          return link && (() => link.click());
        }
        case "w":
          return () => nav.step((now) => (now.type === "cpu" ? { idle: !now.idle, zoom: null } : {}));
        case "Escape":
          return () => nav.step(oneLevelOut);
        default:
          return null;
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [active, nav, onHelp]);
}

export function nextType(type: ProfileType): ProfileType {
  return PROFILE_TYPES[(PROFILE_TYPES.indexOf(type) + 1) % PROFILE_TYPES.length]!;
}

// Escape undoes one choice at a time, innermost first, of those that the page shows.
export function oneLevelOut(view: View): Partial<View> {
  const { page } = view;
  const hasGraph = page === "profile" || page === "compare";
  if (page === "timeline" && view.slice !== null) return { slice: null };
  if (page === "profile" && view.source) return { source: null };
  if (page === "profile" && view.pick !== null) return { pick: null };
  if (hasGraph && view.search) return { search: "" };
  if (hasGraph && view.zoom !== null) return { zoom: null };
  if (view.brush) return { brush: null };
  return {};
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
}
