// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { ApiError, apiUrl, getJson, postJson } from "../api/client";
import type { Session } from "../api/types";

// Exchanges a token for a session's cookie, which scripts can't read. The token is kept nowhere.
export function SignIn({ ended, onDone }: { ended: boolean; onDone: () => void }) {
  const [token, setToken] = useState("");
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState("");
  const submit = async (event: Event) => {
    event.preventDefault();
    setSending(true);
    try {
      await postJson(apiUrl("sign-in"), { token: token.trim() });
      const answer = await getJson<Session>(apiUrl("session"), new AbortController().signal);
      if (answer?.json.needs_sign_in) throw new ApiError("no_cookie", "The token is right, but the browser didn’t keep the session’s cookie: allow cookies for this address.");
      onDone();
    } catch (cause) {
      setProblem(cause instanceof ApiError ? cause.message : String(cause));
      setSending(false);
    }
  };
  return (
    <div class="message sign-in">
      <h2>Sign in to gpusonde</h2>
      {ended && <p role="status">The session has ended.</p>}
      <p>This server shows its data to holders of a token.</p>
      <form onSubmit={submit}>
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="current-password"
          spellcheck={false}
          autofocus
          required
          aria-invalid={problem !== ""}
          aria-describedby={problem ? "sign-in-problem" : undefined}
          value={token}
          onInput={(event) => {
            setToken(event.currentTarget.value);
            setProblem("");
          }}
        />
        <button type="submit" class="plain" disabled={sending || token.trim() === ""}>
          Sign in
        </button>
      </form>
      {problem && (
        <p id="sign-in-problem" class="problem" role="alert">
          {problem}
        </p>
      )}
      <p class="dim">Whoever runs the server makes one:</p>
      <pre>gpusonde token new --tokens FILE --name NAME --scope read</pre>
    </div>
  );
}

// Who is signed in, and the way out.
export function SignedIn({ name, onSignedOut }: { name: string; onSignedOut: () => void }) {
  const [problem, setProblem] = useState("");
  const leave = () => postJson(apiUrl("sign-out"), {}).then(onSignedOut, (cause: Error) => setProblem(cause.message));
  return (
    <button type="button" class={`plain ${problem ? "alarm" : ""}`} title={problem || `Signed in with the token ${name}`} onClick={leave}>
      Sign out
    </button>
  );
}
