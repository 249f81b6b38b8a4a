/**
 * The one way to the service.
 *
 * Invariant: every failure is an {@link ApiFailure}; a lost session and a service that doesn't answer are noticed here,
 * for all views at once.
 */
import createClient from "openapi-fetch";
import { connection } from "./connection";
import { ApiFailure, failureOf } from "./failure";
import type { paths } from "./schema";
import { session } from "./session";

/** `fetch`, with what it tells of connection and session noted. */
async function send(input: Request | string, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  const { pathname } = new URL(request.url);
  // Who asks every second is not to be refused every second: nothing goes out until somebody has logged in again.
  if (session.state.value === "lost" && pathname !== "/session" && !pathname.startsWith("/api/auth/")) {
    throw new ApiFailure(401, "unauthorized", "your session has expired");
  }
  let response: Response;
  try {
    response = await fetch(request);
  } catch (error) {
    if (request.signal.aborted) throw error;
    connection.lost("unreachable");
    throw new ApiFailure(0, "unreachable", "the service can't be reached");
  }
  noted(response.status, pathname);
  return response;
}

/** What an answer's status tells of session and connection. */
export function noted(status: number, path: string): void {
  if (status === 401 && path !== "/api/auth/login") session.lost();
  else if (status === 500 || status === 502 || status === 503) connection.doubted();
  else connection.answered();
}

export const api = createClient<paths>({ baseUrl: location.origin, fetch: send });

interface Answered<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of a success. @throws ApiFailure */
export async function ask<T>(answering: Promise<Answered<T>>): Promise<T> {
  return (await askWhole(answering)).data;
}

/** The same with the response, for its headers. @throws ApiFailure */
export async function askWhole<T>(answering: Promise<Answered<T>>): Promise<{ data: T; response: Response }> {
  const { data, error, response } = await answering;
  if (!response.ok) throw failureOf(response.status, error, response.headers.get("Retry-After"));
  return { data: data as T, response };
}

/** For bodies that are no JSON: the response of a success. @throws ApiFailure */
export async function sendRaw(path: string, init?: RequestInit): Promise<Response> {
  const response = await send(new URL(path, location.origin).href, init);
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => undefined);
  throw failureOf(response.status, body, response.headers.get("Retry-After"));
}
