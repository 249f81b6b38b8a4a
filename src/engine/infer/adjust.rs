//! Adjusts the dialect by records that are not rows, and by lines of totals.

use serde_json::json;

use super::proposal::{Finding, Item};
use super::sniff::plan::DialectPlan;
use super::survey::Survey;
use super::totals::{self, Footer};
use crate::domain::limits::RECORD_BYTES_MAX;
use crate::domain::pipeline::Quotes;
use crate::domain::reject::RejectReason;
use crate::domain::text::counted;

/// Longest proposed footer, in records.
const FOOTER_ROWS_MAX: u64 = 5;

/// Adjusts the plan by records that are not rows. Returns true if the file must be read again.
pub(super) fn adjust(plan: &mut DialectPlan, survey: &Survey) -> bool {
    let dialect = &mut plan.dialect;
    let invalid = survey.count(RejectReason::InvalidEncoding);
    if invalid > 0 && dialect.encoding == encoding_rs::UTF_8 && !plan.bom && survey.beyond_ascii < invalid {
        plan.encoding(super::sniff::encoding::latin(invalid as usize));
        return true;
    }
    if survey.count(RejectReason::RecordTooLong) > 0 && dialect.record_bytes_max < RECORD_BYTES_MAX {
        dialect.record_bytes_max = RECORD_BYTES_MAX;
        return true;
    }
    let broken = survey.count(RejectReason::StrayQuote) + survey.count(RejectReason::UnclosedQuote);
    if broken > 0 && survey.quoted_cells == 0 && dialect.quote.is_some() {
        dialect.quote = None;
        dialect.escape = None;
        let why = "quotes occur only within cells";
        plan.findings.retain(|finding| !matches!(finding.item, Item::Quote | Item::Escape));
        plan.findings.push(Finding { item: Item::Quote, value: json!(null), why: why.into(), candidates: Vec::new() });
        return true;
    }
    let strays = survey.refused.get(&RejectReason::StrayQuote);
    if let Some(strays) = strays.filter(|_| dialect.quotes == Quotes::Strict) {
        dialect.quotes = Quotes::Lenient;
        let why = format!(
            "{} a quote within a cell, first on line {}",
            counted(strays.count, "record has", "records have"),
            strays.first_line
        );
        plan.findings.push(Finding { item: Item::Quotes, value: json!("lenient"), why, candidates: Vec::new() });
        return true;
    }
    // Repeated, since a line of totals may precede a line of notes.
    let room = FOOTER_ROWS_MAX.saturating_sub(dialect.skip_footer_rows);
    if let Some(footer) = totals::notes(survey, room) {
        add_footer(plan, footer);
        return true;
    }
    if survey.ended
        && survey.refused_rows() == 0
        && let Some(footer) = totals::footer(survey, room)
    {
        add_footer(plan, footer);
        return true;
    }
    false
}

/// Adds records that precede the footer found before.
fn add_footer(plan: &mut DialectPlan, mut footer: Footer) {
    let before = plan.findings.iter().find(|finding| finding.item == Item::SkipFooterRows);
    let why = before.map_or(footer.why.clone(), |finding| format!("{}; {}", footer.why, finding.why));
    plan.findings.retain(|finding| !matches!(finding.item, Item::SkipFooterRows | Item::FooterValues));
    plan.dialect.skip_footer_rows += footer.records;
    let known = plan.dialect.footer_values.take().unwrap_or_default();
    footer.values.extend(known.into_iter().filter(|value| !footer.values.contains(value)).collect::<Vec<_>>());
    let finding = |item, value, why: &str| Finding { item, value, why: why.to_owned(), candidates: Vec::new() };
    plan.findings.push(finding(Item::SkipFooterRows, json!(plan.dialect.skip_footer_rows), &why));
    let only = "only records that start with these values, or are empty, are skipped";
    plan.findings.push(finding(Item::FooterValues, json!(footer.values), only));
    plan.dialect.footer_values = Some(footer.values);
}
