//! Metrics of the process, named as by Prometheus' own clients, and of the build.

use std::fs;

use rustix::process::{Resource, getrlimit};

use super::metrics::{MetricKind, MetricsText};

/// Writes all families of the process. Omits those that the system doesn't provide.
pub fn write_process(text: &mut MetricsText) {
    let stat = fs::read_to_string("/proc/self/stat").ok();
    let stat = stat.as_deref().and_then(|stat| Stat::parse(stat, rustix::param::clock_ticks_per_second()));
    let boot = fs::read_to_string("/proc/stat").ok().and_then(|stat| boot_seconds(&stat));
    let started = stat.as_ref().zip(boot).map(|(stat, boot)| boot + stat.started_after_boot_s);
    let (gauge, counter) = (MetricKind::Gauge, MetricKind::Counter);
    let families = [
        (gauge, "process_resident_memory_bytes", "Memory of this process in RAM.", resident_bytes()),
        (counter, "process_cpu_seconds_total", "Processor time of this process.", stat.map(|stat| stat.cpu_s)),
        (gauge, "process_open_fds", "Open file descriptors.", open_files()),
        (gauge, "process_max_fds", "Limit of open file descriptors.", files_max()),
        (gauge, "process_start_time_seconds", "When this process started, in seconds since 1970.", started),
    ];
    for (kind, name, help, value) in families {
        if let Some(value) = value {
            text.family(kind, name, help).sample(&[], value);
        }
    }
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    text.family(gauge, "lakemill_build_info", "Version and build of the program.").sample(&version, 1.0);
}

/// Fields of `/proc/self/stat`, in seconds.
struct Stat {
    cpu_s: f64,
    started_after_boot_s: f64,
}

impl Stat {
    fn parse(stat: &str, ticks_per_second: u64) -> Option<Self> {
        // The program's name may contain spaces and parentheses.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The first field after the name is number 3.
        let seconds = |number: usize| {
            let ticks = fields.get(number - 3)?.parse::<u64>().ok()?;
            Some(ticks as f64 / ticks_per_second.max(1) as f64)
        };
        Some(Self { cpu_s: seconds(14)? + seconds(15)?, started_after_boot_s: seconds(22)? })
    }
}

/// When the machine started, in seconds since 1970.
fn boot_seconds(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn resident_bytes() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| (kib * 1_024) as f64)
}

fn open_files() -> Option<f64> {
    // Without the descriptor that reads the folder.
    Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as f64)
}

/// Infinite without a limit.
fn files_max() -> Option<f64> {
    Some(getrlimit(Resource::Nofile).current.map_or(f64::INFINITY, |limit| limit as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_metrics_are_plausible() {
        let mut text = MetricsText::new();
        write_process(&mut text);
        let text = text.finish();
        let value = |name: &str| -> f64 {
            let line =
                text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {text}"));
            line.trim().parse().unwrap()
        };
        assert!(value("process_resident_memory_bytes ") > 1e6);
        assert!(value("process_open_fds ") >= 3.0 && value("process_max_fds ") >= value("process_open_fds "));
        assert!(value("process_cpu_seconds_total ") >= 0.0);
        let started = fs::metadata("/proc/self").unwrap().modified().unwrap();
        let started = started.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        let off = (value("process_start_time_seconds ") - started).abs();
        assert!(off < 86_400.0, "{off} s off");
    }

    #[test]
    fn spaces_and_parentheses_in_the_program_name_are_handled() {
        let numbers: Vec<String> = (4..=40).map(|number| (number * 100).to_string()).collect();
        let stat = Stat::parse(&format!("7 (a) b) S {}", numbers.join(" ")), 100).unwrap();
        assert_eq!((stat.cpu_s, stat.started_after_boot_s), (29.0, 22.0));
        assert!(Stat::parse("7 (a", 100).is_none() && Stat::parse("7 (a) S 1 2", 100).is_none());
        assert_eq!(boot_seconds("cpu 1 2\nbtime 1700000000\n"), Some(1.7e9));
    }
}
