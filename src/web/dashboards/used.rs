//! What dashboards need of a pipeline's tables, for whoever is about to change these.

use super::DASHBOARDS_MAX;
use super::gate::{statement, today};
use super::objects::{entries, load};
use crate::domain::dashboard::{Settings, examine};
use crate::domain::layout::{dashboard_draft_key, dashboard_key};
use crate::domain::name::Slug;
use crate::http::ApiError;
use crate::web::Web;
use crate::web::sql::Statement;

/// A query of a dashboard that could be bound to tables.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::web) struct UsedStatement {
    pub(in crate::web) dashboard: String,
    /// Of the draft, not of what is published.
    pub(in crate::web) draft: bool,
    pub(in crate::web) query: String,
    pub(in crate::web) statement: Statement,
    /// The columns of its result that panels and options name.
    pub(in crate::web) columns: Vec<String>,
}

/// The queries of all dashboards of a pipeline, published ones and drafts, with values of the right type for their
/// parameters. Texts and parts that have problems of their own are left out.
///
/// # Errors
/// What the store fails with.
pub(in crate::web) fn statements(web: &Web, pipeline: &Slug) -> Result<Vec<UsedStatement>, ApiError> {
    let mut used = Vec::new();
    for (name, entry) in entries(web, pipeline)?.into_iter().take(DASHBOARDS_MAX) {
        // Listed names are good.
        let Ok(slug) = Slug::parse(&name) else { continue };
        let objects = [
            (entry.published, false, dashboard_key(pipeline, &slug)),
            (entry.draft, true, dashboard_draft_key(pipeline, &slug)),
        ];
        for (_, draft, key) in objects.into_iter().filter(|(there, ..)| *there) {
            let Some((_, bytes)) = load(web, &key)? else { continue };
            let examined = examine(&bytes);
            let sample = Settings::sample(examined.dashboard.params(), today(web));
            used.extend(examined.bindable_queries().into_iter().map(|query| UsedStatement {
                dashboard: name.clone(),
                draft,
                statement: statement(&query, query.sql().to_owned(), &sample),
                columns: examined.dashboard.columns_needed(&query.name),
                query: query.name,
            }));
        }
    }
    Ok(used)
}
