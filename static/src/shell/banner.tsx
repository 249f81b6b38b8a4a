import { connection } from "../api/connection";
import { Button } from "../components/button";
import "./banner.css";

const WORDS = {
  unreachable: "The service can't be reached. Data may be out of date; reconnecting automatically.",
  failing: "The service's store or queue is unavailable; retrying automatically.",
} as const;

/** Banner while the service is unavailable. */
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
