import { asFailure, type ApiFailure } from "../api/failure";
import { duration } from "./time";

/** What to do about an error, by its code. The message says what happened. */
const REMEDIES: Record<string, string> = {
  unreachable: "Check that the service is running and that this device is online. The page reconnects automatically.",
  bucket_not_found: "Check the S3_BUCKET_ settings of the service, or create the bucket.",
  s3_error: "The object store failed to handle the request. If this continues, check the store and the service log.",
  worker_unavailable: "Check that a worker is running and that SVC_WORKER_URL points to it, then try again.",
  kv_unavailable: "The queue is unavailable and will be retried. If this continues, check the service log.",
  pipeline_config_not_found: "Write a config in the Config tab, or upload a CSV to generate one.",
  pipeline_not_found: "It may have been renamed or deleted. Check the list of pipelines.",
  pipeline_busy: "Wait until the current operation has completed, then try again.",
  already_exists: "Choose another name.",
  overloaded: "The service is busy. Try again in a moment.",
  query_timeout: "Reduce the query: filter on a partition column, or aggregate first.",
  query_out_of_memory: "Reduce the query: filter first, select fewer columns, or sort fewer rows.",
  query_too_large: "Query fewer tables, or filter on a partition column.",
  table_damaged: "Start a clean run of the pipeline. It rebuilds its tables from the CSVs.",
  payload_too_large: "Split the file, or write it to the store directly.",
  precondition_failed: "Someone else changed it in the meantime.",
};

export function remedyOf(failure: ApiFailure): string | undefined {
  if (failure.retryAfter !== undefined) return `Try again in ${duration(failure.retryAfter * 1_000)}.`;
  return REMEDIES[failure.code];
}

/** Message and remedy in one line. */
export function withRemedy(error: unknown): string {
  const failure = asFailure(error);
  const remedy = remedyOf(failure);
  return remedy === undefined ? failure.message : `${failure.message}. ${remedy}`;
}
