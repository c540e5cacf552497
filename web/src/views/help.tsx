// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";

const KEYS: [keys: string[], meaning: string][] = [
  [["/"], "Search the frames"],
  [["←", "→", "↑", "↓"], "Walk the frames: neighbours, callers, callees"],
  [["Enter"], "Zoom to the focused frame"],
  [["Esc"], "Undo, in this order: the source file, the highlight, the zoom, then the time selection; in the timeline: the details, then the time selection"],
  [["Shift", "Enter"], "In the list of processes: add one to the selection, or take it away"],
  [["G"], "CPU time, GPU time or waiting"],
  [["M"], "Strips of the GPUs’ state: clocks, power, memory, …"],
  [["W"], "Only CPU time while the GPU is idle"],
  [["S"], "Time by source line for the highlighted function or the zoomed frame"],
  [["F"], "Show or fold the frames of the interpreter, start-up code and CUDA’s libraries"],
  [["I"], "Icicle or flame"],
  [["C"], "Colour by binary or by kind"],
  [["+", "-"], "In the timeline: zoom; ← and → pan, ↑ and ↓ choose a track"],
  [["Enter", ",", "."], "In the timeline: the chosen track’s slice in the middle, the one before, the one after"],
  [["?"], "This list"],
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
        <h2 id="help-title">Keys and pointer</h2>
        <table>
          <tbody>
            {KEYS.map(([keys, meaning]) => (
              <tr key={meaning}>
                <th scope="row">
                  {keys.map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </th>
                <td>{meaning}</td>
              </tr>
            ))}
            {POINTER.map(([gesture, meaning]) => (
              <tr key={gesture}>
                <th scope="row">{gesture}</th>
                <td>{meaning}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <p>The address contains the whole selection: copy it to share this view.</p>
        <button type="button" class="plain" onClick={() => dialog.current!.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
