// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";

const heading = (page) => page.raw.getByRole("heading", { name: "Sign in to gpusonde" });

async function signIn(page, token) {
  await page.raw.getByLabel("Token").fill(token);
  await page.press("Enter");
}

export const tests = [
  {
    name: "a server with tokens asks for one, says why one is refused, and shows the page for a good one",
    scenario: "tokens",
    async run(page, server) {
      await heading(page).waitFor();
      assert.ok(await page.raw.getByLabel("Token").evaluate((input) => input === document.activeElement && input.type === "password"));
      assert.ok(await page.raw.getByRole("button", { name: "Sign in" }).isDisabled(), "there is nothing to send");
      assert.ok(!server.requests.some((url) => url.includes("overview")), "nothing is asked before");
      await signIn(page, "bad");
      await page.raw.getByRole("alert").filter({ hasText: "doesn't know the token" }).waitFor();
      await signIn(page, " good ");
      await page.ready();
      assert.equal(await page.raw.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href]).includes("good")), false);
      await page.raw.getByRole("button", { name: "Sign out" }).click();
      await heading(page).waitFor();
      assert.equal(server.state.signedIn, false);
      assert.equal(await page.raw.getByLabel("Token").inputValue(), "");
    },
  },
  {
    name: "a browser that keeps no cookie is told so",
    scenario: "tokens",
    async run(page, server) {
      await heading(page).waitFor();
      await page.raw.route("**/api/v1/session", (route) => route.fulfill({ json: { needs_sign_in: true, name: "", scope: "" } }));
      await signIn(page, "good");
      await page.raw.getByRole("alert").filter({ hasText: "didn’t keep the session’s cookie" }).waitFor();
      assert.equal(server.state.signedIn, true);
      assert.ok(await page.raw.getByRole("button", { name: "Sign in" }).isEnabled());
    },
  },
  {
    name: "a session that ends while the page is open leads to signing in, and back to the same view",
    scenario: "tokens",
    query: "?graph=flame",
    async run(page, server) {
      await heading(page).waitFor();
      await signIn(page, "good");
      await page.ready();
      server.state.signedIn = false;
      await page.raw.getByText("The session has ended.").waitFor();
      await signIn(page, "good");
      await page.ready();
      assert.equal(page.param("graph"), "flame");
    },
  },
  {
    name: "a session that ends under a recording, which isn't polled, leads to signing in at the next question",
    scenario: "tokens",
    async run(page, server) {
      await page.raw.route("**/api/v1/overview", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, ...(response.ok() && { json: { ...(await response.json()), mode: "view", live: false } }) });
      });
      await heading(page).waitFor();
      await signIn(page, "good");
      await page.ready();
      server.state.signedIn = false;
      await page.press("g");
      await page.raw.getByText("The session has ended.").waitFor();
      await signIn(page, "good");
      await page.raw.getByRole("heading", { name: "This recording has no GPU work" }).waitFor();
      assert.equal(page.param("type"), "gpu");
    },
  },
  {
    name: "without tokens nobody signs in or out",
    scenario: "realistic",
    async run(page) {
      await page.ready();
      assert.equal(await page.raw.getByRole("button", { name: /Sign/ }).count(), 0);
    },
  },
];
