// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";

// The theme belongs to the user, not to the view: this browser stores it, and links don't contain it.
export type ThemeChoice = "auto" | "light" | "dark";

const KEY = "gpusonde.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

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

  const isDark = choice === "auto" ? systemDark : choice === "dark";
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
