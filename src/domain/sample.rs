//! The sample pipeline that comes with the program: flights that left New York City in 2013.

/// A pipeline with its files.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub slug: &'static str,
    /// The `pipeline.json`.
    pub config: &'static str,
    /// Key relative to the pipeline's prefix in the lake, and content.
    pub files: &'static [(&'static str, &'static [u8])],
    /// Published dashboards: name, and YAML.
    pub dashboards: &'static [(&'static str, &'static str)],
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../testdata/flights/lake/", $name)))),*]
    };
}

/// Real data, public domain (`testdata/flights/README.md` has its source): five tables, 336,776 flights. A static, since a
/// constant's files would be in the program once for each part that names it.
pub static FLIGHTS: Sample = Sample {
    slug: "flights",
    config: include_str!("../../testdata/flights/pipeline.json"),
    files: files![
        "airlines.csv",
        "airports.csv",
        "planes.csv",
        "weather.csv.gz",
        "flights/2013-01.csv.gz",
        "flights/2013-02.csv.gz",
        "flights/2013-03.csv.gz",
        "flights/2013-04.csv.gz",
        "flights/2013-05.csv.gz",
        "flights/2013-06.csv.gz",
        "flights/2013-07.csv.gz",
        "flights/2013-08.csv.gz",
        "flights/2013-09.csv.gz",
        "flights/2013-10.csv.gz",
        "flights/2013-11.csv.gz",
        "flights/2013-12.csv.gz",
    ],
    dashboards: &[("punctuality", include_str!("../../testdata/flights/dashboards/punctuality.yaml"))],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_has_every_file_of_its_folder_and_valid_names() {
        let lake = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/flights/lake");
        let count = |folder: &std::path::Path| {
            std::fs::read_dir(folder).unwrap().filter(|e| e.as_ref().unwrap().path().is_file()).count()
        };
        assert_eq!(FLIGHTS.files.len(), count(&lake) + count(&lake.join("flights")));
        assert!(crate::domain::name::Slug::parse(FLIGHTS.slug).is_ok());
        assert!(crate::domain::pipeline::validate::parse(FLIGHTS.config).is_ok());
        for (name, text) in FLIGHTS.dashboards {
            assert!(crate::domain::name::Slug::parse(name).is_ok());
            assert_eq!(crate::domain::dashboard::examine(text.as_bytes()).problems, []);
        }
    }
}
