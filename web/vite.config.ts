// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vitest/config";

export default defineConfig({
  // Relative addresses: the UI works under any path that a proxy puts in front of it.
  base: "./",
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: {
    // `npm run dev` beside `gpusonde up` or `npm run fixture`.
    proxy: { "/api": process.env["GPUSONDE_URL"] ?? "http://127.0.0.1:7171" },
  },
  test: {
    include: ["tests/unit/**/*.test.ts"],
    // One thread: the suite takes a second, and the machine is shared with the C++ build.
    pool: "threads",
    poolOptions: { threads: { singleThread: true } },
  },
});
