/** Uploads a body by XMLHttpRequest: `fetch` reports no upload progress. */
import { recordStatus } from "./client";
import { connection } from "./connection";
import { ApiFailure, failureOf } from "./failure";

export interface Sending<T> {
  /** The response's JSON. Rejects with an {@link ApiFailure}. */
  done: Promise<T>;
  cancel: () => void;
}

interface Wanted {
  method: "PUT" | "POST";
  path: string;
  body: Blob | FormData;
  headers?: Record<string, string>;
  /** The user's file within the body; it may have disappeared before the upload. */
  file: Blob;
}

export function sendWatched<T>(
  { method, path, body, headers = {}, file }: Wanted,
  onSent: (bytes: number) => void,
): Sending<T> {
  const request = new XMLHttpRequest();
  request.open(method, path);
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  request.upload.onprogress = ({ loaded }) => onSent(loaded);
  const done = new Promise<T>((resolve, reject) => {
    request.onload = () => {
      recordStatus(request.status, path);
      const answer = parsed(request.responseText);
      if (request.status >= 200 && request.status < 300) resolve(answer as T);
      else reject(failureOf(request.status, answer, request.getResponseHeader("Retry-After")));
    };
    request.onerror = () => void readable(file).then((itIs) => reject(itIs ? broken() : unreadable()));
    request.onabort = () => reject(new ApiFailure(0, "cancelled", "cancelled"));
  });
  request.send(body);
  return { done, cancel: () => request.abort() };
}

function broken(): ApiFailure {
  connection.lost("unreachable");
  return new ApiFailure(0, "unreachable", "the connection was lost during the upload");
}

const unreadable = () =>
  new ApiFailure(0, "unreadable", "the browser can no longer read the file: it was changed, moved or deleted");

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function readable(file: Blob): Promise<boolean> {
  try {
    await file.slice(0, 1).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}
