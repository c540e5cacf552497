// SPDX-License-Identifier: Apache-2.0

// Control characters but tabs, line separators, and the marks that reorder text around them.
const HIDDEN = /[\0-\x08\n-\x1f\x7f-\x9f\u2028\u2029\p{Bidi_Control}]/gu;

// Untrusted text (names of functions, files and processes, command lines) as it is shown. Characters with which a name
// can look like another one are escaped as in the program's own texts (src/base/printable.h): "\x1b", "\u202e".
export function printable(text: string): string {
  return text.replace(HIDDEN, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}
