//! The functions of the fuzz targets in `tests/fuzz`, one each. They take any bytes and panic on a violated invariant.
//!
//! Not part of the product: compiled with the feature `fuzzing`, and in unit tests, which run the stored inputs
//! (`tests/fuzz/corpus`). Targets that need private parts of a module are in that module.

mod cells;
mod encoder;
mod texts;

pub use crate::engine::read::fuzzing::tokeniser;
pub use crate::http::fuzzing::head;
pub use crate::web::fuzz_archive as archive;
pub use cells::{cells, utf8};
pub use encoder::encoder;
pub use texts::{dashboard, events, keys, names, pipeline};

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Runs every stored input of a target, and parts of it.
    fn replay(target: &str, run: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
        let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(files.len() >= 5, "{} has inputs", folder.display());
        for file in files {
            let input = std::fs::read(&file).unwrap();
            let result = std::panic::catch_unwind(|| {
                run(&input);
                for end in [input.len() / 2, input.len().saturating_sub(1)] {
                    run(&input[..end]);
                }
            });
            assert!(result.is_ok(), "{}", file.display());
        }
        run(b"");
    }

    macro_rules! replays {
        ($($target:ident),*) => {
            $(#[test]
            fn $target() {
                replay(stringify!($target), super::$target);
            })*

            #[test]
            fn every_target_has_a_binary_and_inputs() {
                let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
                for (folder, ending) in [("fuzz_targets", ".rs"), ("corpus", "")] {
                    let names = std::fs::read_dir(tests.join(folder)).unwrap();
                    let mut found: Vec<String> = names
                        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                        .map(|name| name.strip_suffix(ending).unwrap().to_owned())
                        .collect();
                    found.sort();
                    let mut targets = vec![$(stringify!($target)),*];
                    targets.sort_unstable();
                    assert_eq!(found, targets, "{folder}");
                }
            }
        };
    }

    replays!(archive, cells, dashboard, encoder, events, head, keys, names, pipeline, tokeniser, utf8);
}
