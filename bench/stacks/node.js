// SPDX-License-Identifier: Apache-2.0
// A JavaScript program of everyday parts for bench/stacks_bench.py: code that is interpreted first and compiled later,
// callbacks from built-in functions, C++ below. Runs for the seconds given.
'use strict';
const zlib = require('zlib');

const text = 'the quick brown fox jumps over the lazy dog '.repeat(200);

function fibonacci(n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

function sortByKey() {
  return Array.from({length: 2000}, (_, i) => i).sort((a, b) => (a % 17) - (b % 17));
}

function replaceWords() {
  return text.replace(/\b(\w+)\b/g, (word) => word.toUpperCase());
}

function roundTrip() {
  const made = {};
  for (let i = 0; i < 50; ++i) made['key' + i] = Array.from({length: 20}, (_, j) => i * j);
  return JSON.parse(JSON.stringify(made, (key, value) => value));
}

function* squares(n) {
  for (let i = 0; i < n; ++i) yield i * i;
}

function sumSquares() {
  let sum = 0;
  for (const square of squares(3000)) sum += square;
  return sum;
}

function compress() {
  return zlib.deflateSync(text, {level: 9}).length;
}

function work() {
  fibonacci(18);
  sortByKey();
  replaceWords();
  roundTrip();
  sumSquares();
  compress();
}

const end = Date.now() + 1000 * Number(process.argv[2]);
(function turn() {
  work();
  if (Date.now() < end) setImmediate(turn);
})();
