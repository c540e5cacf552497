// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Process } from "../api/types";
import { withoutFolders } from "../flamegraph/names";
import { formatCount, formatDuration } from "../format";
import { printable } from "../printable";
import { MAX_PROCESSES } from "../state/view";

interface Props {
  // Null until they are read.
  processes: Process[] | null;
  // Ids; empty for all.
  chosen: string[];
  onChoose: (ids: string[]) => void;
}

// Longer lists need typing to find an entry.
const MAX_LISTED = 100;

// What can be chosen in the list: everything, all that match what is typed, or one process.
type Entry = { key: string; ids: string[]; process?: Process };

// A combobox of processes by name, process id, container or command line. Enter or a click shows one process only;
// Shift+Enter or its box adds it to the chosen ones or takes it away.
export function ProcessPicker({ processes: read, chosen, onChoose }: Props) {
  const processes = useMemo(() => read ?? [], [read]);
  // Null while closed.
  const [typed, setTyped] = useState<string | null>(null);
  // The entry that Enter takes, by its key: a live list changes its order.
  const [active, setActive] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const open = typed !== null;
  // The chosen ones when the list opened come first: they stay in place while boxes are ticked.
  const [first, setFirst] = useState<string[]>([]);
  const listed = useMemo(() => chosenFirst(processes, first), [processes, first]);
  const found = useMemo(() => (typed === null ? [] : search(listed, typed)), [listed, typed]);
  const entries = entriesOf(found, typed ?? "");
  const at = Math.max(0, entries.findIndex(({ key }) => key === active));
  const full = chosen.length >= MAX_PROCESSES;

  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [at, open]);

  const show = () => {
    setTyped("");
    setActive("");
    setFirst(chosen);
  };
  const close = () => setTyped(null);
  const choose = (entry: Entry | undefined) => {
    close();
    field.current?.blur();
    if (entry && entry.ids.join() !== chosen.join()) onChoose(entry.ids);
  };
  const toggle = ({ ids, process }: Entry) => {
    if (!process) return onChoose(ids);
    if (chosen.includes(process.id)) onChoose(chosen.filter((id) => id !== process.id));
    else if (!full) onChoose([...chosen, process.id]);
  };
  const press = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by !== undefined) {
      event.preventDefault();
      if (!open) return show();
      setActive(entries[Math.min(Math.max(at + by, 0), entries.length - 1)]!.key);
    } else if (event.key === "Enter" && open) {
      event.preventDefault();
      const entry = entries[at];
      if (event.shiftKey && entry) toggle(entry);
      else choose(entry);
    } else if (event.key === "Escape" && open) {
      event.preventDefault();
      event.stopPropagation();
      close();
      field.current?.blur();
    }
  };

  return (
    <span class="picker">
      <input
        ref={field}
        class="choice process"
        role="combobox"
        aria-label="Process"
        aria-expanded={open}
        aria-controls="process-list"
        aria-autocomplete="list"
        aria-activedescendant={open ? `process-${at}` : undefined}
        title={chosen.length > 0 ? describe(chosen, processes) : "Search processes by name, process id or command line"}
        placeholder={open ? "Name, pid or command" : "All processes"}
        value={open ? typed : titleOf(chosen, processes)}
        autocomplete="off"
        spellcheck={false}
        onFocus={show}
        onBlur={close}
        onInput={(event) => {
          const text = event.currentTarget.value;
          setTyped(text);
          // The best match, if something is searched for.
          setActive(text.trim() === "" ? "" : (search(listed, text)[0]?.id ?? ""));
        }}
        onKeyDown={press}
      />
      {chosen.length > 0 && !open && (
        <button type="button" class="quiet" aria-label="Show all processes" title="Show all processes" onClick={() => onChoose([])}>
          ✕
        </button>
      )}
      {open && (
        // A press on the list must not take the focus from the field, which would close the list.
        <div class="picker-list" onMouseDown={(event) => event.preventDefault()}>
          <ul id="process-list" role="listbox" aria-label="Processes" aria-multiselectable="true" ref={list}>
            {entries.map((entry, i) => (
              <li
                key={entry.key}
                id={`process-${i}`}
                role="option"
                aria-selected={i === at}
                aria-checked={isChosen(entry, chosen)}
                title={entry.process && printable(entry.process.command)}
                onMouseMove={() => i !== at && setActive(entry.key)}
                onClick={(event) => (event.shiftKey ? toggle(entry) : choose(entry))}
              >
                <span
                  class="picker-box"
                  aria-hidden="true"
                  onClick={(event) => {
                    event.stopPropagation();
                    toggle(entry);
                  }}
                />
                {entry.process ? <Row process={entry.process} /> : entry.ids.length === 0 ? "All processes" : `All ${formatCount(entry.ids.length)} that match`}
              </li>
            ))}
            {found.length === 0 && <li class="dim">{read === null ? "Reading the processes…" : processes.length === 0 ? "No process in this time." : "No process matches."}</li>}
            {found.length > MAX_LISTED && <li class="dim">{formatCount(found.length - MAX_LISTED)} more: type to narrow the list.</li>}
          </ul>
          <p class="picker-keys dim">
            {full ? `${MAX_PROCESSES} processes are chosen: no more can be added.` : "Enter: only this one. Shift+Enter or its box: several."}
          </p>
        </div>
      )}
    </span>
  );
}

function Row({ process: { name, pid, container, command, cpu_ns, gpus } }: { process: Process }) {
  const gpu_ns = (gpus ?? []).reduce((sum, { busy_ns }) => sum + busy_ns, 0);
  return (
    <>
      <span class="picker-name">{printable(name)}</span> {pid > 0 && <span class="figure dim">{pid}</span>}
      {container !== "" && <span class="picker-container">{printable(container)}</span>}
      <span class="picker-command dim">{printable(withoutFolders(command))}</span>
      <span class="figure">{gpu_ns > 0 && cpu_ns === 0 ? `${formatDuration(gpu_ns)} GPU` : `${formatDuration(cpu_ns)} CPU`}</span>
    </>
  );
}

// The chosen processes in a few characters; empty for all.
export function titleOf(chosen: string[], processes: Process[]): string {
  if (chosen.length !== 1) return chosen.length === 0 ? "" : `${formatCount(chosen.length)} processes`;
  return nameOf(chosen[0]!, processes);
}

function describe(chosen: string[], processes: Process[]): string {
  if (chosen.length === 1) {
    return printable(processes.find(({ id }) => id === chosen[0])?.command ?? "") || titleOf(chosen, processes);
  }
  const named = chosen.slice(0, 20).map((id) => nameOf(id, processes));
  return [...named, ...(chosen.length > 20 ? [`and ${formatCount(chosen.length - 20)} more`] : [])].join("\n");
}

function nameOf(id: string, processes: Process[]): string {
  const process = processes.find((p) => p.id === id);
  return process ? `${printable(process.name)} ${process.pid}` : `${id.slice(0, 8)}… (not running then)`;
}

// The chosen processes first, also those without a sample in this time, so that they can be taken away.
function chosenFirst(processes: Process[], chosen: string[]): Process[] {
  if (chosen.length === 0) return processes;
  const known = new Map(processes.map((process) => [process.id, process]));
  const absent = (id: string): Process => ({ id, pid: 0, name: `${id.slice(0, 8)}…`, command: "not running in this time", container: "", cpu_ns: 0, started_us: null, exited_us: null, threads: [] });
  return [...chosen.map((id) => known.get(id) ?? absent(id)), ...processes.filter(({ id }) => !chosen.includes(id))];
}

function entriesOf(found: Process[], typed: string): Entry[] {
  const all: Entry = { key: "", ids: [] };
  const several = typed.trim() !== "" && found.length > 1 && found.length <= MAX_PROCESSES;
  const matching: Entry[] = several ? [{ key: "matching", ids: found.map(({ id }) => id) }] : [];
  return [all, ...matching, ...found.slice(0, MAX_LISTED).map((process) => ({ key: process.id, ids: [process.id], process }))];
}

function isChosen({ ids, process }: Entry, chosen: string[]): boolean {
  if (process) return chosen.includes(process.id);
  return ids.length === chosen.length && ids.every((id) => chosen.includes(id));
}

// What each process of a list is found by, in lower case: made once, not for every key that is typed.
const searched = new WeakMap<Process[], string[]>();

function searchedTexts(processes: Process[]): string[] {
  let texts = searched.get(processes);
  if (!texts) {
    texts = processes.map(({ name, pid, container, command }) => `${name} ${pid} ${container} ${command}`.toLowerCase());
    searched.set(processes, texts);
  }
  return texts;
}

// The processes with every word in their name, process id, container or command line, in the given order.
export function search(processes: Process[], text: string): Process[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return processes;
  const texts = searchedTexts(processes);
  return processes.filter((_, i) => words.every((word) => texts[i]!.includes(word)));
}
