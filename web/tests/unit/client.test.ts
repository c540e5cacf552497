// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test, vi } from "vitest";
import { getJson, postJson } from "../../src/api/client";

afterEach(() => vi.unstubAllGlobals());

const answer = (body: string, status: number) => vi.stubGlobal("fetch", async () => new Response(body, { status }));
const get = () => getJson("api/v1/hosts", new AbortController().signal);

test("the server's own words are shown", async () => {
  answer(JSON.stringify({ error: { code: "unavailable", message: "full" } }), 503);
  for (const ask of [get, () => postJson("api/v1/hosts", {})]) {
    await expect(ask()).rejects.toMatchObject({ code: "unavailable", message: "full", status: 503 });
  }
});

test("any JSON that a proxy answers is an error with its status", async () => {
  for (const body of ["null", "7", "[]", '{"error":null}', '"no"']) {
    answer(body, 502);
    for (const ask of [get, () => postJson("api/v1/hosts", {})]) {
      await expect(ask(), body).rejects.toMatchObject({ code: "http_502", status: 502, message: expect.stringContaining("502") });
    }
  }
});

test("a page of a proxy is no answer", async () => {
  answer("<html>", 502);
  await expect(get()).rejects.toMatchObject({ code: "malformed" });
  await expect(postJson("api/v1/hosts", {})).rejects.toMatchObject({ code: "http_502" });
});
