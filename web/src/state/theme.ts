// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";

// The theme belongs to the user, not to the view: this browser stores it, and links don't contain it.
export type ThemeChoice = "auto" | "light" | "dark";

const KEY = "gpusonde.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const print = matchMedia("print");

// Charts on canvases are laid out before the size of the paper is known. A browser shrinks pages to three quarters at least,
// so that this much fits on A4 and on Letter; wider paper enlarges it (styles/print.css).
const PAPER_PX = 950;

function stored(): ThemeChoice {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto"; // Storage may be forbidden; then only the system's choice counts.
  }
}

export interface Theme {
  choice: ThemeChoice;
  isDark: boolean;
  choose: (choice: ThemeChoice) => void;
}

export function useTheme(): Theme {
  const [choice, setChoice] = useState(stored);
  const [systemDark, setSystemDark] = useState(dark.matches);

  useEffect(() => {
    const follow = () => setSystemDark(dark.matches);
    dark.addEventListener("change", follow);
    return () => dark.removeEventListener("change", follow);
  }, []);

  // Paper is white, and so are the charts on it.
  const [printing, setPrinting] = useState(print.matches);
  useEffect(() => {
    const abort = new AbortController();
    const options = { signal: abort.signal };
    const { classList, style } = document.documentElement;
    const begin = () => {
      style.setProperty("--paper-width", `${PAPER_PX}px`);
      classList.add("printing");
      setPrinting(true);
    };
    const end = () => {
      classList.remove("printing");
      setPrinting(print.matches);
    };
    // Before the charts, which fit themselves to the paper.
    addEventListener("beforeprint", begin, { ...options, capture: true });
    addEventListener("afterprint", end, options);
    print.addEventListener("change", () => setPrinting(print.matches), options);
    return () => abort.abort();
  }, []);

  const isDark = !printing && (choice === "auto" ? systemDark : choice === "dark");
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";

  const choose = (next: ThemeChoice) => {
    setChoice(next);
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // As above: the choice then lasts until the page is closed.
    }
  };
  return { choice, isDark, choose };
}
