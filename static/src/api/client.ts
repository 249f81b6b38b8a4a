/**
 * HTTP client of the service.
 *
 * Invariant: every failure is an {@link ApiFailure}. A lost session or an unreachable service is recorded here, for
 * all views at once.
 */
import createClient from "openapi-fetch";
import { connection } from "./connection";
import { ApiFailure, failureOf } from "./failure";
import { unlessHeld } from "./held";
import type { paths } from "./schema";
import { session } from "./session";

/** `fetch` that records the state of connection and session. */
async function send(input: Request | string, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  const { pathname } = new URL(request.url);
  // Stops polling until the next login, so that the service isn't asked for refusals every second.
  if (session.state.value === "lost" && pathname !== "/session" && !pathname.startsWith("/api/auth/")) {
    throw new ApiFailure(401, "unauthorized", "your session has expired");
  }
  await unlessHeld(pathname);
  let response: Response;
  try {
    response = await fetch(request);
  } catch (error) {
    if (request.signal.aborted) throw error;
    connection.lost("unreachable");
    throw new ApiFailure(0, "unreachable", "the service can't be reached");
  }
  recordStatus(response.status, pathname);
  return response;
}

/** Updates connection and session from a response status. */
export function recordStatus(status: number, path: string): void {
  if (status === 401 && path !== "/api/auth/login") session.lost();
  else if (status === 500 || status === 502 || status === 503) connection.checkHealth();
  else connection.answered();
}

export const api = createClient<paths>({ baseUrl: location.origin, fetch: send });

interface Answered<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns the body of a successful response. @throws ApiFailure */
export async function ask<T>(answering: Promise<Answered<T>>): Promise<T> {
  return (await askWithResponse(answering)).data;
}

/** Returns body and response, for callers that need headers. @throws ApiFailure */
export async function askWithResponse<T>(answering: Promise<Answered<T>>): Promise<{ data: T; response: Response }> {
  const { data, error, response } = await answering;
  if (!response.ok) throw failureOf(response.status, error, response.headers.get("Retry-After"));
  return { data: data as T, response };
}

/** Returns the response of a request whose body isn't JSON. @throws ApiFailure */
export async function sendRaw(path: string, init?: RequestInit): Promise<Response> {
  const response = await send(new URL(path, location.origin).href, init);
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => undefined);
  throw failureOf(response.status, body, response.headers.get("Retry-After"));
}
