//! The progress bar of `lakemill run`, and Ctrl-C.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::domain::job::{Progress, Stage};
use crate::ports::RunObserver;
use crate::ports::observer::Stop;

/// Shows a run on a terminal; quiet elsewhere. The first Ctrl-C (or SIGTERM) stops the run cleanly, the second ends
/// the process.
pub struct Terminal {
    bar: ProgressBar,
    interrupted: Arc<AtomicBool>,
}

impl Terminal {
    /// # Errors
    /// If signal handlers can't be installed.
    pub fn new(quiet: bool) -> std::io::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))?;
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        let shown = !quiet && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3}% {wide_msg} {elapsed}") {
            bar.set_style(style.progress_chars("▓▓░"));
        }
        if shown {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Ok(Self { bar, interrupted })
    }

    /// The progress bar, if one is drawn.
    pub fn bar(&self) -> &ProgressBar {
        &self.bar
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl RunObserver for Terminal {
    fn progress(&self, progress: &Progress) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_length(progress.bytes_total.max(1));
        self.bar.set_position(progress.bytes_done);
        let tables = format!(
            "table {} of {}",
            (progress.mappings_done + 1).min(progress.mappings_total),
            progress.mappings_total
        );
        self.bar.set_message(match progress.stage {
            Stage::Planning => "planning".to_owned(),
            Stage::Converting => format!(
                "converting {tables} · {}/{} files · {} rows · {}",
                progress.files_done,
                progress.files_total,
                HumanCount(progress.rows_read),
                HumanBytes(progress.bytes_done)
            ),
            Stage::Publishing => {
                format!("publishing {}/{} partitions", progress.partitions_written, progress.partitions_total)
            }
            Stage::Finishing => "finishing".to_owned(),
        });
    }

    fn check(&self) -> Result<(), Stop> {
        if self.interrupted.load(Ordering::Relaxed) { Err(Stop::Cancelled) } else { Ok(()) }
    }
}
