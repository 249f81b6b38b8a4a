import { connection } from "../api/connection";
import { Button } from "../components/button";
import "./banner.css";

const WORDS = {
  unreachable: "The service can't be reached. What is shown may be old; this page goes on by itself once it answers.",
  failing: "The service answers, but its store or queue doesn't. It is tried again by itself.",
} as const;

/** Tells that the service doesn't answer, as long as it doesn't. */
export function Banner() {
  const state = connection.state.value;
  return (
    <div role="status" aria-live="polite">
      {state !== "ok" && (
        <div class="banner">
          <span class="grow">{WORDS[state]}</span>
          <Button onClick={() => connection.retry()}>Try now</Button>
        </div>
      )}
    </div>
  );
}
