import { useSignalEffect } from "@preact/signals";
import { connection } from "./connection";
import { session } from "./session";

/** Runs an action when the service recovers or after a new login, to retry what failed. */
export function useRecovered(action: () => void): void {
  useSignalEffect(() => {
    if (session.state.value === "in" && connection.state.value === "ok") action();
  });
}
