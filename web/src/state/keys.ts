// SPDX-License-Identifier: Apache-2.0
import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";
import type { Navigation } from "./use-view";
import { OTHER_PROFILE, PROFILE_TYPES, type ProfileType, type View } from "./view";

interface Wiring {
  nav: Navigation;
  search: RefObject<HTMLInputElement>;
  onHelp: () => void;
}

// Keys work wherever the focus is, except in text fields and while a dialog is open.
export function useKeys({ nav, search, onHelp }: Wiring): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
      if (document.querySelector("dialog[open]") || isTyping(event.target)) return;
      const action = actionOf(event.key);
      if (!action) return;
      event.preventDefault();
      action();
    };
    const actionOf = (key: string): (() => void) | null => {
      switch (key) {
        case "/":
          return () => search.current?.focus();
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
  }, [nav, onHelp]);
}

export function nextType(type: ProfileType): ProfileType {
  return PROFILE_TYPES[(PROFILE_TYPES.indexOf(type) + 1) % PROFILE_TYPES.length]!;
}

// Escape undoes one choice at a time, innermost first.
export function oneLevelOut(view: View): Partial<View> {
  // The timeline shows none of the profile's choices.
  if (view.page === "timeline") return view.slice !== null ? { slice: null } : view.brush ? { brush: null } : {};
  if (view.source) return { source: null };
  if (view.pick !== null) return { pick: null };
  if (view.search) return { search: "" };
  if (view.zoom !== null) return { zoom: null };
  if (view.brush) return { brush: null };
  return {};
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
}
