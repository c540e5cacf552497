// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";

type Line = [keys: string[], meaning: string];

const KEYS: [where: string, keys: Line[]][] = [
  [
    "On every page",
    [
      [["Esc"], "Undo, in this order: the source file, the highlight, the search, the zoom, then the time selection; in the timeline: the details, then the time selection"],
      [["←", "→"], "On a strip: select a time and move it, with Shift change its length"],
      [["↑", "↓"], "On a strip: the one above or below"],
      [["Shift", "Enter"], "In the list of processes: add one to the selection, or take it away"],
      [["M"], "Strips of the GPUs’ state: clocks, power, memory, …"],
      [["?"], "This list"],
    ],
  ],
  [
    "Profile and comparison",
    [
      [["/"], "Search the frames"],
      [["←", "→", "↑", "↓"], "Walk the frames: neighbours, callers, callees"],
      [["Enter"], "Zoom to the focused frame"],
      [["G"], "CPU time, GPU time or waiting"],
      [["W"], "Only CPU time while the GPU is idle"],
      [["I"], "Icicle or flame"],
    ],
  ],
  [
    "Profile",
    [
      [["S"], "Time by source line for the highlighted function or the zoomed frame"],
      [["F"], "Show or fold the frames of the interpreter, start-up code and CUDA’s libraries"],
      [["C"], "Colour by binary or by kind"],
      [["↑", "↓"], "In the table: the function above or below"],
    ],
  ],
  [
    "Timeline",
    [
      [["←", "→"], "Pan"],
      [["+", "-"], "Zoom"],
      [["↑", "↓"], "Choose a track"],
      [["Enter", ",", "."], "The chosen track’s slice in the middle, the one before, the one after"],
    ],
  ],
];

const POINTER: [gesture: string, meaning: string][] = [
  ["Drag on a strip", "Select a time range"],
  ["Double click on a strip", "Show the whole time"],
  ["Click a frame", "Zoom to the frame; click a caller to zoom out"],
  ["Click a row of the table", "Highlight the function’s frames"],
  ["Ctrl and wheel, or pinch", "Zoom the timeline around the pointer or between the fingers; Shift and wheel pans, a drag does both ways"],
  ["Drag on the ruler, or with Shift", "Select a time in the timeline"],
  ["Click a slice", "Show its details, or zoom in if it stands for several; a double click always zooms in"],
  ["Click a file’s name", "Time by line of that source file"],
  ["Click a name in the legend", "Fold its frames into their callers"],
];

export function Help({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current!.showModal(), []);
  return (
    <dialog
      class="help"
      ref={dialog}
      aria-labelledby="help-title"
      onClose={onClose}
      onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}
    >
      <div class="help-body">
        <header>
          <h2 id="help-title">Keys and pointer</h2>
          <button type="button" class="plain" onClick={() => dialog.current!.close()}>
            Close
          </button>
        </header>
        <table>
          {KEYS.map(([where, lines]) => (
            <tbody key={where}>
              <Heading text={where} />
              {lines.map(([keys, meaning]) => (
                <tr key={meaning}>
                  <th scope="row">
                    {keys.map((key) => (
                      <kbd key={key}>{key}</kbd>
                    ))}
                  </th>
                  <td>{meaning}</td>
                </tr>
              ))}
            </tbody>
          ))}
          <tbody>
            <Heading text="Pointer" />
            {POINTER.map(([gesture, meaning]) => (
              <tr key={gesture}>
                <th scope="row">{gesture}</th>
                <td>{meaning}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <p>The address contains the whole selection: copy it to share this view.</p>
      </div>
    </dialog>
  );
}

function Heading({ text }: { text: string }) {
  return (
    <tr>
      <th scope="rowgroup" class="group" colSpan={2}>
        {text}
      </th>
    </tr>
  );
}
