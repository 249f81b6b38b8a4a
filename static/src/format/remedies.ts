import { asFailure, type ApiFailure } from "../api/failure";
import { duration } from "./time";

/** What a person can do about an error, by its machine code. The message itself says what happened. */
const REMEDIES: Record<string, string> = {
  unreachable: "Check that the service is running and that this device is online. The page reconnects automatically.",
  bucket_not_found: "Check the S3_BUCKET_ settings of the service, or make the bucket.",
  s3_error:
    "The object store didn't do what it was asked. If this goes on, look at the store and at the service's log.",
  worker_unavailable: "Check that a worker runs, and that SVC_WORKER_URL of the service says where, then try again.",
  kv_unavailable: "The queue's store doesn't answer. It is tried again; if this goes on, look at the service's log.",
  pipeline_config_not_found: "Write a config in the Config tab, or drop a CSV to have one proposed.",
  pipeline_not_found: "It may have been renamed or deleted. The list of pipelines shows what is there.",
  pipeline_busy: "Wait for what is going on to end, then try again.",
  already_exists: "Choose another name.",
  overloaded: "Too much is going on at once. Try again in a moment.",
  query_timeout: "Ask for less: filter on a partition column, or aggregate first.",
  query_out_of_memory: "Ask for less at a time: filter first, name fewer columns, or sort fewer rows.",
  query_too_large: "Name fewer tables, or filter on a partition column.",
  payload_too_large: "Split the file, or put it into the store directly.",
  precondition_failed: "It was changed by somebody else in the meantime.",
};

export function remedyOf(failure: ApiFailure): string | undefined {
  if (failure.retryAfter !== undefined) return `Try again in ${duration(failure.retryAfter * 1_000)}.`;
  return REMEDIES[failure.code];
}

/** What happened and what to do, in one line. */
export function withRemedy(error: unknown): string {
  const failure = asFailure(error);
  const remedy = remedyOf(failure);
  return remedy === undefined ? failure.message : `${failure.message}. ${remedy}`;
}
