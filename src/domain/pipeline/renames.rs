//! Renames from one config to the next: tables and columns that have another name and are otherwise the same.

use super::{Column, ColumnSource, Mapping, Pipeline};

/// A table or a column that has another name now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// The current name of a column's table; `None` for a table.
    pub table: Option<String>,
    pub from: String,
    pub to: String,
}

/// The renames over a sequence of configs, from the first to the last, whose names are those of the last. A name that the
/// last config has, too, was not renamed.
#[derive(Debug, Default)]
pub struct Renames {
    last: Option<Pipeline>,
    found: Vec<Rename>,
}

impl Renames {
    /// The next config of the sequence.
    pub fn add(&mut self, next: Pipeline) {
        if let Some(before) = &self.last {
            let step = between(before, &next);
            for earlier in &mut self.found {
                earlier.follow(&step);
            }
            self.found.extend(step);
        }
        self.last = Some(next);
    }

    pub fn finish(self) -> Vec<Rename> {
        let Some(last) = &self.last else { return Vec::new() };
        let has_table = |name: &str| last.mappings.iter().any(|one| is_same_name(one.table.as_str(), name));
        let has_column = |table: &str, name: &str| {
            let mut mappings = last.mappings.iter().filter(|one| is_same_name(one.table.as_str(), table));
            mappings.any(|one| one.columns.iter().any(|column| is_same_name(column.name.as_str(), name)))
        };
        let mut kept: Vec<Rename> = Vec::new();
        // The last rename of a name counts.
        for rename in self.found.into_iter().rev() {
            let holds = match &rename.table {
                None => has_table(&rename.to) && !has_table(&rename.from),
                Some(table) => has_column(table, &rename.to) && !has_column(table, &rename.from),
            };
            if holds && !kept.iter().any(|one| one.table == rename.table && is_same_name(&one.from, &rename.from)) {
                kept.push(rename);
            }
        }
        kept.reverse();
        kept
    }
}

impl Rename {
    /// Follows later renames.
    fn follow(&mut self, step: &[Self]) {
        let (table, to) = (self.table.clone(), self.to.clone());
        for later in step {
            match (&later.table, &table) {
                (None, None) if later.from == to => self.to.clone_from(&later.to),
                (None, Some(table)) if later.from == *table => self.table = Some(later.to.clone()),
                _ => {}
            }
        }
        for later in step {
            if later.table.is_some() && later.table == self.table && later.from == to {
                self.to.clone_from(&later.to);
            }
        }
    }
}

fn between(before: &Pipeline, after: &Pipeline) -> Vec<Rename> {
    let same = |a: &&Mapping, b: &&Mapping| is_same_name(a.table.as_str(), b.table.as_str());
    let (before, after): (Vec<_>, Vec<_>) = (before.mappings.iter().collect(), after.mappings.iter().collect());
    let mut renames = Vec::new();
    let mut pairs: Vec<(&Mapping, &Mapping)> = Vec::new();
    let gone: Vec<_> = before.iter().filter(|old| !after.iter().any(|new| same(old, new))).collect();
    let added: Vec<_> = after.iter().filter(|new| !before.iter().any(|old| same(old, new))).collect();
    for old in &gone {
        let matches: Vec<_> = added.iter().filter(|new| new.files == old.files).collect();
        if let [new] = matches[..]
            && gone.iter().filter(|other| other.files == old.files).count() == 1
        {
            let (from, to) = (old.table.as_str().to_owned(), new.table.as_str().to_owned());
            renames.push(Rename { table: None, from, to });
            pairs.push((old, new));
        }
    }
    for old in &before {
        pairs.extend(after.iter().filter(|new| same(old, new)).map(|new| (*old, *new)));
    }
    for (old, new) in pairs {
        renames.extend(columns(old, new));
    }
    renames
}

fn columns(before: &Mapping, after: &Mapping) -> Vec<Rename> {
    let has = |columns: &[Column], name: &str| columns.iter().any(|one| is_same_name(one.name.as_str(), name));
    let gone = before.columns.iter().enumerate().filter(|(_, old)| !has(&after.columns, old.name.as_str()));
    let mut renames: Vec<Rename> = Vec::new();
    for (place, old) in gone {
        let added = || {
            let is_new = |new: &&Column| !has(&before.columns, new.name.as_str());
            let is_free = |new: &&Column| !renames.iter().any(|one| one.to == new.name.as_str());
            after.columns.iter().filter(move |new| is_new(new) && is_free(new))
        };
        // Without a common source: the same place and type in a list that is otherwise as long.
        let in_place = || {
            let there = after.columns.get(place).filter(|_| before.columns.len() == after.columns.len())?;
            added().find(|new| std::ptr::eq(*new, there) && new.ty == old.ty)
        };
        if let Some(new) = added().find(|new| is_same_source(&old.source, &new.source)).or_else(in_place) {
            let table = Some(after.table.as_str().to_owned());
            renames.push(Rename { table, from: old.name.as_str().to_owned(), to: new.name.as_str().to_owned() });
        }
    }
    renames
}

fn is_same_source(a: &ColumnSource, b: &ColumnSource) -> bool {
    match (a, b) {
        (ColumnSource::Header(a), ColumnSource::Header(b)) => {
            a.iter().any(|one| b.iter().any(|other| is_same_name(one, other)))
        }
        _ => a == b,
    }
}

/// SQL compares names without regard to case.
fn is_same_name(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::pipeline::validate::parse;

    fn table(name: &str, files: &str, columns: &[Value]) -> Value {
        json!({ "table": name, "files": [files], "columns": columns })
    }

    fn text(name: &str) -> Value {
        json!({ "name": name, "type": "string" })
    }

    fn sourced(name: &str, source: &str) -> Value {
        json!({ "name": name, "type": "string", "from": source })
    }

    /// `table.from>to` of each rename over these lists of tables.
    fn renames(configs: &[Vec<Value>]) -> Vec<String> {
        let mut renames = Renames::default();
        for mappings in configs {
            let config = json!({ "version": 1, "mappings": mappings }).to_string();
            renames.add(parse(&config).unwrap_or_else(|problems| panic!("{config}: {problems:?}")));
        }
        let shown = |one: Rename| format!("{}.{}>{}", one.table.unwrap_or_default(), one.from, one.to);
        renames.finish().into_iter().map(shown).collect()
    }

    #[test]
    fn column_with_the_source_of_a_removed_one_is_a_rename() {
        let before = vec![table("t", "*.csv", &[text("fare"), text("city")])];
        let after = vec![table("t", "*.csv", &[text("city"), sourced("price", "Fare")])];
        assert_eq!(renames(&[before, after]), ["t.fare>price"]);
    }

    #[test]
    fn column_at_the_position_of_a_removed_one_of_equal_type_is_a_rename() {
        let before = vec![table("t", "*.csv", &[text("fare"), text("city")])];
        let after = |columns: &[Value]| vec![table("t", "*.csv", columns)];
        let renamed = |columns: &[Value]| renames(&[before.clone(), after(columns)]);
        assert_eq!(renamed(&[text("price"), text("city")]), ["t.fare>price"]);
        assert!(renamed(&[json!({ "name": "price", "type": "int64" }), text("city")]).is_empty());
        assert!(renamed(&[text("price"), text("city"), text("more")]).is_empty());
        assert!(renamed(&[text("city")]).is_empty());
        assert!(renamed(&[text("FARE"), text("city")]).is_empty(), "SQL finds it by its old name");
    }

    #[test]
    fn table_with_the_same_files_is_a_rename_with_its_columns() {
        let before = vec![table("trips", "t/*.csv", &[text("a")]), table("other", "o/*.csv", &[text("a")])];
        let after = vec![table("other", "o/*.csv", &[text("a")]), table("rides", "t/*.csv", &[sourced("b", "a")])];
        assert_eq!(renames(&[before.clone(), after]), [".trips>rides", "rides.a>b"]);
        // Ambiguous: both new tables read the files.
        let two = vec![table("x", "t/*.csv", &[text("a")]), table("y", "t/*.csv", &[text("a")])];
        assert!(renames(&[before, two]).is_empty());
    }

    #[test]
    fn renames_are_followed_to_the_present_names() {
        let one = |name: &str, column: Value| vec![table(name, "*.csv", &[column])];
        let steps = [one("t", text("a")), one("t", sourced("b", "a")), one("u", sourced("c", "a"))];
        assert_eq!(renames(&steps), ["u.a>c", ".t>u", "u.b>c"]);
        // Renamed back, or away: no rename is left.
        assert!(
            renames(&[one("t", text("a")), one("t", sourced("b", "a")), one("t", text("a"))])
                .iter()
                .all(|one| one == "t.b>a")
        );
        let gone = [one("t", text("a")), one("t", sourced("b", "a")), vec![table("z", "z.csv", &[text("q")])]];
        assert!(renames(&gone).is_empty());
        assert!(renames(&[]).is_empty());
    }
}
