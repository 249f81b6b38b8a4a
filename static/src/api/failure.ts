import { connection } from "./connection";
import type { ErrorBody } from "./types";

/** Browser messages for a part of the UI that failed to load. */
const NOT_LOADED = /dynamically imported module|importing a module script|unable to preload|error loading/i;

/** A failed request. `code` is the API's machine-readable code, or `unreachable` if there was no response. */
export class ApiFailure extends Error {
  readonly status: number;
  readonly code: string;
  readonly problems: Record<string, unknown>[];
  readonly requestId: string | undefined;
  /** Seconds to wait before a retry, if the service says so. */
  readonly retryAfter: number | undefined;

  constructor(status: number, code: string, message: string, more: Partial<ErrorBody> & { retryAfter?: number } = {}) {
    super(message);
    this.name = "ApiFailure";
    this.status = status;
    this.code = code;
    this.problems = more.problems ?? [];
    this.requestId = more.request_id;
    this.retryAfter = more.retryAfter;
  }

  /** Whether a retry may succeed. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Creates the failure for a response, whatever its body. */
export function failureOf(status: number, body: unknown, retryAfter?: string | null): ApiFailure {
  const seconds = retryAfter ? Number.parseInt(retryAfter, 10) : Number.NaN;
  const wait = Number.isFinite(seconds) ? { retryAfter: seconds } : {};
  if (typeof body === "object" && body !== null && "error" in body && "message" in body) {
    const answer = body as ErrorBody;
    return new ApiFailure(status, answer.error, answer.message, { ...answer, ...wait });
  }
  return new ApiFailure(status, "unknown", `the service returned ${String(status)} without a message`, wait);
}

/** Problems of a refused config that a message has. */
const PROBLEMS_MAX = 3;

/** The message with the first problems of the config. */
export function withProblems({ message, problems }: ApiFailure): string {
  const words = problems.map((one) => String(one.message));
  return words.length === 0 ? message : `${message}: ${words.slice(0, PROBLEMS_MAX).join("; ")}`;
}

/** Whether a part of the UI couldn't be loaded: the service is down, or has another version than the page. */
export const isNotLoaded = (error: unknown): boolean => error instanceof Error && NOT_LOADED.test(error.message);

export function asFailure(error: unknown): ApiFailure {
  if (error instanceof ApiFailure) return error;
  if (isNotLoaded(error))
    return connection.state.value === "unreachable"
      ? new ApiFailure(0, "unreachable", "the service can't be reached")
      : new ApiFailure(0, "outdated", "Lakemill was updated. Reload the page.");
  const message = error instanceof Error ? error.message : String(error);
  return new ApiFailure(0, "client", message);
}
