import { ApiFailure, asFailure } from "../api/failure";
import { UPLOAD_BYTES_MAX } from "../api/rules";
import { sendWatched } from "../api/sending";
import { bytes } from "../format/number";
import type { Sent, Transport } from "./queue";

/** Compresses a file. @throws ApiFailure if it is too large even so */
async function packed(file: Blob, onPacked: (bytes: number) => void): Promise<Blob> {
  let done = 0;
  onPacked(done);
  const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform: (piece, to) => {
      done += piece.length;
      onPacked(done);
      to.enqueue(piece);
    },
  });
  const body = await new Response(file.stream().pipeThrough(counted).pipeThrough(new CompressionStream("gzip"))).blob();
  if (body.size <= UPLOAD_BYTES_MAX) return body;
  throw new ApiFailure(
    413,
    "payload_too_large",
    `the compressed file has ${bytes(body.size)}; the limit is ${bytes(UPLOAD_BYTES_MAX)}`,
  );
}

/** Sends one file to the lake. */
export const overHttp: Transport = ({ key, file, replace, pack }, onSent, onPacked) => {
  let stop: () => void = () => undefined;
  let stopped = false;
  const send = async (): Promise<Sent> => {
    try {
      const body = pack ? await packed(file, onPacked) : file;
      if (stopped) return { done: false, failure: new ApiFailure(0, "cancelled", "the upload was cancelled") };
      const { done, cancel } = sendWatched(
        {
          method: "PUT",
          path: `/api/lake?key=${encodeURIComponent(key)}`,
          body,
          headers: { "Content-Type": "application/octet-stream", ...(replace ? {} : { "If-None-Match": "*" }) },
          file: body,
        },
        // Progress is in bytes of the file.
        (sent) => onSent(body.size > 0 ? (sent / body.size) * file.size : sent),
      );
      stop = cancel;
      await done;
      return { done: true };
    } catch (error) {
      return { done: false, failure: asFailure(error) };
    }
  };
  return {
    ended: send(),
    abort: () => {
      stopped = true;
      stop();
    },
  };
};
