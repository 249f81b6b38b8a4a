/** Sends an archive, with its progress: `fetch` doesn't tell of the sending. */
import { ApiFailure, failureOf } from "../../api/failure";
import { noted } from "../../api/client";
import { connection } from "../../api/connection";

export interface Imported {
  slug: string;
  objects: number;
  bytes: number;
}

export interface Sending {
  done: Promise<Imported>;
  cancel: () => void;
}

const ADDRESS = "/api/pipelines/import";

/** @throws ApiFailure, by its promise */
export function sendArchive(file: File, slug: string, onProgress: (sent: number) => void): Sending {
  const request = new XMLHttpRequest();
  const done = new Promise<Imported>((resolve, reject) => {
    request.upload.addEventListener("progress", (event) => onProgress(event.loaded));
    request.addEventListener("load", () => {
      noted(request.status, ADDRESS);
      const body = parsed(request.responseText);
      if (request.status >= 200 && request.status < 300) resolve(body as Imported);
      else reject(failureOf(request.status, body, request.getResponseHeader("Retry-After")));
    });
    request.addEventListener("error", () => {
      connection.lost("unreachable");
      reject(new ApiFailure(0, "unreachable", "the service can't be reached, or it refused the file before its end"));
    });
    request.addEventListener("abort", () => reject(new ApiFailure(0, "cancelled", "the import was cancelled")));
  });
  const form = new FormData();
  if (slug) form.append("slug", slug);
  form.append("file", file, file.name || "archive.zip");
  request.open("POST", ADDRESS);
  request.send(form);
  return { done, cancel: () => request.abort() };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
