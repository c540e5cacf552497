// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import type { Process } from "../api/types";
import { formatDuration } from "../format";

interface Props {
  processes: Process[];
  chosen: string | null;
  onChoose: (id: string | null) => void;
}

// Longer lists need typing to find an entry.
const MAX_LISTED = 100;

// A combobox of processes by name, process id, container or command line.
export function ProcessPicker({ processes, chosen, onChoose }: Props) {
  // Null while closed.
  const [typed, setTyped] = useState<string | null>(null);
  const [active, setActive] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const open = typed !== null;
  const found = open ? search(processes, typed) : [];
  // The first entry means all processes.
  const entries: (Process | null)[] = [null, ...found.slice(0, MAX_LISTED)];
  const process = processes.find(({ id }) => id === chosen);
  const title = chosen === null ? "" : process ? `${process.name} ${process.pid}` : `${chosen.slice(0, 8)}… (not running then)`;

  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [active, open]);

  const show = () => {
    setTyped("");
    setActive(0);
  };
  const close = () => setTyped(null);
  const choose = (entry: Process | null | undefined) => {
    close();
    field.current?.blur();
    if (entry !== undefined && (entry?.id ?? null) !== chosen) onChoose(entry?.id ?? null);
  };
  const press = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by !== undefined) {
      event.preventDefault();
      if (!open) return show();
      setActive((at) => Math.min(Math.max(at + by, 0), entries.length - 1));
    } else if (event.key === "Enter" && open) {
      event.preventDefault();
      choose(entries[active]);
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
        aria-activedescendant={open ? `process-${active}` : undefined}
        title={process?.command ?? "Search processes by name, process id or command line"}
        placeholder={open ? "Name, pid or command" : "All processes"}
        value={open ? typed : title}
        autocomplete="off"
        spellcheck={false}
        onFocus={show}
        onBlur={close}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          // The best match, if something is searched for.
          setActive(event.currentTarget.value.trim() === "" ? 0 : 1);
        }}
        onKeyDown={press}
      />
      {chosen !== null && !open && (
        <button type="button" class="quiet" aria-label="Show all processes" title="Show all processes" onClick={() => onChoose(null)}>
          ✕
        </button>
      )}
      {open && (
        // A press on the list must not take the focus from the field, which would close the list.
        <ul class="picker-list" id="process-list" role="listbox" aria-label="Processes" ref={list} onMouseDown={(event) => event.preventDefault()}>
          {entries.map((entry, i) => (
            <li key={entry?.id ?? ""} id={`process-${i}`} role="option" aria-selected={i === active} title={entry?.command} onMouseMove={() => i !== active && setActive(i)} onClick={() => choose(entry)}>
              {entry === null ? (
                "All processes"
              ) : (
                <>
                  <span class="picker-name">{entry.name}</span> <span class="figure dim">{entry.pid}</span>
                  {entry.container !== "" && <span class="picker-container">{entry.container}</span>}
                  <span class="picker-command dim">{entry.command}</span>
                  <span class="figure">{formatDuration(entry.cpu_ns)} CPU</span>
                </>
              )}
            </li>
          ))}
          {found.length === 0 && <li class="dim">No process matches.</li>}
          {found.length > MAX_LISTED && <li class="dim">{found.length - MAX_LISTED} more: type to narrow the list.</li>}
        </ul>
      )}
    </span>
  );
}

// The processes with every word in their name, process id, container or command line, in the given order.
export function search(processes: Process[], text: string): Process[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return processes;
  return processes.filter(({ name, pid, container, command }) => {
    const all = `${name} ${pid} ${container} ${command}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}
