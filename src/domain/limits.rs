//! Limits of the contract, of configs and of jobs, and those shared by several layers; relations between them are
//! checked at compile time.
//!
//! A limit of one module is next to its use. Limits of dashboards are in [`crate::domain::dashboard::limits`], those of
//! clients in `http::limits`.

/// Longest object key, in bytes (the limit of S3).
pub const KEY_BYTES_MAX: usize = 1_024;
/// Maximum number of files with invalid keys that a run reports.
pub const SKIPPED_KEYS_MAX: usize = 100;
/// Maximum number of percent-decodings in the search for a hidden `..`; text that is encoded more often is a plain
/// name.
pub const KEY_DECODINGS_MAX: usize = 4;
/// Longest pipeline slug or dashboard name, in bytes.
pub const SLUG_BYTES_MAX: usize = 63;
/// Longest table name, in bytes.
pub const TABLE_NAME_BYTES_MAX: usize = 63;
/// Longest column name, in bytes.
pub const COLUMN_NAME_BYTES_MAX: usize = 128;
/// Largest `pipeline.json`, in bytes.
pub const CONFIG_BYTES_MAX: usize = 4 << 20;
/// Values and brackets of a `pipeline.json`: 1,000 tables of 60 columns each have 190,000. In memory, each takes up to 450
/// bytes.
pub const CONFIG_VALUES_MAX: usize = 200_000;
/// Values and brackets of a JSON body: a config, and more.
pub const JSON_BODY_VALUES_MAX: usize = CONFIG_VALUES_MAX + 10_000;
/// Largest file that the API accepts, in bytes (the contract's figure).
pub const UPLOAD_BYTES_MAX: u64 = 104_857_600;
/// Largest body of a validation request, in bytes: oversized configs are validated as well, up to the limit of uploads.
pub const VALIDATE_BYTES_MAX: u64 = UPLOAD_BYTES_MAX;
/// Mappings (tables) of a pipeline.
pub const MAPPINGS_MAX: usize = 1_000;
/// Columns of a table.
pub const COLUMNS_MAX: usize = 4_096;
/// Longest title of a pipeline, in characters.
pub const TITLE_CHARS_MAX: usize = 200;
/// Longest description of a pipeline, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 10_000;
/// Header names of a column.
pub const ALIASES_MAX: usize = 64;
/// Maximum 0-based position of a column in a source without a header.
pub const SOURCE_POSITION_MAX: u64 = 65_535;
/// Maximum number of cells of a record without a header.
pub const WIDTH_MAX: u64 = SOURCE_POSITION_MAX + 1;
/// Date and time patterns of a column, and the longest of them in bytes.
pub const FORMATS_MAX: usize = 32;
pub const FORMAT_BYTES_MAX: usize = 256;
/// Maximum number of recorded columns that the config doesn't have, per source and per table.
pub const EXTRA_COLUMNS_MAX: usize = 64;
pub const TABLE_EXTRA_COLUMNS_MAX: usize = 256;
/// Currency signs of a column, and the longest of them in bytes.
pub const CURRENCIES_MAX: usize = 16;
pub const CURRENCY_BYTES_MAX: usize = 16;
/// Null, true or false tokens of a mapping.
pub const TOKENS_MAX: usize = 256;
/// Maximum number of problems of one validation; the list is truncated there.
pub const PROBLEMS_MAX: usize = 1_000;
/// Names in `parquet.readers`.
pub const READERS_MAX: usize = 32;
/// Globs of a mapping.
pub const GLOBS_MAX: usize = 256;
/// Variants of a mapping.
pub const VARIANTS_MAX: usize = 64;
/// Columns of all variants of a pipeline: each variant has those of its mapping. They take some 300 bytes each in memory.
pub const VARIANT_COLUMNS_MAX: usize = 100_000;
/// Partition columns of a table.
pub const PARTITION_COLUMNS_MAX: usize = 8;
/// Sort columns of a table.
pub const SORT_COLUMNS_MAX: usize = 32;
/// Checks of a mapping.
pub const CHECKS_MAX: usize = 256;
/// Longest SQL expression in a config, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 16_384;
/// Longest pattern or text of `from_path`, in bytes.
pub const PATH_PATTERN_BYTES_MAX: usize = 256;
/// Most texts of `from_path`.
pub const PATH_TEXTS_MAX: usize = 1_000;
/// Longest escaped partition segment (`<col>=<value>`), in bytes: the limit of common file systems for one name.
pub const PARTITION_SEGMENT_BYTES_MAX: usize = 255;
/// Longest SQL statement of a query, in bytes.
pub const QUERY_BYTES_MAX: usize = 256 << 10;
/// Parameters of a query.
pub const QUERY_PARAMETERS_MAX: usize = 1_000;
/// Longest delimiter, in bytes.
pub const DELIMITER_BYTES_MAX: usize = 8;
/// Default and bounds of `csv.record_bytes_max`, in bytes.
pub const RECORD_BYTES_DEFAULT: u64 = 2 << 20;
pub const RECORD_BYTES_MIN: u64 = 1 << 10;
pub const RECORD_BYTES_MAX: u64 = 64 << 20;
/// Bounds of `csv.skip_rows`, `skip_rows_after_header` and `skip_footer_rows`.
pub const SKIP_ROWS_MAX: u64 = 100_000;
pub const SKIP_FOOTER_ROWS_MAX: u64 = 1_000;
/// Default and bounds of `parquet.row_group_rows`.
pub const ROW_GROUP_ROWS_DEFAULT: u64 = 1_048_576;
pub const ROW_GROUP_ROWS_MIN: u64 = 1_024;
pub const ROW_GROUP_ROWS_MAX: u64 = 16_777_216;
/// Default and bounds of `parquet.file_bytes_max`.
pub const FILE_BYTES_DEFAULT: u64 = 256 << 20;
pub const FILE_BYTES_MIN: u64 = 64 << 10;
pub const FILE_BYTES_MAX: u64 = 4 << 30;
/// Defaults of `parquet.file_text_bytes` and `parquet.tail_text_bytes`, and their common maximum.
pub const FILE_TEXT_BYTES_DEFAULT: u64 = 256 << 20;
pub const TAIL_TEXT_BYTES_DEFAULT: u64 = 16 << 20;
pub const TEXT_BYTES_MAX: u64 = 1 << 40;
/// Maximum `keep_history`: 3,650 days.
pub const KEEP_HISTORY_SECONDS_MAX: u64 = 3_650 * 86_400;
/// Default memory of a run, see `SVC_RUN_MEMORY_BYTES`.
pub const RUN_MEMORY_BYTES_DEFAULT: u64 = 512 << 20;
/// Minimum memory of a run.
pub const RUN_MEMORY_BYTES_MIN: u64 = 64 << 20;
/// Maximum length of a value quoted in a reject or a message, in bytes.
pub const REJECT_VALUE_BYTES_MAX: usize = 4_096;
/// Maximum length of a raw record stored in a reject, in bytes.
pub const REJECT_RAW_BYTES_MAX: usize = 65_536;
/// Failed expressions of one source that are explained; each costs a request to the engine.
pub const EXPRESSION_FAILURES_EXPLAINED_MAX: u64 = 20;
/// Maximum number of plans of a run whose sources change meanwhile, before it fails with `source_changed`.
pub const REPLANS_MAX: u32 = 3;
/// Deepest nesting of a value of type `json`: the default limit of common readers.
pub const JSON_DEPTH_MAX: usize = 128;
/// Keys of one page of a listing (the limit of S3).
pub const LIST_PAGE_KEYS_MAX: usize = 1_000;
/// Maximum decompression ratio of a gzip or zstd source, beyond the first `INFLATE_FREE_BYTES`.
pub const INFLATE_RATIO_MAX: u64 = 1_000;
pub const INFLATE_FREE_BYTES: u64 = 64 << 20;
/// Decompressed bytes of a source that a preview reads.
pub const PREVIEW_BYTES_MAX: usize = 16 << 20;
/// Maximum number of rows, and of rejects, in a preview.
pub const PREVIEW_ROWS_MAX: usize = 1_000;
/// Largest terminal record of a job that is read, in bytes: it has an entry for each source.
pub const JOB_RECORD_BYTES_MAX: u64 = 256 << 20;
/// Jobs of one page of a history.
pub const HISTORY_PAGE_JOBS_MAX: usize = 200;
/// Active jobs of a pipeline that its history shows.
pub const ACTIVE_JOBS_SHOWN_MAX: usize = 1_000;
/// Ended jobs in the index of all pipelines, about 250 bytes each in Redis.
pub const ENDED_JOBS_INDEXED_MAX: usize = 250_000;
/// Objects of a pipeline that is exported or imported.
pub const ARCHIVE_OBJECTS_MAX: usize = 250_000;
/// Largest archive to import, in bytes; `SVC_IMPORT_BYTES_MAX` sets a lower limit.
pub const IMPORT_BYTES_MAX: u64 = 16 << 30;
/// Largest root of a table's manifest, in bytes. A larger one counts as unreadable: earlier versions stored all entries in
/// it.
pub const ROOT_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of passes of a delete that finds new objects.
pub const DELETE_ROUNDS_MAX: usize = 8;
/// Largest body of posted events, in bytes: stores send one to some hundred records.
pub const EVENT_BYTES_MAX: u64 = 1 << 20;
/// Longest job id, in bytes.
pub const JOB_ID_BYTES_MAX: usize = 64;
/// Default and maximum number of rows in a query's response.
pub const QUERY_ROWS_DEFAULT: u64 = 1_000;
pub const QUERY_ROWS_MAX: u64 = 10_000;
/// Maximum size of the rows in a query's response, in bytes of JSON.
pub const QUERY_ROWS_BYTES_MAX: u64 = 16 << 20;
/// Largest body of a query request, in bytes: its text and its parameters.
pub const QUERY_BODY_BYTES_MAX: u64 = 1 << 20;
/// Default and maximum number of rows in one page of a table.
pub const PAGE_ROWS_DEFAULT: u64 = 100;
pub const PAGE_ROWS_MAX: u64 = 1_000;
/// Longest query id from a client, in bytes.
pub const QUERY_ID_BYTES_MAX: usize = 64;
/// Longest stored `trigger` of a job, in bytes.
pub const TRIGGER_BYTES_MAX: usize = 32;
/// Quiet after which a batch of new files becomes a job (the contract's figure), in ms.
pub const DEBOUNCE_QUIET_MS: i64 = 5_000;
/// Longest wait from the first event of a batch (the contract's figure), in ms.
pub const DEBOUNCE_WAIT_MS_MAX: i64 = 30_000;
/// Maximum number of keys of a debounce window, and their total bytes; beyond it the window covers all keys of the
/// pipeline.
pub const CHANGED_KEYS_MAX: usize = 4_096;
pub const CHANGED_KEYS_BYTES_MAX: usize = 1 << 20;
/// TTL of a job's keys, in ms; a job that waited longer checks all keys.
pub const CHANGED_KEYS_TTL_MS: u64 = 7 * 86_400_000;
/// Wait before the second attempt, in ms; it doubles with each attempt.
pub const BACKOFF_FIRST_MS: u64 = 2_000;
pub const BACKOFF_MS_MAX: u64 = 60_000;
/// Jitter of a backoff, in percent up and down.
pub const BACKOFF_JITTER_PERCENT: u64 = 20;
/// Wait of a job beyond the expiry of its pipeline's lock, in ms.
pub const DEFER_MARGIN_MS: u64 = 1_000;
/// Longest wait of a deferred job, in ms.
pub const DEFER_MS_MAX: u64 = 30_000;
/// Maximum number of manual jobs in a row that a process claims before an older automatic one.
pub const MANUAL_PREFERRED_MAX: u32 = 4;
/// Wait of a job with a source that is still being written, in ms: the time without a change after which a file counts
/// as complete.
pub const UNSETTLED_WAIT_MS: u64 = 5_000;
/// Newest job records that a pipeline keeps, however old they are.
pub const JOB_RECORDS_KEPT: usize = 10;
/// Wait of a job of a paused pipeline before it is looked at again, in ms.
pub const PAUSED_WAIT_MS: u64 = 30_000;
/// Longest reason of a pause, in bytes.
pub const PAUSE_REASON_BYTES_MAX: usize = 500;
/// Longest wait of a job for any reason, in ms.
pub const JOB_WAIT_MS_MAX: u64 = 60_000;
/// TTL of a job's live record after its end, in ms.
pub const LIVE_AFTER_END_MS: u64 = 3_600_000;
/// Maximum number of dead letters; the oldest are dropped.
pub const DEAD_ENTRIES_MAX: usize = 10_000;
/// TTL of the tombstone of a deleted or renamed pipeline, in ms; jobs older than the tombstone are dropped.
pub const TOMBSTONE_MS: u64 = 86_400_000;

/// Default number of attempts before a job fails permanently, see `MAX_ATTEMPTS`.
pub const ATTEMPTS_DEFAULT: u32 = 3;
/// First and longest pause between two comparisons of a pipeline whose job failed because of a dependency, in ms; it
/// doubles each time.
pub const RECHECK_PAUSE_FIRST_MS: u64 = 60_000;
pub const RECHECK_PAUSE_MS_MAX: u64 = 3_600_000;
/// Delay before a failed comparison of a pipeline is repeated, in ms.
pub const RECHECK_RETRY_MS: u64 = 5_000;
/// Maximum number of pipelines waiting for a comparison, and TTL of the list after the last addition, in ms.
pub const RECHECKS_MAX: usize = 10_000;
pub const RECHECKS_TTL_MS: u64 = 7 * 86_400_000;

/// Stored notifications; beyond it, the oldest ones without a pending delivery are dropped.
pub const NOTIFICATIONS_MAX: usize = 1_000;
/// Longest title and text of a notification, in characters.
pub const NOTIFICATION_TITLE_CHARS_MAX: usize = 200;
pub const NOTIFICATION_TEXT_CHARS_MAX: usize = 2_000;
/// Maximum number of notification targets.
pub const NOTIFICATION_TARGETS_MAX: usize = 16;
/// Attempts to deliver a notification to a target, and the first and the longest pause between two, in ms; it doubles each
/// time: about 22 hours together.
pub const DELIVERY_ATTEMPTS_MAX: u32 = 30;
pub const DELIVERY_PAUSE_FIRST_MS: u64 = 5_000;
pub const DELIVERY_PAUSE_MS_MAX: u64 = 3_600_000;
/// TTL of a condition's state after its last change, in ms.
pub const INCIDENT_TTL_MS: u64 = 90 * 86_400_000;
/// Shortest and longest `freshness` of a mapping, in seconds.
pub const FRESHNESS_SECONDS_MIN: u64 = 60;
pub const FRESHNESS_SECONDS_MAX: u64 = 3_650 * 86_400;

const _: () = assert!(DELIVERY_PAUSE_FIRST_MS <= DELIVERY_PAUSE_MS_MAX);
const _: () = assert!(RECHECK_PAUSE_FIRST_MS <= RECHECK_PAUSE_MS_MAX && RECHECK_PAUSE_MS_MAX <= RECHECKS_TTL_MS);
const _: () = assert!(QUERY_ROWS_DEFAULT <= QUERY_ROWS_MAX && PAGE_ROWS_DEFAULT <= PAGE_ROWS_MAX);
const _: () = assert!(BACKOFF_MS_MAX <= JOB_WAIT_MS_MAX && DEFER_MS_MAX <= JOB_WAIT_MS_MAX);
const _: () = assert!(UNSETTLED_WAIT_MS <= JOB_WAIT_MS_MAX);
const _: () = assert!(DEBOUNCE_QUIET_MS < DEBOUNCE_WAIT_MS_MAX);
const _: () = assert!(BACKOFF_FIRST_MS <= BACKOFF_MS_MAX && DEFER_MARGIN_MS < DEFER_MS_MAX);
const _: () = assert!(REJECT_VALUE_BYTES_MAX <= REJECT_RAW_BYTES_MAX);
const _: () = assert!(RECORD_BYTES_MIN <= RECORD_BYTES_DEFAULT && RECORD_BYTES_DEFAULT <= RECORD_BYTES_MAX);
const _: () = assert!(RECORD_BYTES_MAX <= i32::MAX as u64, "a record's text fits the 32-bit offsets of a column");
const _: () = assert!(ROW_GROUP_ROWS_MIN <= ROW_GROUP_ROWS_DEFAULT && ROW_GROUP_ROWS_DEFAULT <= ROW_GROUP_ROWS_MAX);
const _: () = assert!(FILE_BYTES_MIN <= FILE_BYTES_DEFAULT && FILE_BYTES_DEFAULT <= FILE_BYTES_MAX);
const _: () = assert!(RUN_MEMORY_BYTES_MIN <= RUN_MEMORY_BYTES_DEFAULT);
