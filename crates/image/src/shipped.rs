//! The images that come with Cellblock: their files are embedded in the program, and they are built
//! on first use.

use super::error::Result;
use super::spec::ImageSpec;

/// Name of the image that is used by default.
pub const DEFAULT_IMAGE: &str = "default";
/// Name of the small image: numpy, pandas, matplotlib and pyarrow.
pub const CORE_IMAGE: &str = "core";
/// Name of the image with Polars, for scripts that analyze tables.
pub const POLARS_IMAGE: &str = "polars";

/// Names of the shipped images.
pub const SHIPPED_IMAGES: [&str; 3] = [DEFAULT_IMAGE, CORE_IMAGE, POLARS_IMAGE];

/// The files of one image.
#[derive(Debug)]
struct Files {
    spec: &'static str,
    requirements: &'static str,
    lock: &'static str,
}

const DEFAULT: Files = Files {
    spec: include_str!("../images/default/image.toml"),
    requirements: include_str!("../images/default/requirements.in"),
    lock: include_str!("../images/default/requirements.lock"),
};
const CORE: Files = Files {
    spec: include_str!("../images/core/image.toml"),
    requirements: include_str!("../images/core/requirements.in"),
    lock: include_str!("../images/core/requirements.lock"),
};
const POLARS: Files = Files {
    spec: include_str!("../images/polars/image.toml"),
    requirements: include_str!("../images/polars/requirements.in"),
    lock: include_str!("../images/polars/requirements.lock"),
};

impl ImageSpec {
    /// Returns the default image.
    pub fn default_image() -> Result<Self> {
        DEFAULT.read(DEFAULT_IMAGE)
    }

    /// Describes what a build downloads and how long it takes on a machine with two cores; only
    /// known for shipped images.
    pub(crate) fn cost(&self) -> Option<String> {
        let megabytes = match self.name.as_str() {
            DEFAULT_IMAGE => 305,
            CORE_IMAGE => 108,
            POLARS_IMAGE => 151,
            _ => return None,
        };
        // At 100 Mbit/s.
        let seconds = 12 + megabytes / 12;
        let is_shipped = Self::shipped(&self.name).is_ok_and(|it| it.as_ref() == Some(self));
        is_shipped.then(|| format!("downloads {megabytes} MB, takes about {seconds} s at 100 Mbit/s"))
    }

    /// Returns the shipped image with this name, if there is one.
    pub fn shipped(name: &str) -> Result<Option<Self>> {
        let files = match name {
            DEFAULT_IMAGE => &DEFAULT,
            CORE_IMAGE => &CORE,
            POLARS_IMAGE => &POLARS,
            _ => return Ok(None),
        };
        files.read(name).map(Some)
    }
}

impl Files {
    fn read(&self, name: &str) -> Result<ImageSpec> {
        ImageSpec::parse(self.spec, name, |file| match file {
            "requirements.in" => Ok(self.requirements.to_owned()),
            "requirements.lock" => Ok(self.lock.to_owned()),
            _ => Err("it is not embedded".to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requirements that are written down, and the lock.
    fn locked(spec: &ImageSpec) -> (Vec<&str>, &str) {
        let lock = spec.lock.as_deref().unwrap();
        for line in lock.lines() {
            assert!(
                line.contains("==") || line.trim_start().starts_with("--hash=sha256:"),
                "{line}"
            );
        }
        let lines = spec.requirements.lines();
        (lines.filter(|it| !it.starts_with('#')).collect(), lock)
    }

    fn assert_holds(spec: &ImageSpec, wanted: &[&str]) {
        let (written, lock) = locked(spec);
        assert_eq!(written, wanted);
        for name in wanted {
            assert!(
                lock.lines().any(|it| it.starts_with(&format!("{name}=="))),
                "{name} in requirements.lock"
            );
        }
        assert_eq!(spec.python.to_string(), "3.13");
        assert!(spec.policy.forbid_network_clients);
        assert_eq!(spec.key().len(), 64);
    }

    #[test]
    fn the_default_image_is_locked_and_has_the_documented_packages() {
        let wanted = [
            "altair",
            "beautifulsoup4",
            "duckdb",
            "lxml",
            "manimgx-fonts",
            "matplotlib",
            "networkx",
            "noto-cjk-sans-otc",
            "numpy",
            "openpyxl",
            "pandas",
            "plotly",
            "polars",
            "pyarrow",
            "pypdf",
            "python-calamine",
            "python-docx",
            "python-pptx",
            "pyyaml",
            "reportlab",
            "scikit-learn",
            "scipy",
            "seaborn",
            "statsmodels",
            "sympy",
            "tabulate",
            "tqdm",
            "vl-convert-python",
            "xlrd",
        ];
        assert_holds(&ImageSpec::default_image().unwrap(), &wanted);
    }

    #[test]
    fn the_core_image_is_locked_to_the_versions_of_the_default_one() {
        let core = ImageSpec::shipped(CORE_IMAGE).unwrap().unwrap();
        assert_holds(&core, &["matplotlib", "numpy", "pandas", "pyarrow"]);
        let default = ImageSpec::default_image().unwrap();
        let (_, all) = locked(&default);
        for line in locked(&core).1.lines() {
            assert!(all.lines().any(|it| it == line), "{line}");
        }
    }

    #[test]
    fn the_polars_image_is_locked_and_does_not_require_pandas() {
        let spec = ImageSpec::shipped(POLARS_IMAGE).unwrap().unwrap();
        assert_holds(
            &spec,
            &["matplotlib", "numpy", "polars", "scikit-learn", "seaborn"],
        );
    }

    #[test]
    fn every_shipped_name_has_its_image_and_other_names_have_none() {
        for name in SHIPPED_IMAGES {
            assert_eq!(ImageSpec::shipped(name).unwrap().unwrap().name, name);
        }
        assert_eq!(ImageSpec::shipped("conda").unwrap(), None);
    }
}
