import { asFailure } from "../api/failure";
import { sendWatched } from "../api/sending";
import type { Sent, Transport } from "./queue";

/** Sends one file to the lake. */
export const overHttp: Transport = ({ key, file, replace }, onSent) => {
  const { done, cancel } = sendWatched(
    {
      method: "PUT",
      path: `/api/lake?key=${encodeURIComponent(key)}`,
      body: file,
      headers: { "Content-Type": "application/octet-stream", ...(replace ? {} : { "If-None-Match": "*" }) },
      file,
    },
    onSent,
  );
  const ended = done.then(
    (): Sent => ({ done: true }),
    (error: unknown): Sent => ({ done: false, failure: asFailure(error) }),
  );
  return { ended, abort: cancel };
};
