//! Time zones: cells and SQL use one database, which is right for all years; the system's if it is newer.

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset};
use lakemill::domain::zones;
use lakemill::sql::sandbox::{ParameterizedStatement, RowLimits};
use serde_json::{Value, json};

use crate::sql_sandbox::setup::{Site, far_deadline, json as rows_of};
use crate::support::program::{CommandOutput, Program, call};

const YEAR_S: i64 = 31_556_952;

/// Unix time in 1 BCE, before all transitions.
const EARLIEST: i64 = -1_970 * YEAR_S;

/// Instants at which a zone's offset is compared: around its transitions up to 2120, and around half-yearly changes up
/// to 2600, sampled.
fn instants(zone: zones::Zone) -> Vec<i64> {
    let mut seconds = vec![EARLIEST, 0];
    let until = (2120 - 1970) * YEAR_S;
    for transition in zone.rules().unwrap().following(Timestamp::MIN) {
        let at = transition.timestamp().as_second();
        if at > until {
            break;
        }
        seconds.extend([at - 1, at, at + 1_800]);
    }
    for year in [2137, 2150, 2199, 2200, 2300, 2400, 2599] {
        let from = Timestamp::from_second((year - 1970) * YEAR_S).unwrap();
        for transition in zone.rules().unwrap().following(from).take(2) {
            let at = transition.timestamp().as_second();
            seconds.extend([at - 1, at]);
        }
        seconds.extend((0..12).map(|month| from.as_second() + month * YEAR_S / 12));
    }
    seconds
}

#[test]
fn sql_and_cells_agree_on_offsets_of_every_zone_and_year() {
    const ROWS: u64 = 100_000;
    let site = Site::new();
    let mut child = site.child();
    let limits = RowLimits { rows: ROWS, bytes: 64 << 20 };
    let (mut compared, mut wrong) = (0, Vec::new());
    for name in zones::database().names() {
        let zone = zones::database().zone(name).unwrap();
        let rules = zone.rules().unwrap();
        let seconds = instants(zone);
        let list = seconds.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        // To local time, and back if the local time is unambiguous.
        let sql = format!(
            "SELECT epoch_us(l) // 1000000 - s, epoch_us(timezone('{name}', l)) // 1000000 FROM (
             SELECT s, timezone('{name}', to_timestamp(s)) AS l FROM (SELECT unnest([{list}]::BIGINT[]) AS s))"
        );
        let rows = rows_of(child.rows(&ParameterizedStatement::plain(&sql), limits, far_deadline()));
        let rows = rows.as_array().unwrap();
        assert_eq!(rows.len(), seconds.len(), "{name}");
        for (second, row) in seconds.iter().zip(rows) {
            let at = Timestamp::from_second(*second).unwrap();
            let offset = rules.to_offset(at);
            let local = Offset::UTC.to_datetime(Timestamp::from_second(second + i64::from(offset.seconds())).unwrap());
            let is_fold = matches!(rules.to_ambiguous_timestamp(local).offset(), AmbiguousOffset::Fold { .. });
            compared += 1;
            if row[0] != json!(offset.seconds()) || (!is_fold && row[1] != json!(second)) {
                wrong.push(format!("{name} at {at}: SQL has {row}, cells have {}", offset.seconds()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared} differ, first {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    assert!(compared > 100_000, "{compared}");
}

/// A table with the column `t` read in `zone`, and the same local time through SQL.
fn mapping_with_both(zone: &str) -> Value {
    json!({
        "columns": [
            { "name": "t", "type": "timestamptz", "timezone": zone, "from": "at" },
            { "name": "l", "type": "timestamp", "from": "at" },
            { "name": "e", "type": "timestamptz", "expr": format!("timezone('{zone}', l)") },
            { "name": "back", "type": "timestamp", "expr": format!("timezone('{zone}', t)") }
        ]
    })
}

#[test]
fn cells_and_expressions_agree_on_recent_changes_and_after_2100() {
    for (zone, local, utc) in [
        // No further transitions since 2026.
        ("America/Vancouver", "2026-11-15 12:00:00", "2026-11-15T19:00:00Z"),
        ("America/Vancouver", "2026-03-20 12:00:00", "2026-03-20T19:00:00Z"),
        ("Europe/Berlin", "2150-07-01 12:00:00", "2150-07-01T10:00:00Z"),
        ("Europe/Berlin", "2150-01-01 12:00:00", "2150-01-01T11:00:00Z"),
        ("Australia/Lord_Howe", "2999-01-01 12:00:00", "2999-01-01T01:00:00Z"),
        ("America/Nuuk", "2101-03-27 23:30:00", "2101-03-28T00:30:00Z"),
    ] {
        let program = Program::of(&mapping_with_both(zone));
        program.put("in/1.csv", format!("at\n{local}\n"));
        program.run(&[]).ok();
        let local = local.replace(' ', "T");
        assert_eq!(program.rows("t"), [format!("{utc}|{local}|{utc}|{local}")], "{zone}");
    }
}

/// A folder with future time-zone data, in which Berlin is five hours ahead of Greenwich.
fn future_database(version: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("Europe")).unwrap();
    let source =
        format!("# version {version}\nZ Etc/GMT-5 5 - +05\nL Etc/GMT-5 Europe/Berlin\nL Etc/GMT-5 Mars/Base\n");
    std::fs::write(folder.path().join("tzdata.zi"), source).unwrap();
    let data = zones::database().files().find(|(name, _)| *name == "Etc/GMT-5").unwrap().1;
    std::fs::create_dir(folder.path().join("Etc")).unwrap();
    std::fs::write(folder.path().join("Etc/GMT-5"), data).unwrap();
    std::fs::write(folder.path().join("Europe/Berlin"), data).unwrap();
    folder
}

fn run_with(program: &Program, zoneinfo: &tempfile::TempDir) -> CommandOutput {
    call(program.command().env("TZDIR", zoneinfo.path())).ok()
}

#[test]
fn cells_and_expressions_use_newer_system_data_only() {
    let (newer, older) = (future_database("2999a"), future_database("2001a"));
    let table = |zone: &str| {
        let program = Program::of(&mapping_with_both(zone));
        program.put("in/1.csv", "at\n2024-07-01 12:00:00\n");
        program
    };
    let row = |utc: &str| [format!("2024-07-01T{utc}Z|2024-07-01T12:00:00|2024-07-01T{utc}Z|2024-07-01T12:00:00")];
    let program = table("Europe/Berlin");
    run_with(&program, &older);
    assert_eq!(program.rows("t"), row("10:00:00"));
    // The table is rebuilt, though no source changed.
    run_with(&program, &newer);
    assert_eq!(program.rows("t"), row("07:00:00"));
    // A zone that the program doesn't contain.
    let program = table("Mars/Base");
    run_with(&program, &newer);
    assert_eq!(program.rows("t"), row("07:00:00"));
    // Zones missing from the folder are those of the program.
    let program = table("Asia/Tokyo");
    run_with(&program, &newer);
    assert_eq!(program.rows("t"), row("03:00:00"));
}

#[test]
fn newer_data_rebuilds_only_tables_with_zones() {
    let newer = future_database("2999a");
    let program = Program::of(&json!({}));
    program.put("in/1.csv", "a,b\nx,1\n");
    program.run(&[]).ok();
    let manifest =
        |program: &Program| program.published().into_iter().find(|(name, _)| name.ends_with("t.json")).unwrap();
    let before = manifest(&program);
    run_with(&program, &newer);
    assert_eq!(manifest(&program), before);
}
