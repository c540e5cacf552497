// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Group, Groups } from "../flamegraph/groups";
import { ROOT_KINDS } from "../flamegraph/model";
import type { Theme } from "../flamegraph/palette";
import { formatShare } from "../format";
import type { Navigation } from "../state/use-view";
import type { View } from "../state/view";

// As many as fit one line on most screens; a count stands for the rest.
const SHORT = 9;

interface Props {
  groups: Groups;
  drawn: Uint8Array;
  total: number;
  theme: Theme;
  view: View;
  nav: Navigation;
}

// Explains the colours, with the self time of each group. A click folds a group's frames into their callers; "only"
// keeps just that group.
export function Legend({ groups: { groups: allGroups }, drawn, total, theme, view, nav }: Props) {
  const [all, setAll] = useState(false);
  const isHidden = ({ name }: Group) => (view.only === null ? view.hide.includes(name) : view.only !== name);
  // Groups whose frames are all folded away are not in the picture, so their colours are left out.
  const groups = allGroups.filter((group, i) => !ROOT_KINDS.has(group.kind) && (drawn[i] === 1 || isHidden(group)));
  // Hidden groups stay in the legend, so that they can be shown again.
  const everything = all || groups.length <= SHORT + 1;
  const shown = everything ? groups : groups.filter((group, i) => i < SHORT || view.hide.includes(group.name) || view.only === group.name);

  const toggle = (name: string) => {
    if (view.only !== null) return nav.step({ only: null, hide: [] });
    const hide = view.hide.includes(name) ? view.hide.filter((other) => other !== name) : [...view.hide, name];
    nav.step({ hide });
  };

  return (
    <ul class="legend" aria-label={view.colour === "binary" ? "Binaries" : "Kinds of frames"}>
      {shown.map((group) => {
        const hidden = isHidden(group);
        return (
          <li key={group.name} class={hidden ? "hidden" : ""}>
            <button
              type="button"
              aria-pressed={!hidden}
              title={`${group.detail}\nClick to ${hidden ? "show its frames again" : "fold its frames into their callers"}`}
              onClick={() => toggle(group.name)}
            >
              <span class="swatch" style={{ background: theme.fills[group.slot] }} />
              <span class="legend-name">{group.label}</span> <span class="figure">{group.self > 0 && formatShare(group.self, total)}</span>
            </button>
            {groups.length > 1 && (
              <button
                type="button"
                class="only"
                aria-pressed={view.only === group.name}
                aria-label={view.only === group.name ? "Show all again" : `Show only ${group.label}`}
                onClick={() => nav.step({ only: view.only === group.name ? null : group.name, hide: [] })}
              >
                {view.only === group.name ? "all" : "only"}
              </button>
            )}
          </li>
        );
      })}
      {shown.length < groups.length && (
        <li>
          <button type="button" class="quiet" onClick={() => setAll(true)}>
            {groups.length - shown.length} more
          </button>
        </li>
      )}
      {all && groups.length > SHORT + 1 && (
        <li>
          <button type="button" class="quiet" onClick={() => setAll(false)}>
            fewer
          </button>
        </li>
      )}
    </ul>
  );
}
