//! Renders the findings for programs that read Parquet as tables.

use std::fmt::Write as _;

use lakemill::domain::pipeline::readers::{MEASURED, MeasuredVersion, NAMES, ROWS};

fn label(row: &str) -> String {
    row.replace('|', "\\|")
}

/// A table with a column per version of the families, followed by a sentence per difference with the affected versions.
pub fn table(families: &str) -> String {
    let families: Vec<&str> = families.split_whitespace().collect();
    let measured: Vec<&MeasuredVersion> =
        MEASURED.iter().filter(|measured| families.contains(&measured.family.to_string().as_str())).collect();
    let mut text = "| type |".to_owned();
    for reader in &measured {
        write!(text, " {} {} |", reader.family, reader.version).unwrap();
    }
    write!(text, "\n{}|\n", "|---".repeat(measured.len() + 1)).unwrap();
    for row in ROWS {
        write!(text, "| {} |", label(row.label)).unwrap();
        for reader in &measured {
            write!(text, " {} |", reader.reading(row.label).map_or("ok".to_owned(), |reading| reading.cell())).unwrap();
        }
        text.push('\n');
    }
    text.push('\n');
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for reader in &measured {
        for row in ROWS {
            let Some(harm) = reader.reading(row.label).and_then(|reading| reading.consequence()) else { continue };
            let about = format!("{} {harm}", reader.family);
            match groups.iter_mut().find(|(own, _)| *own == about) {
                Some((_, rows)) if rows.contains(&row.label) => {}
                Some((_, rows)) => rows.push(row.label),
                None => groups.push((about, vec![row.label])),
            }
        }
    }
    for (about, rows) in groups {
        writeln!(text, "- {about} ({})", rows.join("; ")).unwrap();
    }
    text
}

/// Each name with the versions that it covers.
pub fn names() -> String {
    let mut text = "| name | checked against |\n|---|---|\n".to_owned();
    for named in NAMES {
        let versions: Vec<&str> = named.versions().map(|measured| measured.version).collect();
        writeln!(text, "| `{}` | {} {} |", named.name, named.family, versions.join(", ")).unwrap();
    }
    text
}
