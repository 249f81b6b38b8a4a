import { useEffect, useRef, useState } from "preact/hooks";
import { api, ask } from "../api/client";
import { asFailure } from "../api/failure";
import { client } from "../api/queries";
import { session } from "../api/session";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { TextField } from "../components/field";
import { useTitle } from "../components/page";
import { now } from "../components/time";
import { timeLeft } from "../format/time";
import "./login.css";

function LoginForm() {
  const [password, setPassword] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  /** End of the lockout. */
  const [until, setUntil] = useState(0);
  const form = useRef<HTMLFormElement>(null);
  const wait = Math.max(0, until - now.value.getTime());

  useEffect(() => form.current?.querySelector<HTMLInputElement>("input[name=password]")?.focus(), []);

  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy || wait > 0) return;
    setBusy(true);
    setError(undefined);
    try {
      await ask(api.POST("/api/auth/login", { body: { password } }));
      session.opened();
      // Views that failed without a session try again instead of keeping their error.
      await client.resetQueries({ predicate: ({ state }) => state.status === "error" });
      await client.invalidateQueries();
    } catch (thrown) {
      const failure = asFailure(thrown);
      if (failure.status === 429 && failure.retryAfter !== undefined) setUntil(Date.now() + failure.retryAfter * 1_000);
      setError(failure.status === 401 ? "Incorrect password." : failure.message);
      form.current?.querySelector<HTMLInputElement>("input[name=password]")?.select();
    } finally {
      setBusy(false);
    }
  };

  return (
    <form ref={form} class="stack" onSubmit={(event) => void submit(event)}>
      {/* Password managers need a user name. */}
      <input type="text" name="username" value="admin" autocomplete="username" hidden readOnly />
      <TextField
        label="Password"
        type="password"
        name="password"
        autocomplete="current-password"
        required
        value={password}
        error={wait > 0 ? `Too many attempts. Try again in ${timeLeft(wait)}.` : error}
        onInput={(event) => setPassword(event.currentTarget.value)}
      />
      <Button type="submit" variant="primary" busy={busy} disabled={wait > 0}>
        Log in
      </Button>
    </form>
  );
}

/** Login page. */
export function LoginPage() {
  useTitle("Log in");
  return (
    <main class="login">
      <div class="card stack">
        <div class="login-mark">
          <img src="/favicon.svg" alt="" width="28" height="28" />
          <h1>Lakemill</h1>
        </div>
        <LoginForm />
        <details class="dim">
          <summary>Where do I find the password?</summary>
          <p>
            Ask the person who runs Lakemill. If that&apos;s you: <code>lakemill up</code> printed it when it was
            started for the first time.
          </p>
          <details>
            <summary>A new password, for operators</summary>
            <p>
              <code>lakemill hash-password</code> makes the hash that services read from{" "}
              <code>SVC_ADMIN_PASSWORD_HASH</code>.
            </p>
          </details>
        </details>
      </div>
    </main>
  );
}

/** Detects a login in another tab. */
function useLoginInOtherTab(): void {
  useEffect(() => {
    const look = () => {
      ask(api.GET("/session")).then(
        ({ authenticated }) => {
          if (!authenticated) return;
          session.opened();
          void client.invalidateQueries();
        },
        () => undefined,
      );
    };
    window.addEventListener("focus", look);
    return () => window.removeEventListener("focus", look);
  }, []);
}

/** Login dialog over the view after a session expired; unsaved input is kept. */
export function LoginDialog() {
  useLoginInOtherTab();
  return (
    <Dialog title="Your session has ended" closable={false} onClose={() => undefined}>
      <p>Log in to continue. Your unsaved changes are kept.</p>
      <LoginForm />
    </Dialog>
  );
}

export async function logout(): Promise<void> {
  await ask(api.POST("/api/auth/logout", {}));
  session.closed();
  client.clear();
}
