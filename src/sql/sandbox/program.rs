//! Finds `lakemill-sql`, the program of the children.

use std::path::{Path, PathBuf};

/// Where `lakemill-sql` may be; the first that exists is started.
#[derive(Debug, Clone)]
pub struct ChildProgram {
    candidates: Vec<PathBuf>,
}

impl ChildProgram {
    /// The name of the file.
    pub const NAME: &str = "lakemill-sql";
    /// The folder of an installed package, beside that of `lakemill`.
    const PACKAGE_FOLDER: &str = "lib/lakemill";

    /// The program that belongs to `lakemill`, the path of this program: beside it, or where a package has it
    /// (`../lib/lakemill`).
    pub fn of(lakemill: &Path) -> Self {
        let folder = lakemill.parent().unwrap_or(Path::new("/"));
        let package = folder.parent().unwrap_or(folder).join(Self::PACKAGE_FOLDER);
        Self { candidates: [folder, &package].map(|folder| folder.join(Self::NAME)).into() }
    }

    /// The program at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { candidates: vec![path.into()] }
    }

    /// The path of the program.
    ///
    /// # Errors
    /// No path has it.
    pub fn find(&self) -> Result<&Path, String> {
        let found = self.candidates.iter().find(|path| path.is_file()).map(PathBuf::as_path);
        found.ok_or_else(|| {
            let candidates: Vec<_> = self.candidates.iter().map(|path| format!("`{}`", path.display())).collect();
            format!(
                "`{}`, which runs SQL and expressions, is missing: there is no {}; install it with `lakemill`, both of one \
                 build",
                Self::NAME,
                candidates.join(" or ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_found_next_to_lakemill_or_in_the_package_folder() {
        let home = tempfile::tempdir().unwrap();
        let (beside, package) = (home.path().join("bin/lakemill-sql"), home.path().join("lib/lakemill/lakemill-sql"));
        let program = ChildProgram::of(&home.path().join("bin/lakemill"));
        let missing = program.find().unwrap_err();
        for path in [&beside, &package] {
            assert!(missing.contains(&format!("`{}`", path.display())), "{missing}");
        }
        for path in [&package, &beside] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
            assert_eq!(program.find().unwrap(), path);
        }
        std::fs::remove_file(&beside).unwrap();
        std::fs::create_dir(&beside).unwrap();
        assert_eq!(program.find().unwrap(), package, "a folder is not the program");
    }
}
