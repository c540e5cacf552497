// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import type { Picture } from "../flamegraph/chart";
import { foldFunctions } from "../flamegraph/fold";
import { groupFunctions, hiddenFunctions, type Groups } from "../flamegraph/groups";
import { layoutTree } from "../flamegraph/layout";
import { findPath, ROOT, type Tree } from "../flamegraph/model";
import { DARK, fillTable, LIGHT, packColour, SHADES, shadeOf } from "../flamegraph/palette";
import { matched, matchName, matchText, type Match } from "../flamegraph/search";
import type { View } from "./view";

export interface Derived {
  picture: Picture;
  groups: Groups;
  // 1 for each group with frames in the picture.
  drawn: Uint8Array;
  // Functions that match the search; null without a search.
  found: Uint8Array | null;
  // The highlighted frames under the zoomed frame.
  match: Match | null;
  // The link zooms to a frame that this selection doesn't have.
  zoomLost: boolean;
}

// Derives the picture from the profile and the view. Each step is memoised by its inputs, so that typing in the
// search doesn't lay out a million frames again.
export function usePicture(whole: Tree, view: View, isDark: boolean): Derived {
  const groups = useMemo(() => groupFunctions(whole, view.colour), [whole, view.colour]);
  const hidden = useMemo(() => hiddenFunctions(groups, whole.functions, view), [groups, view.fold, view.hide.join("\n"), view.only]);
  const tree = useMemo(() => (hidden ? foldFunctions(whole, hidden) : whole), [whole, hidden]);
  const drawn = useMemo(() => groupsIn(tree, groups), [tree, groups]);
  const layout = useMemo(() => layoutTree(tree), [tree]);
  const found = useMemo(() => matchText(tree.functions, view.search), [tree.functions, view.search]);
  const picked = useMemo(() => matchName(tree.functions, view.pick), [tree.functions, view.pick]);
  const sought = useMemo(() => (view.zoom === null ? ROOT : findPath(tree, view.zoom)), [tree, view.zoom]);
  // A frame without time has no width to fill.
  const zoom = sought !== null && tree.total[sought]! > 0 ? sought : ROOT;
  const matches = picked ?? found;
  const match = useMemo(() => matches && matched(tree, zoom, matches), [tree, zoom, matches]);

  const theme = isDark ? DARK : LIGHT;
  const fills = useMemo(() => Uint32Array.from(fillTable(theme), packColour), [theme]);
  const fillOf = useMemo(
    () =>
      Uint8Array.from(groups.ofFunction, (group, f) => {
        return groups.groups[group]!.slot * SHADES + shadeOf(tree.functions.name[f]!);
      }),
    [groups],
  );
  const flame = view.orientation === "flame";
  const picture = useMemo(
    () => ({ tree, layout, zoom, flame, fillOf, fills, theme, matches }),
    [tree, layout, zoom, flame, fillOf, fills, theme, matches],
  );
  return { picture, groups, drawn, found, match, zoomLost: view.zoom !== null && sought === null };
}

function groupsIn(tree: Tree, { groups, ofFunction }: Groups): Uint8Array {
  const drawn = new Uint8Array(groups.length);
  for (let i = 1; i < tree.count; i++) drawn[ofFunction[tree.function[i]!]!] = 1;
  return drawn;
}
