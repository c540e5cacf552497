// SPDX-License-Identifier: Apache-2.0
import type { Ref } from "preact";
import type { Navigation } from "../state/use-view";
import type { View } from "../state/view";

interface Props {
  input: Ref<HTMLInputElement>;
  view: View;
  nav: Navigation;
}

// The search over a flame graph's frames. Escape empties it, then leaves it.
export function FrameSearch({ input, view, nav }: Props) {
  return (
    <input
      ref={input}
      class="search"
      type="search"
      aria-label="Search frames"
      placeholder="Search frames  /"
      value={view.search}
      onInput={(event) => nav.adjust({ search: event.currentTarget.value })}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        event.preventDefault();
        if (view.search) nav.adjust({ search: "" });
        else event.currentTarget.blur();
      }}
    />
  );
}
