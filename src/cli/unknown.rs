//! The message for an unknown pipeline.

use super::services::Services;
use crate::domain::name::Slug;
use crate::domain::text::suggest;
use crate::pipelines;
use crate::ports::store::{Bucket, StoreError};

/// Pipelines listed if no name is similar.
const LISTED_MAX: usize = 10;

/// The message with suggestions if the pipeline doesn't exist; `None` if it does.
///
/// # Errors
/// The store failed.
pub fn message(services: &Services, slug: &Slug) -> Result<Option<String>, StoreError> {
    let store = &*services.store;
    if pipelines::is_in_use(store, slug, &Bucket::ALL)? {
        return Ok(None);
    }
    let known: Vec<Slug> = pipelines::all(store)?.into_iter().filter(|known| known != slug).collect();
    Ok(Some(format!("there is no pipeline `{slug}`{}", hint(slug, &known))))
}

fn hint(slug: &Slug, known: &[Slug]) -> String {
    if let Some(near) = suggest(slug.as_str(), known.iter().map(Slug::as_str)) {
        return format!(": did you mean `{near}`?");
    }
    let named: Vec<&str> = known.iter().take(LISTED_MAX).map(Slug::as_str).collect();
    match known.len().saturating_sub(LISTED_MAX) {
        _ if named.is_empty() => "; there are none yet".to_owned(),
        0 => format!("; there are {}", named.join(", ")),
        more => format!("; there are {} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_name_or_existing_names_are_suggested() {
        let slug = |text: &str| Slug::parse(text).unwrap();
        let known: Vec<Slug> = (1..=12).map(|n| slug(&format!("trips-of-{n:02}"))).collect();
        for (asked, known, expected) in [
            ("trips-of-3", &known[..], ": did you mean `trips-of-03`?"),
            ("x", &known[..2], "; there are trips-of-01, trips-of-02"),
            ("x", &[], "; there are none yet"),
        ] {
            assert_eq!(hint(&slug(asked), known), expected);
        }
        assert!(hint(&slug("x"), &known).ends_with("trips-of-10 and 2 more"));
    }
}
