/** The form that turns a key into a cookie. The key is kept nowhere. */

import { useState } from "preact/hooks";
import { signIn } from "../account";
import { said } from "../api";

export function SignIn() {
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  async function submit(event: SubmitEvent) {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    setBusy(true);
    try {
      await signIn(String(new FormData(form).get("key")));
    } catch (error) {
      form.reset();
      setWrong(said(error));
    }
    setBusy(false);
  }
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <h1>
          <span class="mark" aria-hidden="true" />
          Cellblock
        </h1>
        <label for="key">API key</label>
        <input id="key" name="key" type="password" required autocomplete="off" spellcheck={false} aria-describedby="about-key" />
        <p id="about-key" class="hint">
          The console sees what this key may see. You stay signed in for 8 hours. <code>cellblock key create NAME</code> makes a key.
        </p>
        <div role="alert">{wrong !== "" && <p class="failure">{wrong}</p>}</div>
        <button type="submit" class="primary" disabled={busy}>
          Sign in
        </button>
      </form>
    </main>
  );
}
