import type { ErrorBody } from "./types";

/** Why a request wasn't answered as asked. `code` is the API's machine code; `unreachable` is ours: no answer came. */
export class ApiFailure extends Error {
  readonly status: number;
  readonly code: string;
  readonly problems: Record<string, unknown>[];
  readonly requestId: string | undefined;
  /** Seconds after which another try makes sense, if the service said so. */
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

  /** Whether the same request may well be answered later. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** The failure that a response tells, whatever its body is. */
export function failureOf(status: number, body: unknown, retryAfter?: string | null): ApiFailure {
  const seconds = retryAfter ? Number.parseInt(retryAfter, 10) : Number.NaN;
  const wait = Number.isFinite(seconds) ? { retryAfter: seconds } : {};
  if (typeof body === "object" && body !== null && "error" in body && "message" in body) {
    const told = body as ErrorBody;
    return new ApiFailure(status, told.error, told.message, { ...told, ...wait });
  }
  return new ApiFailure(status, "unknown", `the service returned ${String(status)} without a message`, wait);
}

export function asFailure(error: unknown): ApiFailure {
  if (error instanceof ApiFailure) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new ApiFailure(0, "client", message);
}
