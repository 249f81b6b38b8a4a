//! The functions that expressions may use, and classes of others.
//!
//! `functions.txt` holds DuckDB's scalar functions (operators and reviewed macros too) that are deterministic, free of
//! side effects, and read neither files nor environment, settings, catalog, time or randomness.

use std::collections::HashSet;
use std::sync::LazyLock;

static FUNCTIONS: LazyLock<HashSet<String>> = LazyLock::new(|| functions().map(str::to_ascii_lowercase).collect());

/// The allowed names in ascending order.
pub fn functions() -> impl Iterator<Item = &'static str> {
    include_str!("functions.txt").lines()
}

/// Functions whose value differs between runs.
const CHANGING: &[&str] = &[
    "ago",
    "current_catalog",
    "current_connection_id",
    "current_database",
    "current_date",
    "current_localtime",
    "current_localtimestamp",
    "current_query",
    "current_query_id",
    "current_role",
    "current_schema",
    "current_schemas",
    "current_setting",
    "current_time",
    "current_timestamp",
    "current_transaction_id",
    "current_user",
    "currval",
    "gen_random_uuid",
    "get_current_time",
    "get_current_timestamp",
    "getenv",
    "getvariable",
    "localtime",
    "localtimestamp",
    "nextval",
    "now",
    "random",
    "session_user",
    "setseed",
    "today",
    "transaction_timestamp",
    "txid_current",
    "user",
    "uuid",
    "uuidv4",
    "uuidv7",
    "version",
];

/// DuckDB's aggregates.
pub const AGGREGATES: &[&str] = &[
    "any_value",
    "approx_count_distinct",
    "approx_quantile",
    "approx_top_k",
    "arbitrary",
    "arg_max",
    "arg_max_null",
    "arg_max_nulls_last",
    "arg_min",
    "arg_min_null",
    "arg_min_nulls_last",
    "argmax",
    "argmin",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bitstring_agg",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "count_if",
    "count_star",
    "countif",
    "covar_pop",
    "covar_samp",
    "cume_dist",
    "dense_rank",
    "entropy",
    "favg",
    "fill",
    "first",
    "first_value",
    "fsum",
    "group_concat",
    "histogram",
    "histogram_exact",
    "kahan_sum",
    "kurtosis",
    "kurtosis_pop",
    "lag",
    "last",
    "last_value",
    "lead",
    "list",
    "listagg",
    "mad",
    "max",
    "max_by",
    "mean",
    "median",
    "min",
    "min_by",
    "mode",
    "nth_value",
    "ntile",
    "percent_rank",
    "product",
    "quantile",
    "quantile_cont",
    "quantile_disc",
    "rank",
    "rank_dense",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "reservoir_quantile",
    "row_number",
    "sem",
    "skewness",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "sum_no_overflow",
    "sumkahan",
    "var_pop",
    "var_samp",
    "variance",
];

/// The class of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionClass {
    Allowed,
    /// Its value may differ between runs.
    Changing,
    Other,
}

pub fn known(name: &str) -> FunctionClass {
    if FUNCTIONS.contains(&name.to_ascii_lowercase()) {
        FunctionClass::Allowed
    } else if CHANGING.iter().any(|changing| changing.eq_ignore_ascii_case(name)) {
        FunctionClass::Changing
    } else {
        FunctionClass::Other
    }
}

/// The candidate closest to `name`, if it is close.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            let longest = lower.chars().count().max(candidate.chars().count());
            *distance * 3 <= longest.max(3)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_sorted_without_duplicates() {
        let names: Vec<_> = functions().collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(names.iter().all(|name| known(name) == FunctionClass::Allowed));
    }

    #[test]
    fn no_name_is_both_allowed_and_refused() {
        for name in CHANGING.iter().chain(AGGREGATES) {
            assert_ne!(known(name), FunctionClass::Allowed, "{name}");
        }
    }

    #[test]
    fn misspelled_names_get_a_suggestion() {
        assert_eq!(nearest("uper", functions()), Some("upper"));
        assert_eq!(nearest("fair", ["fare", "tip"].into_iter()), None);
        assert_eq!(nearest("far", ["fare", "tip"].into_iter()), Some("fare"));
    }
}
