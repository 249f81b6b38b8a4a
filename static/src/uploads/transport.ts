/** Sends a file by XMLHttpRequest: `fetch` tells nothing of how far a body is sent. */
import { noted } from "../api/client";
import { connection } from "../api/connection";
import { ApiFailure, failureOf } from "../api/failure";
import type { Sent, Transport } from "./queue";

export const overHttp: Transport = ({ key, file, replace }, onSent) => {
  const request = new XMLHttpRequest();
  const path = "/api/lake";
  request.open("PUT", `${path}?key=${encodeURIComponent(key)}`);
  request.setRequestHeader("Content-Type", "application/octet-stream");
  if (!replace) request.setRequestHeader("If-None-Match", "*");
  request.upload.onprogress = ({ loaded }) => onSent(loaded);
  const ended = new Promise<Sent>((resolve) => {
    request.onload = () => {
      noted(request.status, path);
      if (request.status >= 200 && request.status < 300) resolve({ done: true });
      else {
        const body = parsed(request.responseText);
        resolve({ done: false, failure: failureOf(request.status, body, request.getResponseHeader("Retry-After")) });
      }
    };
    request.onerror = () => {
      void readable(file).then((itIs) => {
        if (itIs) connection.lost("unreachable");
        const failure = itIs
          ? new ApiFailure(0, "unreachable", "the connection broke while it was sent")
          : new ApiFailure(
              0,
              "unreadable",
              "the browser can't read the file any more: it was changed, moved or deleted",
            );
        resolve({ done: false, failure });
      });
    };
    request.onabort = () => resolve({ done: false, failure: new ApiFailure(0, "cancelled", "cancelled") });
  });
  request.send(file);
  return { ended, abort: () => request.abort() };
};

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
