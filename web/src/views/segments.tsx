// SPDX-License-Identifier: Apache-2.0

// A choice of one of a few options, all visible.
export function Segments<T extends string>({
  label,
  value,
  options,
  onChoose,
}: {
  label: string;
  value: T;
  options: [value: T, text: string, hint: string][];
  onChoose: (value: T) => void;
}) {
  return (
    <span class="segments" role="group" aria-label={label}>
      {options.map(([option, text, hint]) => (
        <button type="button" key={option} title={hint} aria-pressed={value === option} onClick={() => onChoose(option)}>
          {text}
        </button>
      ))}
    </span>
  );
}
